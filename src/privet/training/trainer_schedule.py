"""The length of a plan as another library's trainer counts it, and a loader without rows for its loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Generic, TypeVar

from privet.core import InvalidInput
from privet.training.plan import DPSGD

__all__ = ["StepLoader", "TrainerSchedule"]

T = TypeVar("T")


@dataclass(frozen=True)
class TrainerSchedule:
    """How long a plan is, in steps and epochs. Public: the number of units counts only where the plan counts them.

    >>> TrainerSchedule.of(DPSGD(noise_multiplier=1.0, batch_size=100, epochs=2, population=1000), units=987)
    TrainerSchedule(steps=20, epochs=2, steps_per_epoch=10)
    >>> TrainerSchedule.of(DPSGD(noise_multiplier=1.0, batch_size=100, steps=25, sample_rate=0.1), units=987).epochs
    2.5
    """

    steps: int
    """Steps of the whole plan."""
    epochs: float
    """Expected passes over the data of the whole plan."""
    steps_per_epoch: int
    """Steps of one expected pass over the data."""

    @staticmethod
    def of(plan: DPSGD, units: int) -> TrainerSchedule:
        """Return the schedule of a plan for a data set with this many units."""
        steps = plan.sampler(units).steps_of()
        rate = plan.sample_rate
        epoch = 1 / rate if rate is not None else (plan.population or units) / (plan.batch_size or 1)
        epochs = plan.epochs if plan.epochs is not None else steps / epoch
        return TrainerSchedule(steps, epochs, min(steps, max(1, ceil(round(epoch, 6)))))

    def require_steps(self, argument: str, steps: int) -> None:
        """Refuse a trainer's limit that is not the plan's number of steps."""
        if steps != self.steps:
            problem = f"is {steps}, and the plan has {self.steps} steps, for which its noise is meant"
            raise InvalidInput(argument, problem, "leave it out, or give the plan other epochs or steps")


class StepLoader(Generic[T]):
    """Stands for a loader: one entry for each step of an epoch, without rows; these are drawn in the step itself.

    >>> list(StepLoader(3, lambda step: step))
    [0, 1, 2]
    """

    def __init__(self, steps: int, entry: Callable[[int], T]) -> None:
        self._steps, self._entry = steps, entry

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[T]:
        return map(self._entry, range(self._steps))
