"""Default settings of a private run: one set of heuristics for all data, none of it tuned on your data.

Inputs of a linear model have a norm of about 1 here, so the noise of all steps together changes a logit with a standard
deviation of √(Σ lr²) · noise_multiplier · clip / batch. This number matters most: if it is small, the model is
undertrained; if it is large, noise dominates the data. The best value was about 1 for every data set and ε in
benchmarks/accuracy, so the learning rate follows from the noise.
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
    """Kind of training data."""

    TABLE = "table"
    PICTURES = "pictures"


@dataclass(frozen=True)
class _Rules:
    clip: float
    noise: float
    """Standard deviation that the noise of all steps together may add to a logit."""
    stride: float
    """Length of the first step: learning rate times clip."""
    steps: tuple[int, int] = (100, 400)
    """The fewest and the most steps."""
    rate: float = 1 / 4
    """The share of the rows in a batch."""
    most: int = 16384
    """The most rows in a batch."""
    momentum: float = 0.0


# Labels of pictures are nearly certain, and a small clip emphasizes the examples that are still misclassified. In a
# table the same row may have either label, and a small clip would bias the predicted probabilities.
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
"""The center's part of an example's gradient, divided by the clip: it takes 4 % of the squared norm."""
_CENTRE_NOISE = 0.1
"""Accepted norm of the noise on the center, where inputs have unit norm."""
_STORED = ("clip", "delta", "noise_multiplier", "batch_size", "steps", "population", "average")
"""The fields of a plan that a recipe sets."""
_AVERAGED = 10
"""The decay of the average is 1 − 10 / steps: it covers about the last tenth of the steps."""


@dataclass(frozen=True)
class Recipe:
    """A plan with its optimizer settings. All of it is public: it follows from kind, shape, rows, ε and δ."""

    plan: DPSGD
    """The calibrated plan."""
    learning_rate: float
    """Learning rate of the first step; it decays linearly to zero."""
    momentum: float
    centre_rate: float
    """Fraction by which the center moves toward the mean of the inputs in the first step."""
    pull: float
    """Weight of the center in an example's gradient, for a model's `losses`."""

    @property
    def steps(self) -> int:
        """Number of steps."""
        return self.plan.steps or 0

    @property
    def epochs(self) -> float:
        """Average number of times that a row is used."""
        return self.steps * (self.plan.batch_size or 0) / (self.plan.population or 1)

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Return an SGD optimizer of a model's parameters.

        Args:
            model: The model. The parameters of its center, if it has one, get a learning rate of their own.
        """
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
        """Set the learning rates for a step; they decay linearly to zero.

        Args:
            optimizer: What `optimizer` returned. A resumed run may have loaded older rates into it.
            step: Number of the step, counted from 0.
        """
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
            callbacks: Functions that are called with the number of each finished step.
            users: The user of each row, or `UserRows`; users, instead of rows, are then protected.
            rng: A seeded generator for tests, which taints the release.

        Returns:
            The trained model and its guarantee.

        Raises:
            InvalidInput: The model or the data set cannot be used for private training.

        Guarantee: that of the plan's event, for one example (or user) and add/remove neighbors (see `DPSGD`): the
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
        """Return the function that takes one step of a run: it sets the learning rates and steps on the losses.

        Args:
            run: The run of this recipe's plan.
            model: The model of the run, which has `losses`.
            optimizer: The optimizer of the run.
        """
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
        """Return the recipe that `to_settings` wrote.

        Args:
            settings: The plain data that `to_settings` returned.
        """
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
    """Return the plan, learning rate and averaging for a model of `privet.training.models`.

    Args:
        kind: Kind of the data: a table, or pictures.
        rows: Public, approximate number of rows.
        features: Number of inputs of the model.
        classes: Number of classes; 0 for regression.
        epsilon: ε that the whole run may spend.
        delta: δ that the whole run may spend.
        family: Family of the model.
        beside: Other events that are charged to the same (ε, δ), such as the release of a score.
        clip: Clipping norm, in place of the default heuristic's.
        batch_size: Expected number of rows in a batch, in place of the default heuristic's.
        epochs: Length of the run in epochs, in place of the default heuristic's.
        learning_rate: Learning rate of the first step, in place of the default heuristic's.
        noise_multiplier: Noise multiplier, in place of the smallest that meets (ε, δ). The caller must then make sure
            that (ε, δ) is met.

    Returns:
        The recipe, with a calibrated plan.

    Raises:
        InvalidInput: The family does not fit the kind of data, a number is out of range, or no noise meets (ε, δ).

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
    # For any number of steps, their total noise is about that of one sum over all rows with this deviation.
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
    # The rates decay linearly, so that their squares sum to a third of those of a constant rate.
    noise = (plan.noise_multiplier or 0.0) * rules.clip / batch * sqrt(steps / 3)
    rate = min(rules.noise / noise, 5 * rules.stride / rules.clip) * (1 - rules.momentum)
    if learning_rate is not None:
        rate = checked.positive("learning_rate", learning_rate)
    # The center is a running average of the noisy means, so that its noise is about √(centre_rate / 2) times that of
    # one mean, in every direction. With few rows it should hardly move.
    mean = (plan.noise_multiplier or 0.0) / batch / _PULL * sqrt(checked.count("features", features))
    centre_rate = min(0.5, 2 * (_CENTRE_NOISE / mean) ** 2)
    return Recipe(plan, rate, rules.momentum, centre_rate, _PULL * rules.clip)


def _beside(plan: DPSGD, epsilon: float, delta: float, others: tuple[Event, ...]) -> DPSGD:
    """Return the plan with the least noise for which it and the other events together cost at most (ε, δ)."""

    def together(noise: float) -> Event:
        return Composed((replace(plan, epsilon=None, noise_multiplier=noise).event(), *others))

    noise = least_noise(together, epsilon=epsilon, delta=delta, unit=plan.unit())
    return replace(plan, epsilon=None, noise_multiplier=noise)
