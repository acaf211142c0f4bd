"""The plan of a private training run: every setting that the guarantee depends on, fixed before data is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from math import ceil
from typing import TYPE_CHECKING, Any

from privet.accounting import epsilon as price
from privet.accounting import least
from privet.core import Event, Guarantee, InvalidInput, Neighbours, Unit, Whose, checked
from privet.training.clipping import Adaptive, Automatic, Clipping, Flat, PerLayer
from privet.training.noise import Noise
from privet.training.sampling import FixedSizeSampler, PoissonSampler, Sampler, ShuffledSampler

if TYPE_CHECKING:
    import torch
    from torch import nn

    from privet.core.random import Rng
    from privet.ledger import Budget
    from privet.training.budget_charge import BudgetCharge
    from privet.training.explain import Explanation
    from privet.training.performance import Performance
    from privet.training.rules import OperationRule
    from privet.training.run import Run
    from privet.training.sampling import Ids, UserRows

__all__ = ["DPSGD", "BatchSampling", "Noise"]


class BatchSampling(Enum):
    """How batches are drawn."""

    POISSON = "poisson"
    FIXED_SIZE = "fixed-size"
    SHUFFLED = "shuffled"


@dataclass(frozen=True)
class DPSGD:
    """A plan for DP-SGD (Abadi et al. 2016): what is clipped, how batches are drawn, how much noise, how many steps.

    Give the noise as `noise_multiplier`, or as (`epsilon`, `delta`) to be met. Give the length of the run as
    `batch_size` and `epochs`, or as `sample_rate` and `steps` (with `batch_size`, by which sums are divided).

    Guarantee: that of `event(…)` for `unit(…)`. Each step releases the sum of gradients of which no unit's part is
    longer than `clip`, with normal noise of deviation noise_multiplier · clip, and everything after it (the division
    by a public number, momentum, Adam, averaging) is post-processing. With `population`, or with `sample_rate` and
    `steps`, nothing but the rows themselves depends on how many there are, and the unit is add/remove; else the
    number of rows is read from the data, is public by definition, and the unit is zero-out.

    >>> plan = DPSGD(noise_multiplier=1.1, clip=1.0, batch_size=256, epochs=60, population=60_000)
    >>> print(plan.guarantee(delta=1e-5))
    (ε ≤ 2.382, δ = 1e-05) for one example, add/remove, central [pld]
    """

    clip: float = 1.0
    epsilon: float | None = None
    delta: float | None = None
    noise_multiplier: float | None = None
    batch_size: int | None = None
    epochs: float | None = None
    sample_rate: float | None = None
    steps: int | None = None
    population: int | None = None
    """Public number of units: a rounded number, or one that was published before."""
    batches: BatchSampling = BatchSampling.POISSON
    neighbours: Neighbours | None = None
    """Neighbor relation of the guarantee; by default the strongest relation that the sampling proves."""
    clipping: Clipping = field(default=Flat())
    noise: Noise = Noise.REAL
    average: float = 0.0
    """Release the running average of the weights with this decay, such as 0.99; 0 releases the last ones.

    After t steps the decay is at most t / (t + 9), so that the initial weights are forgotten quickly."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "batches", checked.member("batches", self.batches, BatchSampling))
        object.__setattr__(self, "noise", checked.member("noise", self.noise, Noise))
        if self.neighbours is not None:
            object.__setattr__(self, "neighbours", checked.member("neighbours", self.neighbours, Neighbours))
        object.__setattr__(self, "clip", checked.positive("clip", self.clip))
        if not isinstance(self.clipping, (Flat, PerLayer, Automatic, Adaptive)):
            advice = "give one of Flat(), PerLayer(), Automatic() and Adaptive(), from privet.training"
            raise InvalidInput("clipping", f"is {self.clipping!r}, which is no way to clip", advice)
        if not 0 <= checked.finite("average", self.average) < 1:
            raise InvalidInput("average", f"is {self.average}", "give a decay below 1, such as 0.999, or 0 for none")
        self._check_noise()
        self._check_length()

    def _check_noise(self) -> None:
        if (self.noise_multiplier is None) == (self.epsilon is None):
            both = self.epsilon is not None
            problem = "is given together with epsilon" if both else "is not given, and neither is epsilon"
            raise InvalidInput("noise_multiplier", problem, "give the noise, or the epsilon (and delta) that it meets")
        if self.epsilon is not None:
            checked.positive("epsilon", self.epsilon)
            if self.delta is None:
                problem = "is missing, and epsilon alone is no guarantee for normal noise"
                raise InvalidInput("delta", problem, "give one below 1 over the number of rows, such as 1e-5")
        if self.delta is not None and not checked.share("delta", self.delta) > 0:
            raise InvalidInput("delta", "is 0, which no normal noise meets", "give one such as 1e-5")
        if self.noise_multiplier is not None:
            checked.nonnegative("noise_multiplier", self.noise_multiplier)

    def _check_length(self) -> None:
        if self.batch_size is None:
            problem = "is missing, and noisy sums are divided by it" if self.sample_rate is not None else "is missing"
            raise InvalidInput("batch_size", problem, "give the expected number of rows of a batch, such as 256")
        checked.count("batch_size", self.batch_size)
        if (self.epochs is None) == (self.steps is None):
            problem = "is given together with steps" if self.steps is not None else "is not given, and neither is steps"
            raise InvalidInput("epochs", problem, "give the length of the run as one of the two")
        if self.epochs is not None:
            checked.positive("epochs", self.epochs)
        if self.steps is not None:
            checked.count("steps", self.steps)
        if self.population is not None:
            checked.count("population", self.population)
        if self.sample_rate is not None:
            checked.probability("sample_rate", self.sample_rate)
            if self.batches is not BatchSampling.POISSON:
                raise InvalidInput(
                    "sample_rate", f"is given, and {self.batches.value} batches have none", "leave it out"
                )
            if self.steps is None:
                raise InvalidInput("epochs", "is given with sample_rate", "give steps: an epoch is then 1/sample_rate")
        if self.batches is BatchSampling.SHUFFLED and (self.epochs is None or self.epochs != int(self.epochs)):
            raise InvalidInput("epochs", f"is {self.epochs}", "shuffled batches need a whole number of epochs")

    @property
    def counts_rows(self) -> bool:
        """Whether the plan uses the number of rows of the data set, which is then public by definition."""
        return self.batches is not BatchSampling.POISSON or (self.population is None and self.sample_rate is None)

    def public(self, rows: int) -> int | None:
        """Return the number of units that may be published.

        Args:
            rows: Number of units in the data set.

        Returns:
            `rows` where the plan uses that number; otherwise the plan's `population`, which is None where the number
            of units is private.
        """
        return rows if self.counts_rows else self.population

    def sampler(self, rows: int) -> Sampler:
        """Return the sampler that draws the batches.

        Args:
            rows: Number of units in the data set.

        Returns:
            The sampler of the plan's kind, with the plan's number of steps.

        Raises:
            InvalidInput: The batch size is missing or larger than the number of units, or `population` differs from
                `rows` for batches that need the exact number.
        """
        if self.batch_size is None:
            raise InvalidInput("batch_size", "is missing")
        public = self.population if self.population is not None else rows
        if self.batches is not BatchSampling.POISSON and public != rows:
            problem = f"is {public}, and {self.batches.value} batches need the exact number of rows"
            raise InvalidInput("population", problem, "leave it out, or draw Poisson batches")
        if self.batches is BatchSampling.SHUFFLED:
            return ShuffledSampler(self.batch_size, rows, int(self.epochs or 0))
        if self.sample_rate is None and self.batch_size > public:
            most, advice = f"population={public}", "give a smaller one, or the population that there is"
            if self.population is None:
                most = f"the {public} units there are"
                advice = "give a smaller one; or a tuple (X, Y), if the data set is a list [X, Y]: lists hold rows"
            raise InvalidInput("batch_size", f"is {self.batch_size}, above {most}", advice)
        steps = self.steps or ceil(round((self.epochs or 0) * public / self.batch_size, 9))
        if self.batches is BatchSampling.FIXED_SIZE:
            return FixedSizeSampler(self.batch_size, rows, steps)
        rate = self.sample_rate if self.sample_rate is not None else self.batch_size / public
        return PoissonSampler(rate, steps, rows)

    def unit(self, whose: Whose = Whose.EXAMPLE) -> Unit:
        """Return the privacy unit: whose data is protected, and under which neighbor relation.

        Args:
            whose: Whether a unit is one example or one user.

        Returns:
            The unit, with the plan's neighbor relation, or the strongest one that the sampling proves.

        Raises:
            InvalidInput: The sampling does not prove the plan's neighbor relation.
        """
        proven = self._proven()
        neighbours = self.neighbours or next(iter(proven))
        if neighbours not in proven:
            others = " or ".join(each.value for each in proven)
            if self.batches is not BatchSampling.POISSON:
                why = f"{self.batches.value} batches are of a number of rows that everybody knows"
                advice = f"draw Poisson batches, or use {others}"
            elif neighbours is Neighbours.ADD_REMOVE:
                why, advice = "the number of rows is read from the data", "give population=, or sample_rate= and steps="
            else:
                why, advice = "the sampling does not prove it", f"use {others}"
            raise InvalidInput("neighbours", f"is {neighbours.value}, and {why}", advice)
        return Unit(whose=whose, neighbours=neighbours)

    def _proven(self) -> tuple[Neighbours, ...]:
        if self.counts_rows:
            return (Neighbours.ZERO_OUT, Neighbours.REPLACE)
        return (Neighbours.ADD_REMOVE, Neighbours.ZERO_OUT, Neighbours.REPLACE)

    def calibrated(self, rows: int = 0, whose: Whose = Whose.EXAMPLE) -> DPSGD:
        """Return the plan with the smallest noise multiplier, to within 0.1 %, that meets (epsilon, delta).

        Args:
            rows: Number of units in the data set; needed only where the plan uses it (see `counts_rows`).
            whose: Whether a unit is one example or one user.

        Returns:
            The calibrated plan, which has `noise_multiplier` in place of `epsilon`. A plan that was given its noise
            multiplier is returned unchanged.

        Raises:
            InvalidInput: No noise meets (epsilon, delta) in this number of steps, or `rows` is missing.
        """
        if self.epsilon is None or self.delta is None:
            return self
        sampler = self.sampler(self._rows(rows))
        try:
            noise = least(
                lambda noise: sampler.event(self.clipping.leaf(noise), sampler.steps_of()),
                epsilon=self.epsilon,
                delta=self.delta,
                unit=self.unit(whose),
            )
        except InvalidInput as error:
            if error.argument != "epsilon":
                raise
            problem = f"is {self.epsilon:g} at delta {self.delta:g}, which {sampler.steps_of():,} steps cannot meet"
            advice = "allow a larger epsilon or delta, or plan fewer steps or smaller batches"
            raise InvalidInput("epsilon", problem, advice) from error
        return replace(self, noise_multiplier=noise, epsilon=None)

    def event(self, rows: int = 0) -> Event:
        """Return the privacy event of the whole run, which is known before any data is read.

        Args:
            rows: Number of units in the data set; needed only where the plan uses it (see `counts_rows`).

        Returns:
            The event of all steps, with the calibrated noise.

        Raises:
            InvalidInput: No noise meets the plan's (epsilon, delta), or `rows` is missing.
        """
        plan = self.calibrated(rows)
        sampler = plan.sampler(self._rows(rows))
        return sampler.event(plan.clipping.leaf(plan.noise_multiplier or 0.0), sampler.steps_of())

    def guarantee(self, delta: float | None = None, rows: int = 0, whose: Whose = Whose.EXAMPLE) -> Guarantee:
        """Return the privacy guarantee of the whole run.

        Args:
            delta: δ at which ε is stated; by default the plan's.
            rows: Number of units in the data set; needed only where the plan uses it (see `counts_rows`).
            whose: Whether a unit is one example or one user.

        Returns:
            The guarantee for `unit(whose)`.

        Raises:
            InvalidInput: No δ is given, `rows` is missing, or no noise meets the plan's (epsilon, delta).
        """
        return price(self.event(rows), self.stated_delta(delta), unit=self.unit(whose))

    def stated_delta(self, delta: float | None = None) -> float:
        """Return the δ at which ε is stated: the given one, or else the plan's.

        Args:
            delta: A δ that replaces the plan's.

        Returns:
            A number from 0 to 1.

        Raises:
            InvalidInput: Neither is given, so that no ε can be stated.
        """
        chosen = delta if delta is not None else self.delta
        if chosen is None:
            problem = "is missing, and without it no ε can be stated"
            raise InvalidInput("delta", problem, "give one below 1 over the number of rows, such as delta=1e-5")
        return checked.share("delta", chosen)

    def _rows(self, rows: int) -> int:
        if rows:
            return rows
        if self.counts_rows:
            raise InvalidInput("rows", "is missing, and the plan counts them", "give rows=, or population= in the plan")
        return self.population or 1

    def explain(
        self,
        model: nn.Module,
        dataset: Any = None,
        *,
        loss: Callable[[Any], torch.Tensor] | None = None,
        collate_fn: Any = None,
        performance: Performance | None = None,
        rules: Mapping[str, OperationRule] | None = None,
    ) -> Explanation:
        """Explain what a run would do with a model: the rule, memory and time of each layer, and what is refused.

        This costs no privacy: only the shapes and types of the data set's first row are used, and the model is run on
        synthetic values. The model and the state of the random generators are unchanged afterwards.

        Args:
            model: Any module.
            dataset: Tensors, or a data set with a length. Without one, the shape of a row is guessed from the model's
                first layer.
            loss: Function from a batch to its per-example losses, as in your training loop. It is needed where the
                model is not simply called on the batch, on the first of a pair, or on the entries of a dict.
            collate_fn: Function that makes a batch of rows, as in torch's `DataLoader`.
            performance: Options that change neither the result nor the guarantee.
            rules: Gradient rules for further operations.

        Returns:
            The explanation, which prints as a table.

        Raises:
            InvalidInput: The losses cannot be computed on a synthetic batch.
        """
        from privet.training.explain import explain

        return explain(self, model, dataset, loss=loss, collate_fn=collate_fn, performance=performance, rules=rules)

    def attach(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        dataset: Any,
        *,
        charge: BudgetCharge | Budget | None = None,
        users: UserRows | Ids | None = None,
        resume: str | os.PathLike[str] | None = None,
        collate_fn: Any = None,
        performance: Performance | None = None,
        rules: Mapping[str, OperationRule] | None = None,
        rng: Rng | None = None,
        journal: str | os.PathLike[str] | None = None,
        delta: float | None = None,
    ) -> Run:
        """Start a run: calibrate the noise, check model, optimizer and data set, and reserve the charge. Or resume one.

        A resumed run has as many steps left as its journal says have not started; steps that were lost in a crash are
        not repeated. However often it is resumed, it takes no more steps than the plan has, with fresh noise for each,
        so that its guarantee is the plan's, under the charge that it has paid already. Another plan, model, optimizer
        or data set, a file that was cut or edited, and a run that is still open or was released, are refused, and
        nothing is changed.

        Args:
            model: Any module; it is not wrapped.
            optimizer: Any optimizer of `model`'s parameters.
            dataset: Tensors, or a data set with a length; never a loader, whose batches are not those of the plan.
            charge: The budget to charge, as `Ledger.budget` returns it, or a `BudgetCharge`, which also has the data's
                fingerprint and a purpose. None charges no budget.
            users: The user of each row, or `UserRows`, which also says how many rows of a user a batch may hold (one
                by default). Users, instead of rows, are then protected, sampled and clipped.
            resume: A checkpoint that `Run.save` wrote; its journal must have the same relative path as then.
                Model and optimizer are built as they were, and their state is overwritten; data set, charge and users
                are those that the run was attached with.
            collate_fn: Function that makes a batch of rows, as in torch's `DataLoader`.
            performance: Options that change neither the result nor the guarantee.
            rules: Gradient rules for further operations.
            rng: A seeded generator for tests, which taints the release; a resumed run has other noise each time.
            journal: Path of the run's journal, if the run is saved; by default next to its first checkpoint.
            delta: δ at which the release states its ε, where the plan has none.

        Returns:
            The run, before its first step.

        Raises:
            InvalidInput: An argument cannot be used for private training; nothing is charged then.
            BudgetExceeded: The plan does not fit into the budget.
            CheckpointError: The checkpoint or its journal cannot be read or trusted.
        """
        from privet.training.attach import RunSetup

        setup = RunSetup(
            self, model, optimizer, dataset, charge, users, collate_fn, performance, rules, rng, journal, delta
        )
        return setup.start(resume)
