"""The sum of vectors that are clipped to a norm: means of many numbers at once, and scores to choose by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core import checked
from privet.core.bounded import Bounded
from privet.core.errors import InvalidInput
from privet.core.unit import Unit
from privet.mechanisms.contribution import Chunk, Clipper, Limiter, blocks, numbers, times
from privet.mechanisms.grid import MOST_STEPS
from privet.mechanisms.reach import Reach, replaces

__all__ = ["Norm", "VectorSum", "VectorTally"]

_FINE_BITS = 20
# Large enough for every clip, so small that the square of a vector of a billion of them is finite.
_HUGE = 2.0**480
# More than rounding takes away: a norm of n numbers is off by at most n·2^-53 of itself, in any order of summation.
_MARGIN = 1.0 - 2.0**-30
_LARGEST_DIMENSION = 2**22


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

    def start(self) -> VectorTally:
        """A sum to which chunks of rows are added."""
        return VectorTally(self, Limiter(self.unit, self.rows), np.zeros(self.dimension, dtype=np.int64))

    def steps(self, rows: Chunk) -> npt.NDArray[np.int64]:
        """Each row clipped, in steps."""
        found = np.nan_to_num(self._numbers(rows), nan=0.0, posinf=_HUGE, neginf=-_HUGE).clip(-_HUGE, _HUGE)
        if self.norm is Norm.LINF:
            return np.trunc(found.clip(-self.clip, self.clip) / self.step).astype(np.int64)
        lengths = np.abs(found).sum(1) if self.norm is Norm.L1 else np.sqrt(np.square(found).sum(1))
        factors = np.where(lengths <= self.clip * _MARGIN, 1.0, self.clip * _MARGIN / np.maximum(lengths, self.step))
        return np.trunc(found * factors[:, None] / self.step).astype(np.int64)

    def _numbers(self, rows: Chunk) -> npt.NDArray[np.float64]:
        """Rows as float64; one that is not a vector of the right length is 0, where not all of them are wrong."""
        try:
            found = np.array(rows, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            found = np.zeros((len(rows), self.dimension))
            for place, row in enumerate(rows):
                if isinstance(row, (Sequence, np.ndarray)) and len(row) == self.dimension:
                    found[place] = numbers(row, 0.0)
        if not len(rows):
            return np.zeros((0, self.dimension))
        if found.ndim != 2 or found.shape[1] != self.dimension:
            problem = f"have the shape {found.shape}, and vectors of {self.dimension} numbers are wanted"
            raise InvalidInput("rows", problem, "give one vector for each row")
        return found


@dataclass
class VectorTally:
    """A sum so far, in whole steps."""

    clip: VectorSum
    limiter: Limiter
    total: npt.NDArray[np.int64] = field(repr=False)

    def add(self, rows: Any, users: Chunk | None = None) -> None:
        """Some more rows, each a vector."""
        for some, theirs in blocks(rows, users):
            steps = self.clip.steps(some)
            self.total += steps[self.limiter.keep(theirs, len(steps))].sum(0)

    def bounded(self) -> Bounded[npt.NDArray[np.float64]]:
        """The sum, for a mechanism."""
        return self.clip.reach.of(self.total.clip(-MOST_STEPS, MOST_STEPS) * self.clip.step)
