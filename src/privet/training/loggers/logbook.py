"""From finished steps to the lines of logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from math import ceil, floor

import torch
from torch import nn

from privet.accounting import epsilon as price
from privet.core import Whose, checked
from privet.training.fit import Progress
from privet.training.loggers.log_entry import Log, LogEntry, check_names
from privet.training.plan import DPSGD, BatchSampling
from privet.training.state import modes_restored

__all__ = ["Logbook"]

_PRICED = 24
"""ε is worked out at so many counts of steps, evenly spaced; between them the next one's holds."""


class Logbook:
    """Writes the progress and the privacy cost of a run to its logs; a callback of `fit`.

    >>> plan = DPSGD(noise_multiplier=1.1, delta=1e-5, batch_size=256, epochs=60, population=60_000)
    >>> reached = Logbook(plan).reached(14_063)
    >>> round(reached.epoch), f"{reached.epsilon:.2f}"
    (60, '2.38')
    """

    def __init__(
        self,
        plan: DPSGD,
        logs: Sequence[Log] = (),
        *,
        rows: int = 0,
        whose: Whose = Whose.EXAMPLE,
        delta: float | None = None,
        every: int | None = None,
        scores: Mapping[str, Callable[[nn.Module], float]] | None = None,
    ) -> None:
        """Check all arguments, before a run is charged.

        Args:
            plan: Plan of the run.
            logs: Logs to write to. In distributed training, give them to process 0 only.
            rows: Number of units, where the plan uses it.
            whose: Whether a unit is one example or one user.
            delta: δ at which the ε spent so far is stated; by default the plan's.
            every: Number of steps between two entries; by default one entry for each epoch. The last step always has
                an entry.
            scores: Functions of the model by name, such as its accuracy on a public test file, for each entry. The
                model is in eval mode then, and no gradients are kept. **They must not read private rows**: only then
                are their values post-processing of the model, without a privacy cost.

        Raises:
            InvalidInput: An argument is wrong, or the plan has no finite privacy cost at this δ.
        """
        self._delta = plan.stated_delta(delta)
        self._every = None if every is None else checked.count("every", every)
        self._scores = dict(scores or {})
        self._plan = plan.calibrated(rows, whose)
        self._unit = plan.unit(whose)
        units = rows or plan.population or 1
        self._sampler = self._plan.sampler(units)
        self._total = self._sampler.steps_of()
        self._rate = _rate(plan, units, self._total)
        self._prices: dict[int, float] = {}
        self._logs = tuple(logs)
        names = check_names("scores", self._scores)
        self.reached(self._total)  # so that a plan that cannot be priced is refused now
        for log in self._logs:
            log.begin(names)

    def __call__(self, progress: Progress) -> None:
        """Write an entry to every log, if one is due after this step.

        Args:
            progress: The step.
        """
        if self._logs and self.due(progress.step):
            reached = self._reached(progress.step, self._scored(progress.model))
            for log in self._logs:
                log.write(reached)

    def due(self, step: int) -> bool:
        """Return whether an entry is written after a step.

        Args:
            step: Number of steps so far.
        """
        if step >= self._total or self._every is not None:
            return step >= self._total or step % (self._every or 1) == 0
        return floor(step * self._rate + 1e-9) > floor((step - 1) * self._rate + 1e-9)

    def reached(self, step: int) -> LogEntry:
        """Return the entry after some steps, without scores; for a progress bar.

        Args:
            step: Number of steps so far.
        """
        return self._reached(step, ())

    def internal(self, step: int, values: Mapping[str, float]) -> None:
        """Write values that depend on private rows, such as a training loss, to logs opened with `internal=True`.

        Args:
            step: Number of the step.
            values: Internal values by name.

        Raises:
            InvalidInput: A name cannot be used in a log.
        """
        names = check_names("values", values)
        for log in self._logs:
            log.write_internal(step, {name: float(values[name]) for name in names})

    def close(self) -> None:
        """Close every log."""
        for log in self._logs:
            log.close()

    def _reached(self, step: int, scores: tuple[tuple[str, float], ...]) -> LogEntry:
        now = datetime.now(UTC).replace(microsecond=0)
        return LogEntry(step, self._total, step * self._rate, self._spent(step), self._delta, now, scores)

    def _spent(self, step: int) -> float:
        """Return an upper bound on the ε of `step` steps: that of the next priced count, at most that of the plan."""
        place = ceil(min(step, self._total) * _PRICED / self._total)
        count = ceil(place * self._total / _PRICED)
        # What begins costs no more than the whole, whatever a coarser method finds for it.
        return min(self._price(count), self._price(self._total))

    def _price(self, steps: int) -> float:
        if steps not in self._prices:
            event = self._sampler.event(self._plan.clipping.leaf(self._plan.noise_multiplier or 0.0), steps)
            self._prices[steps] = price(event, self._delta, unit=self._unit).epsilon.upper
        return self._prices[steps]

    def _scored(self, model: nn.Module) -> tuple[tuple[str, float], ...]:
        if not self._scores:
            return ()
        with modes_restored(model), torch.no_grad():
            model.eval()
            return tuple((name, float(score(model))) for name, score in self._scores.items())


def _rate(plan: DPSGD, units: int, steps: int) -> float:
    """Return the fraction of an epoch that one step is."""
    if plan.batches is BatchSampling.SHUFFLED:
        return (plan.epochs or 1) / steps
    return plan.sample_rate if plan.sample_rate is not None else (plan.batch_size or 1) / (plan.public(units) or 1)
