"""Scores as whole numbers, and exact coins about them: the ground of every choice by score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core.bounded import Bounded
from privet.core.random import Rng
from privet.core.random.bernoulli import BITS, CEILING, Exponents, accept
from privet.core.random.faults import PATIENCE, broken_source
from privet.mechanisms.grid import FINE, Grid, Integers
from privet.mechanisms.reach import Reach

__all__ = ["Scores", "coins", "exponential_choice", "shuffled"]

_BATCH = 1 << 14


@dataclass(frozen=True)
class Scores:
    """Scores of a reach on a grid: whole numbers of which one unit moves each by at most `moved`."""

    reach: Reach

    @property
    def grid(self) -> Grid:
        """Fine enough that rounding costs next to nothing; the whole numbers for whole scores."""
        grid = Grid.for_noise(self.reach, "linf", fine=FINE)
        return Grid(self.reach, 1.0, True) if grid.exact else grid

    @property
    def moved(self) -> int:
        """How many steps one unit moves a score."""
        return math.ceil(self.grid.moves("linf"))

    @property
    def ways(self) -> int:
        """2, as one score may fall while another rises; 1 where whoever comes makes none of them smaller."""
        return 1 if self.reach.monotone else 2

    def rate(self, epsilon: float) -> Fraction:
        """ε of one contribution as ε a step: span·ε/(ways·moved), so that the unit's bill is span·ε."""
        return Fraction(epsilon) * self.reach.span / (self.ways * self.moved)

    def width(self, epsilon: float) -> float:
        """One over the rate, in the units of the scores."""
        return self.grid.step / float(self.rate(epsilon))

    def steps(self, query: Bounded[Any]) -> Integers:
        """The scores in steps."""
        self.reach.require(query)
        return self.grid.steps(query.value).reshape(-1)

    def gaps(self, query: Bounded[Any]) -> Integers:
        """How far each score is below the best one."""
        steps = self.steps(query)
        found: Integers = steps.max() - steps
        return found


def coins(gaps: Integers, rate: Fraction, rng: Rng) -> npt.NDArray[np.bool_]:
    """For each gap a coin that is true with probability e^(-rate·gap), exactly."""
    distinct, where = np.unique(gaps, return_inverse=True)
    gammas = [int(gap) * rate for gap in distinct]
    low = np.array([min(math.floor(gamma * 2**BITS), CEILING << BITS) for gamma in gammas], dtype=np.int64)
    high = np.array([min(math.ceil(gamma * 2**BITS), CEILING << BITS) for gamma in gammas], dtype=np.int64)
    return accept(Exponents(low[where], high[where], lambda i: gammas[where[i]]), rng)


def exponential_choice(gaps: Integers, rate: Fraction, rng: Rng) -> int:
    """An index with probability ∝ e^(-rate·gap), exactly: one is proposed at random, and kept by its coin.

    The best one is always kept, so that it takes no more than `len(gaps)` proposals on average.
    """
    size = len(gaps)
    for _ in range(PATIENCE * (1 + size // _BATCH)):
        proposed = rng.below(size, min(max(64, 2 * size), _BATCH))
        kept = np.flatnonzero(coins(gaps[proposed], rate, rng))
        if kept.size:
            return int(proposed[kept[0]])
    raise broken_source()


def shuffled(size: int, rng: Rng) -> Integers:
    """A permutation, each equally likely, exactly (Fisher & Yates)."""
    order = np.arange(size, dtype=np.int64)
    if size < 2:
        return order
    picks = rng.below(np.arange(size, 1, -1, dtype=np.int64)).tolist()
    listed = order.tolist()
    for place, pick in zip(range(size - 1, 0, -1), picks, strict=True):
        listed[place], listed[pick] = listed[pick], listed[place]
    return np.array(listed, dtype=np.int64)
