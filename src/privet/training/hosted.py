"""What loops that are not ours share when they host a run: how long an epoch is, and a loader without rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil
from typing import Generic, TypeVar

from privet.training.plan import DPSGD

__all__ = ["Steps", "epochs_of", "steps_per_epoch"]

T = TypeVar("T")


def steps_per_epoch(plan: DPSGD, units: int) -> int:
    """How many steps an expected pass over the data takes; public, since `units` counts only where the plan counts.

    >>> steps_per_epoch(DPSGD(noise_multiplier=1.0, batch_size=100, epochs=2, population=1000), units=987)
    10
    """
    return min(plan.sampler(units).steps_of(), max(1, ceil(round(_epoch(plan, units), 6))))


def epochs_of(plan: DPSGD, units: int) -> float:
    """How many expected passes over the data the plan has.

    >>> epochs_of(DPSGD(noise_multiplier=1.0, batch_size=100, steps=25, sample_rate=0.1), units=987)
    2.5
    """
    return plan.epochs if plan.epochs is not None else plan.sampler(units).steps_of() / _epoch(plan, units)


def _epoch(plan: DPSGD, units: int) -> float:
    if plan.sample_rate is not None:
        return 1 / plan.sample_rate
    return (plan.population or units) / (plan.batch_size or 1)


class Steps(Generic[T]):
    """Stands for a loader: one entry for each step of an epoch, without rows; these are drawn in the step itself.

    >>> list(Steps(3, lambda step: step))
    [0, 1, 2]
    """

    def __init__(self, steps: int, entry: Callable[[int], T]) -> None:
        self._steps, self._entry = steps, entry

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[T]:
        return map(self._entry, range(self._steps))
