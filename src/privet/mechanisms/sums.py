"""The sum of numbers that are clamped to public bounds, counted in whole steps so that it is exact."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from privet.core import checked
from privet.core.bounded import Bounded
from privet.core.errors import InvalidInput
from privet.core.unit import Unit
from privet.mechanisms.contribution import Chunk, Clipper, Limiter, blocks, numbers, times
from privet.mechanisms.grid import MOST_STEPS
from privet.mechanisms.reach import Reach, replaces

__all__ = ["Sum", "SumTally", "checked_bounds"]

_FINE_BITS = 20


def checked_bounds(lower: float, upper: float) -> tuple[float, float]:
    """Two finite numbers, the first below the second."""
    low, high = checked.finite("lower", lower), checked.finite("upper", upper)
    if not low < high:
        raise InvalidInput(
            "upper", f"= {high} is not above lower = {low}", "give the range of the values, lowest first"
        )
    return low, high


@dataclass(frozen=True)
class Sum(Clipper[float]):
    """The sum of clamped numbers, of which one unit makes out at most `rows`.

    Guarantee: every number is clamped to [lower, upper] and rounded to a whole multiple of a power of two, at most
    2^-20 of the larger bound; these integers are added exactly, and cut at ±2^52 steps, so that the stated distance
    holds to the last bit: rows · max(|lower|, |upper|) when someone comes or goes, rows · (max(upper, 0) - min(lower,
    0)) when replaced. What is missing or no number counts as `missing`, infinite numbers as the bounds; nothing raises.

    >>> Sum(0, 100)([41, 250, None]).l1
    100.0
    """

    lower: float
    upper: float
    unit: Unit = Unit()
    rows: int = 1
    """How many rows of one user are used, the first ones."""
    missing: float | None = None
    """What stands for a missing value; unless stated, the number nearest to 0 within the bounds."""

    def __post_init__(self) -> None:
        low, high = checked_bounds(self.lower, self.upper)
        times(self.unit, self.rows)
        if self.missing is not None and not low <= checked.finite("missing", self.missing) <= high:
            raise InvalidInput("missing", f"is {self.missing}, outside of the bounds", "use a number within them")
        _ = self.reach  # refuses bounds beyond the range of the grid

    @property
    def default(self) -> float:
        """What a missing value counts as."""
        return self.missing if self.missing is not None else min(max(0.0, self.lower), self.upper)

    @property
    def step(self) -> float:
        """The power of two that values are counted in."""
        return float(2.0 ** (math.frexp(max(abs(self.lower), abs(self.upper)))[1] - 1 - _FINE_BITS))

    @property
    def reach(self) -> Reach:
        """The largest multiple of the step that a row can add, times the rows of one unit."""
        low, high = round(self.lower / self.step), round(self.upper / self.step)
        steps = max(high, 0) - min(low, 0) if replaces(self.unit) else max(abs(low), abs(high))
        rises = not replaces(self.unit) and low >= 0
        return Reach(self.unit, linf=steps * times(self.unit, self.rows) * self.step, monotone=rises)

    def start(self) -> SumTally:
        """A sum to which chunks of rows are added."""
        return SumTally(self, Limiter(self.unit, self.rows))

    def steps(self, values: Chunk) -> npt.NDArray[np.int64]:
        """Each value clamped, in steps."""
        found = np.clip(numbers(values, self.default), self.lower, self.upper)
        return np.rint(found / self.step).astype(np.int64)


@dataclass
class SumTally:
    """A sum so far, in whole steps."""

    clip: Sum
    limiter: Limiter
    total: int = field(default=0, repr=False)

    def add(self, values: Chunk, users: Chunk | None = None) -> None:
        """Some more rows."""
        for some, theirs in blocks(values, users):
            steps = self.clip.steps(some)
            self.total += int(steps[self.limiter.keep(theirs, len(steps))].sum())

    def bounded(self) -> Bounded[float]:
        """The sum, for a mechanism."""
        return self.clip.reach.of(min(max(self.total, -MOST_STEPS), MOST_STEPS) * self.clip.step)
