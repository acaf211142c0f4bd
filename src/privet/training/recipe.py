"""The settings of a private run, by default heuristics: one set of rules for all data, from public experience.

Inputs of a linear model here have a length of about 1, so that the noise of all steps together adds to a logit a number
of deviation √(Σ lr²) · noise_multiplier · clip / batch. That number decides: with little of it the model has not gone
far enough, with much of it noise speaks louder than data. The best was about 1 for every data set and ε that was tried
(benchmarks/accuracy), so the learning rate follows from the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from privet.accounting import analytic_gaussian_sigma
from privet.accounting import least as least_noise
from privet.core import Composed, Event, InvalidInput, checked
from privet.training.loop import train_steps
from privet.training.models.choose import Family
from privet.training.plan import DPSGD

if TYPE_CHECKING:
    from privet.core import Release
    from privet.core.random import Rng
    from privet.training.loop import StepFunction
    from privet.training.run import Run
    from privet.training.sampling import Ids, UserRows

__all__ = ["DataKind", "Recipe", "recipe"]


class DataKind(Enum):
    """What is learned from."""

    TABLE = "table"
    PICTURES = "pictures"


@dataclass(frozen=True)
class _Rules:
    clip: float
    noise: float
    """The deviation that the noise of all steps together may add to a logit."""
    stride: float
    """How far one step goes at first: learning rate times clip."""
    steps: tuple[int, int] = (100, 400)
    """The fewest and the most steps."""
    rate: float = 1 / 4
    """The share of the rows in a batch."""
    most: int = 16384
    """The most rows in a batch."""
    momentum: float = 0.0


# Labels of pictures are nearly certain: a small clip looks at those that are still wrong. In tables the same row may
# have either label, and a small clip would move the balance.
_RULES = {
    (DataKind.TABLE, Family.LINEAR): _Rules(clip=0.5, noise=1.2, stride=80),
    (DataKind.TABLE, Family.RESIDUAL): _Rules(clip=0.5, noise=0.4, stride=30),
    (DataKind.PICTURES, Family.LINEAR): _Rules(clip=0.1, noise=1.2, stride=80),
    (DataKind.PICTURES, Family.CONVOLUTIONS): _Rules(
        clip=0.1, noise=0.1, stride=1, steps=(500, 4000), rate=1 / 60, most=4096, momentum=0.9
    ),
}
_REGRESSION = _Rules(clip=0.5, noise=0.1, stride=0.5)
_PULL = 0.2
"""The centre's part in an example's gradient, over the clip: it takes 4 % of the squared length."""
_CENTRE_NOISE = 0.1
"""The length of the centre's noise that is borne, where inputs have the length 1."""
_STORED = ("clip", "delta", "noise_multiplier", "batch_size", "steps", "population", "average")
"""The fields of a plan that a recipe sets."""
_AVERAGED = 10
"""The weights are averaged over about this part of the steps, at the end."""


