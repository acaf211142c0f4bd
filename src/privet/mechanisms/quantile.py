"""A quantile of numbers with public bounds, by the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privet.core import Bounded, InvalidInput, Release, checked, event
from privet.core.random import Rng
from privet.mechanisms.additive import checked_confidence
from privet.mechanisms.grid import MOST_STEPS, Integers, NoiseGrid
from privet.mechanisms.histogram import Histogram, cells_of
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.reach import ForClipper, replaces, steps_of
from privet.mechanisms.selection import exponential_choice

__all__ = ["Quantile"]

_FINEST = 1000


@dataclass(frozen=True)
class Quantile(ForClipper):
    """One of the cells of a histogram, chosen by how far its rank is from the quantile's (Smith 2011).

    The score of a cell is 0 if the quantile lies in it, and else minus the number of rows between. The smallest and
    the largest value are quantiles near 0 and 1. What is released is the middle of the cell, so that with 1,024 cells a
    value is found to 0.05 % of the bounds at best.

    >>> from privet.core.random import SeededRng
    >>> from privet.mechanisms.histogram import Cells
    >>> ages = Histogram(Cells(0, 100, 200))
    >>> median = Quantile.for_epsilon(1.0, ages)
    >>> 30 < median.release(ages(range(20, 61)), rng=SeededRng(1)).value < 50
    True
    """

    epsilon: float
    """Of one contribution that comes or goes; `for_epsilon` works it out for the unit."""
    of: Histogram
    """Counts of numbers in `Cells`."""
    quantile: float = 0.5
    """The share of rows below, to a thousandth."""

    def __post_init__(self) -> None:
        checked.positive("epsilon", self.epsilon)
        cells_of(self.of)
        if not 0 <= checked.finite("quantile", self.quantile) <= 1:
            raise InvalidInput("quantile", f"is {self.quantile}", "give a share between 0 and 1, such as 0.5")

    @staticmethod
    def for_epsilon(epsilon: float, of: Histogram, quantile: float = 0.5) -> Quantile:
        """Return the mechanism that is ε-DP for the unit of the histogram.

        Args:
            epsilon: The privacy cost of one release, for the unit of the clipper.
            of: A histogram of `Cells`.
            quantile: The share of rows below.

        Raises:
            InvalidInput: ε or δ is out of range.
        """
        return Quantile(steps_of(epsilon, of.unit), of, quantile)

    @property
    def share(self) -> Fraction:
        """The quantile as a fraction."""
        return Fraction(self.quantile).limit_denominator(_FINEST)

    @property
    def event(self) -> event.Exponential:
        """The choice."""
        return event.Exponential(self.epsilon)

    @property
    def moved(self) -> Fraction:
        """How far one unit moves a score, in rows.

        With q the quantile, n the rows and c the rows below a cell, a score is a piece of ±(q·n - c). Someone who comes
        with r rows moves q·n - c by r·q, or by r·(q - 1) where the rows lie below; one who is replaced by r at most.
        """
        rows, share = self.reach.distance("linf"), self.share
        return rows if replaces(self.reach.unit) else rows * max(share, 1 - share)

    @property
    def rate(self) -> Fraction:
        """ε a row: half of it, as some scores may rise while others fall, but for the ends, where all move one way."""
        one_way = self.share in (0, 1) and not replaces(self.reach.unit)
        return Fraction(self.epsilon) * self.reach.span / ((1 if one_way else 2) * self.moved)

    @property
    def expected_error(self) -> float:
        """A bound on how many rows lie between the answer and the quantile, on average."""
        return (1 + math.log(self.reach.dimension)) / float(self.rate)

    def interval(self, confidence: float) -> float:
        """Return how many rows lie between the answer's cell and the quantile, at most.

        Args:
            confidence: The confidence, between 0 and 1.
        """
        return math.log(self.reach.dimension / checked_confidence(confidence)) / float(self.rate)

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[float]:
        """Return the middle of the chosen cell.

        Args:
            query: An answer of the clipper that the mechanism was made for.
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.

        Raises:
            InvalidInput: The answer could move further than the mechanism was made for.

        Guarantee: ε of one contribution, with a loss of range ε, for the unit and neighbors of the histogram (McSherry
        & Talwar 2007, Thm 6; Smith 2011). Every cell can come out, whatever the data; without rows all are equally
        likely.
        """
        self.reach.require(query)
        counts = NoiseGrid.whole(self.reach).steps(query.value)
        chosen = exponential_choice(self._gaps(counts), self.rate / self.share.denominator, rng)
        middle = cells_of(self.of).middle(chosen)
        return Release.of(middle, self.event, unit=query.unit, source=source, randomness=rng.kind)

    def _gaps(self, counts: Integers) -> Integers:
        """Minus the scores, in parts of a row: how far q·n is from [rows below the cell, rows up to its end]."""
        parts, share = self.share.denominator, self.share.numerator
        upto = np.minimum(np.cumsum(counts), MOST_STEPS // parts)
        below = np.concatenate([[0], upto[:-1]])
        target = share * int(upto[-1])
        gaps: Integers = np.maximum(np.maximum(below * parts - target, target - upto * parts), 0)
        return gaps  # one of them is 0: some cell holds the quantile
