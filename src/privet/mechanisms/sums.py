"""Sums of clamped numbers and of clipped vectors, counted in whole steps so that they are exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core import Bounded, InvalidInput, Unit, checked
from privet.mechanisms.contribution import Chunk, Clipper, Limiter, blocks, numbers, times
from privet.mechanisms.grid import MOST_STEPS
from privet.mechanisms.reach import Reach, replaces

__all__ = ["BoundedSum", "Norm", "SumTally", "VectorSum", "checked_bounds"]

_FINE_BITS = 20
# Large enough for every clip, so small that the square of a vector of a billion of them is finite.
_HUGE = 2.0**480
# More than rounding takes away: a norm of n numbers is off by at most n·2^-53 of itself, in any order of summation.
_MARGIN = 1.0 - 2.0**-30
_LARGEST_DIMENSION = 2**22


def checked_bounds(lower: float, upper: float) -> tuple[float, float]:
    """Return the bounds if both are finite and the lower is below the upper; raise `InvalidInput` otherwise."""
    low, high = checked.finite("lower", lower), checked.finite("upper", upper)
    if not low < high:
        raise InvalidInput(
            "upper", f"= {high} is not above lower = {low}", "give the range of the values, lowest first"
        )
    return low, high


@dataclass(frozen=True)
class BoundedSum(Clipper[float]):
    """The sum of clamped numbers, of which one unit makes out at most `rows`.

    Guarantee: every number is clamped to [lower, upper] and rounded to a whole multiple of a power of two, at most
    2^-20 of the larger bound; these integers are added exactly, and cut at ±2^52 steps, so that the stated distance
    holds to the last bit: rows · max(|lower|, |upper|) when someone comes or goes, rows · (max(upper, 0) - min(lower,
    0)) when replaced. What is missing or no number counts as `missing`, infinite numbers as the bounds; nothing raises.

    >>> BoundedSum(0, 100)([41, 250, None]).l1
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
        """Start a sum to which chunks of rows are added."""
        return SumTally(self, Limiter(self.unit, self.rows))

    def steps(self, values: Chunk) -> npt.NDArray[np.int64]:
        """Return each value clamped, in steps.

        Args:
            values: One value for each row.
        """
        clamped = np.clip(numbers(values, self.default), self.lower, self.upper)
        return np.rint(clamped / self.step).astype(np.int64)


class Norm(Enum):
    """How the length of a row is measured. `LINF` clamps each coordinate: right for losses and scores."""

    L1 = "l1"
    L2 = "l2"
    LINF = "linf"


@dataclass(frozen=True)
class VectorSum(Clipper[npt.NDArray[np.float64]]):
    """The sum of vectors no longer than `clip`, of which one unit makes out at most `rows`.

    Guarantee: every row is scaled down to the clip (or clamped, for `LINF`) and then cut towards 0 to whole steps of
    2^-20 of the clip, which makes no row longer; these integers are added exactly, and cut at ±2^52 steps. One row
    moves the sum by the clip, and by twice as much when replaced. A coordinate that is missing counts as 0; nothing
    raises.

    >>> VectorSum(3, 1.0, Norm.L2)([[3, 4, 0], [0, 0, None]]).l2
    1.0
    """

    dimension: int
    clip: float
    norm: Norm = Norm.L2
    unit: Unit = Unit()
    rows: int = 1
    """How many rows of one user are used, the first ones."""

    def __post_init__(self) -> None:
        if checked.count("dimension", self.dimension) > _LARGEST_DIMENSION:
            raise InvalidInput("dimension", f"is {self.dimension}, above {_LARGEST_DIMENSION}", "split the vectors")
        if not isinstance(self.norm, Norm):
            raise InvalidInput("norm", f"is {self.norm!r}", "use Norm.L1, Norm.L2 or Norm.LINF")
        if not 2.0**-400 <= checked.positive("clip", self.clip) <= 2.0**400:
            raise InvalidInput("clip", f"is {self.clip}", "use another unit of measure")
        times(self.unit, self.rows)
        _ = self.reach  # refuses a clip beyond the range of the grid

    @property
    def step(self) -> float:
        """The power of two that coordinates are counted in."""
        return float(2.0 ** (math.frexp(self.clip)[1] - 1 - _FINE_BITS))

    @property
    def reach(self) -> Reach:
        """The clip in whole steps, times the rows of one unit, and twice that when replaced."""
        # Sums of whole numbers are whole, so that only a length in L2 may lie between two steps.
        one = math.ceil(self.clip / self.step) if self.norm is Norm.L2 else math.floor(self.clip / self.step)
        bound = one * times(self.unit, self.rows) * (2 if replaces(self.unit) else 1) * self.step
        return Reach(self.unit, **{self.norm.value: bound}, dimension=self.dimension)  # type: ignore[arg-type]

    def start(self) -> SumTally:
        """Start a sum to which chunks of rows are added."""
        return SumTally(self, Limiter(self.unit, self.rows), np.zeros(self.dimension, dtype=np.int64))

    def steps(self, rows: Chunk) -> npt.NDArray[np.int64]:
        """Return each row clipped, in steps.

        Args:
            rows: One vector for each row.

        Raises:
            InvalidInput: The rows are not vectors of the right length.
        """
        vectors = np.nan_to_num(self._numbers(rows), nan=0.0, posinf=_HUGE, neginf=-_HUGE).clip(-_HUGE, _HUGE)
        if self.norm is Norm.LINF:
            return np.trunc(vectors.clip(-self.clip, self.clip) / self.step).astype(np.int64)
        lengths = np.abs(vectors).sum(1) if self.norm is Norm.L1 else np.sqrt(np.square(vectors).sum(1))
        factors = np.where(lengths <= self.clip * _MARGIN, 1.0, self.clip * _MARGIN / np.maximum(lengths, self.step))
        return np.trunc(vectors * factors[:, None] / self.step).astype(np.int64)

    def _numbers(self, rows: Chunk) -> npt.NDArray[np.float64]:
        """Rows as float64; one that is not a vector of the right length is 0, where not all of them are wrong."""
        try:
            vectors = np.array(rows, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            vectors = np.zeros((len(rows), self.dimension))
            for index, row in enumerate(rows):
                if isinstance(row, (Sequence, np.ndarray)) and len(row) == self.dimension:
                    vectors[index] = numbers(row, 0.0)
        if not len(rows):
            return np.zeros((0, self.dimension))
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension:
            problem = f"have the shape {vectors.shape}, and vectors of {self.dimension} numbers are wanted"
            raise InvalidInput("rows", problem, "give one vector for each row")
        return vectors


@dataclass
class SumTally:
    """The sum of the rows that were added, in whole steps; of numbers, or of vectors."""

    clip: BoundedSum | VectorSum
    limiter: Limiter
    total: Any = field(default=0, repr=False)

    def add(self, rows: Chunk, users: Chunk | None = None) -> None:
        """Add some more rows."""
        for some, theirs in blocks(rows, users):
            steps = self.clip.steps(some)
            self.total = self.total + steps[self.limiter.keep(theirs, len(steps))].sum(0)

    def bounded(self) -> Bounded[Any]:
        """Return the sum, for a mechanism."""
        total = np.clip(self.total, -MOST_STEPS, MOST_STEPS) * self.clip.step
        return self.clip.reach.of(total if total.ndim else float(total))