@dataclass(frozen=True)
class Recipe:
    """A plan, and what drives it. All of it is public: it follows from kind, shape, rows, ε and δ."""

    plan: DPSGD
    """Calibrated."""
    learning_rate: float
    """Of the first step; it falls in a straight line to zero."""
    momentum: float
    centre_rate: float
    """The part of the way to the mean of the inputs that their centre goes in the first step."""
    pull: float
    """The weight of the centre in an example's gradient, for a model's `losses`."""

    @property
    def steps(self) -> int:
        """How many there are."""
        return self.plan.steps or 0

    @property
    def epochs(self) -> float:
        """How often a row is used, on average."""
        return self.steps * (self.plan.batch_size or 0) / (self.plan.population or 1)

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Of a model's parameters; those of its centre, if it has one, have a rate of their own."""
        find: Callable[[], Iterator[nn.Parameter]] | None = getattr(model, "centres", None)
        centres = [] if find is None else list(find())
        among = {id(each) for each in centres}
        others = [each for each in model.parameters() if id(each) not in among]
        first = self.learning_rate
        groups: list[dict[str, Any]] = [{"params": others, "initial_lr": first, "momentum": self.momentum}]
        if centres:
            groups.append({"params": centres, "initial_lr": self.centre_rate / self.pull})
        return torch.optim.SGD(groups, lr=first)

    def anneal(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        """Set the learning rates for a step, counted from 0; also after a resumed run has loaded older ones."""
        left = 1 - step / self.steps
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"] * left

    def fit(
        self,
        model: nn.Module,
        dataset: Any,
        *,
        callbacks: Sequence[Callable[[int], None]] = (),
        users: UserRows | Ids | None = None,
        rng: Rng | None = None,
    ) -> Release[nn.Module]:
        """Train a model on pairs (inputs, targets).

        Args:
            model: A model that has `losses`, such as those of `privet.training.models`.
            dataset: Pairs of tensors, or a data set of pairs.
            callbacks: Functions that get the number of each finished step.
            users: As for `DPSGD.attach`.
            rng: As for `DPSGD.attach`.

        Returns:
            The trained model and its guarantee.

        Guarantee: that of the plan's event, for one example (or user) and add/remove neighbours (see `DPSGD`): the
        number of rows in the plan is a public one, and losses look at each row by itself.
        """
        optimizer = self.optimizer(model)
        run = self.plan.attach(model, optimizer, dataset, users=users, rng=rng)

        def after_step(_: float) -> None:
            for callback in callbacks:
                callback(run.steps)

        try:
            take_step = self.step_of(run, model, optimizer)
            train_steps(run, take_step, after_step=after_step if callbacks else None)
            return run.release()
        finally:
            run.close()

    def step_of(self, run: Run, model: nn.Module, optimizer: torch.optim.Optimizer) -> StepFunction:
        """Return the function that takes one step of `run`: it sets the learning rates and steps on the losses."""
        losses_of: Callable[[Any, Any, float], torch.Tensor] = model.losses  # type: ignore[assignment]

        def take_step(batch: Any) -> tuple[torch.Tensor, bool]:
            self.anneal(optimizer, run.steps - 1)
            inputs, targets = batch
            losses = losses_of(inputs, targets, self.pull)
            return losses, run.step(losses)

        return take_step

    def to_settings(self) -> dict[str, Any]:
        """Return the recipe as plain JSON data, for a stored plan."""
        plan = {name: getattr(self.plan, name) for name in _STORED}
        return {"plan": plan} | {each.name: getattr(self, each.name) for each in fields(self) if each.name != "plan"}

    @staticmethod
    def from_settings(settings: Mapping[str, Any]) -> Recipe:
        """Return the recipe that `to_settings` wrote."""
        return Recipe(**{**settings, "plan": DPSGD(**settings["plan"])})


def recipe(
    kind: DataKind | str,
    rows: int,
    features: int,
    classes: int,
    epsilon: float,
    delta: float,
    family: Family | str = Family.LINEAR,
    *,
    beside: tuple[Event, ...] = (),
    clip: float | None = None,
    batch_size: int | None = None,
    epochs: float | None = None,
    learning_rate: float | None = None,
    noise_multiplier: float | None = None,
) -> Recipe:
    """The plan, learning rate and averaging for a model of `privet.training.models`.

    Args:
        kind: a table, or pictures.
        rows: about how many there are, as a public number.
        features: how many inputs the model has.
        classes: how many there are; 0 for regression.
        epsilon, delta: what the whole run may cost.
        family: which model is trained.
        beside: what else is paid from (ε, δ), such as the release of a score.
        clip, batch_size, epochs, learning_rate: in place of what the rules say.
        noise_multiplier: in place of the least that keeps (ε, δ), which is then the caller's to see to.

    >>> found = recipe("table", rows=32_561, features=229, classes=2, epsilon=1.0, delta=1e-5)
    >>> found.steps, found.plan.batch_size, found.plan.clip
    (131, 8141, 0.5)
    """
    both = checked.member("kind", kind, DataKind), checked.member("family", family, Family)
    if both not in _RULES:
        problem = f"is {both[1].value}, and the kind is {both[0].value}"
        raise InvalidInput("family", problem, "ask for the family that privet.training.models.choose took")
    rules = _RULES[both] if checked.count("classes", classes, least=0) else _REGRESSION
    if clip is not None:
        rules = replace(rules, clip=checked.positive("clip", clip))
    usual = min(max(ceil(checked.count("rows", rows) * rules.rate), 1), rules.most)
    batch = usual if batch_size is None else checked.count("batch_size", batch_size)
    # Whatever the steps, together they are about as noisy as one sum over all rows with this deviation.
    whole = analytic_gaussian_sigma(epsilon, delta) / rows
    least, most = rules.steps
    steps = min(max(round(rules.noise / whole / rules.stride), least), most)
    if epochs is not None:
        steps = max(ceil(round(checked.positive("epochs", epochs) * rows / batch, 9)), 1)
    asked = DPSGD(
        clip=rules.clip,
        epsilon=epsilon,
        delta=delta,
        batch_size=batch,
        steps=steps,
        population=rows,
        average=max(1 - _AVERAGED / steps, 0.0),
    )
    if noise_multiplier is not None:
        plan = replace(asked, epsilon=None, noise_multiplier=noise_multiplier)
    else:
        plan = asked.calibrated() if not beside else _beside(asked, epsilon, delta, beside)
    # The rates fall in a straight line, so that their squares sum to a third.
    noise = (plan.noise_multiplier or 0.0) * rules.clip / batch * sqrt(steps / 3)
    rate = min(rules.noise / noise, 5 * rules.stride / rules.clip) * (1 - rules.momentum)
    if learning_rate is not None:
        rate = checked.positive("learning_rate", learning_rate)
    # The centre follows the noisy means by a running average, so that its noise is about √(centre_rate / 2) times one
    # mean's, in every direction; with few rows it had better stay where it is.
    mean = (plan.noise_multiplier or 0.0) / batch / _PULL * sqrt(checked.count("features", features))
    centre_rate = min(0.5, 2 * (_CENTRE_NOISE / mean) ** 2)
    return Recipe(plan, rate, rules.momentum, centre_rate, _PULL * rules.clip)


def _beside(plan: DPSGD, epsilon: float, delta: float, others: tuple[Event, ...]) -> DPSGD:
    """The plan with the least noise for which it and the others together cost at most (ε, δ)."""

    def together(noise: float) -> Event:
        return Composed((replace(plan, epsilon=None, noise_multiplier=noise).event(), *others))

    noise = least_noise(together, epsilon=epsilon, delta=delta, unit=plan.unit())
    return replace(plan, epsilon=None, noise_multiplier=noise)
