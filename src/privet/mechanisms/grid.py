"""The grid that additive noise lives on: whole multiples of a power of two.

An answer is rounded to the grid and integers are added to it, so that what is released is an integer, whatever the data
are, and no last bit of a float tells anything (Mironov 2012).

*Theorem.* Let Q(x) be the nearest multiple of g, counted in multiples. If |x - y| ≤ M·g for a whole M then |Q(x) -
Q(y)| ≤ M. So one coordinate that moves by m moves on the grid by at most ⌈m/g⌉ steps, and n coordinates that move by m
together, in L1 or in L2, move by at most m/g + n or m/g + √n steps. Numbers that lie on the grid already move by m/g
exactly. Proof: Q rises, and Q(x + M·g) = Q(x) + M; for several coordinates use |Q(x) - Q(y)| ≤ |x - y|/g + 1 in each.

Steps are counted up to 2^52: what lies beyond is cut, which brings no two answers further apart. Dividing a float64 by
a power of two and rounding to a whole number are both exact in that range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from privet.core import Bounded, InvalidInput
from privet.mechanisms.reach import Reach

__all__ = ["FINE", "MOST_STEPS", "Integers", "NoiseGrid", "ceiling"]

Integers: TypeAlias = npt.NDArray[np.int64]

MOST_STEPS: Final = 2**52
FINE: Final = 2**7
"""Steps in one contribution, at least: so few that loss distributions are quick, so many that rounding is nothing."""


@dataclass(frozen=True)
class NoiseGrid:
    """A step, and whether the answers of a reach lie on the grid by themselves."""

    reach: Reach
    step: float
    exact: bool

    @staticmethod
    def whole(reach: Reach) -> NoiseGrid:
        """Return the grid of the whole numbers, for whole answers."""
        if not reach.whole:
            raise InvalidInput("of", "has answers that are not whole numbers", "use Laplace or Gaussian noise")
        return NoiseGrid(reach, 1.0, True)

    @staticmethod
    def for_noise(reach: Reach, norm: str, *, fine: int = FINE) -> NoiseGrid:
        """Return a grid with at least `fine` steps in a contribution, for each coordinate that moves, or of step 1.

        Whole answers stay whole if a contribution is whole, and are counted in halves where it is half of what a
        replacement moves.
        """
        moved = Fraction(reach.distance(norm)) / reach.span
        coordinates = 1 if norm == "linf" else math.ceil(reach.distance("l0"))
        exponent = math.frexp(float(moved))[1] - 1 - (fine * coordinates - 1).bit_length()
        step = 2.0**exponent
        if reach.whole:
            finest = 1.0 if moved.denominator == 1 else 0.5
            step = max(step, finest)
        return NoiseGrid(reach, step, reach.whole and step <= 1.0)

    def moves(self, norm: str) -> Fraction:
        """Return how many steps one unit can move an answer, in a norm."""
        steps = self.reach.distance(norm) / Fraction(self.step)
        if self.exact:
            return steps
        coordinates = self.reach.distance("l0")
        if norm == "linf" or coordinates == 1:
            return Fraction(math.ceil(steps))
        return steps + (math.ceil(coordinates) if norm == "l1" else math.isqrt(math.ceil(coordinates) - 1) + 1)

    def contribution(self, norm: str) -> Fraction:
        """Return how many steps one contribution can move an answer; an event states this number."""
        return self.moves(norm) / self.reach.span

    def steps(self, value: Any) -> Integers:
        """Return an answer in steps. NaN counts as 0: an error would reveal that it is there."""
        numbers = np.asarray(value)
        if numbers.dtype.kind not in "iufb":
            raise InvalidInput("query", f"holds a {type(value).__name__}, where numbers are wanted")
        if numbers.size != self.reach.dimension:
            problem = f"holds {numbers.size} numbers, and the mechanism was made for {self.reach.dimension}"
            raise InvalidInput("query", problem, "make the mechanism for this clipper")
        if numbers.dtype.kind in "iu":
            numbers = np.clip(numbers, -MOST_STEPS, MOST_STEPS)
        with np.errstate(over="ignore"):
            scaled = numbers.astype(np.float64) / self.step
        limit = float(MOST_STEPS)
        return np.asarray(np.rint(np.clip(np.nan_to_num(scaled, nan=0.0), -limit, limit)).astype(np.int64))

    def single_steps(self, query: Bounded[Any], *, monotone: bool) -> int:
        """Return one answer of a sequence in steps, where this grid is that of all of them together."""
        reach = Reach(self.reach.unit, linf=self.reach.linf, whole=self.reach.whole, monotone=monotone)
        reach.require(query)
        return int(NoiseGrid(reach, self.step, self.exact).steps(query.value).reshape(-1)[0])

    def back(self, steps: Integers) -> npt.NDArray[np.float64]:
        """Convert steps back to numbers (post-processing)."""
        return steps.astype(np.float64) * self.step


def ceiling(value: Fraction) -> int:
    """Return the next whole number, at least 1."""
    return max(1, math.ceil(value))
