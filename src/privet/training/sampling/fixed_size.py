"""Batches of a fixed size, each drawn without replacement and afresh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from privet.core import Event, InvalidInput, Leaf, Neighbours, Repeated, Sampled, WithoutReplacement
from privet.core.random import PATIENCE, Rng, broken_source
from privet.training.sampling.protocol import IndependentSteps, Indices, SampledBatch, State, planned, whole

__all__ = ["FixedSizeSampler"]

# Marking rows in a table of all of them beats sorting unless there are more than this many rows for each one drawn.
_ROOM: Final = 256


@dataclass(frozen=True)
class FixedSizeSampler(IndependentSteps):
    """In each step, `batch_size` different rows of `rows`, every such set being equally likely.

    The number of rows decides the chance of each, so it must be public: the guarantee is for replace and zero-out
    neighbours, and add/remove is not offered.

    >>> from privet.core.random import SeededRng
    >>> FixedSizeSampler(batch_size=3, rows=10, steps=5).draw(0, SeededRng(1)).units
    3
    """

    batch_size: int
    rows: int
    steps: int
    neighbours: ClassVar[frozenset[Neighbours]] = frozenset({Neighbours.ZERO_OUT, Neighbours.REPLACE})

    def __post_init__(self) -> None:
        for name in ("batch_size", "rows", "steps"):
            object.__setattr__(self, name, whole(name, getattr(self, name)))
        if self.batch_size > self.rows:
            problem = f"is {self.batch_size}, above the {self.rows} rows there are"
            raise InvalidInput("batch_size", problem, "a row is drawn once in a batch; use a smaller one")

    def draw(self, step: int, rng: Rng) -> SampledBatch:
        """Draw `batch_size` different rows uniformly.

        Args:
            step: Number of the step, counted from 0 over the whole run.
            rng: Source of randomness.

        Returns:
            The rows in ascending order.

        Raises:
            InvalidInput: The step is not part of the plan.
        """
        planned(step, self.steps)
        few = min(self.batch_size, self.rows - self.batch_size)
        if self.rows > _ROOM * few and few == self.batch_size:
            return SampledBatch.of_rows(_listed(few, self.rows, rng))
        inside = _marked(few, self.rows, rng)
        return SampledBatch.of_rows(np.flatnonzero(inside if few == self.batch_size else ~inside))

    def event(self, per_step: Leaf, steps: int) -> Event:
        """Return the event of some steps whose batches are drawn without replacement.

        Args:
            per_step: Event of one step on its batch, before subsampling.
            steps: Number of steps.
        """
        by = WithoutReplacement(self.batch_size, self.rows)
        return Repeated(Sampled(per_step, by), whole("steps", steps, 0))

    def state(self) -> State:
        """Return the plan alone, because no step depends on an earlier one."""
        return {"kind": "fixed size", "batch_size": self.batch_size, "rows": self.rows, "steps": self.steps}


# Both take the first `count` different values among uniform draws, which is a uniform subset. Each round draws as many
# as are missing, so that no value has to be thrown away for coming too late. At most half of the rows is asked for.


def _listed(count: int, rows: int, rng: Rng) -> Indices:
    """The subset in ascending order, at a cost that does not grow with the rows."""
    found = np.empty(0, dtype=np.int64)
    for _ in range(PATIENCE):
        if len(found) == count:
            return found
        found = np.unique(np.concatenate([found, rng.below(rows, count - len(found))]))
    raise broken_source()


def _marked(count: int, rows: int, rng: Rng) -> npt.NDArray[np.bool_]:
    """The subset as marks on the rows: faster unless it is a very small part of them."""
    inside, missing = np.zeros(rows, dtype=np.bool_), count
    for _ in range(PATIENCE):
        if not missing:
            return inside
        inside[rng.below(rows, missing)] = True
        missing = count - int(np.count_nonzero(inside))
    raise broken_source()
