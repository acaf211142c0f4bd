"""Report noisy max with discrete Laplace noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from privet.core import event
from privet.core.random import Rng, discrete_laplace
from privet.mechanisms.additive import checked_confidence
from privet.mechanisms.grid import Integers
from privet.mechanisms.selection import Scores, Selection

__all__ = ["ReportNoisyMax"]


@dataclass(frozen=True)
class ReportNoisyMax(Selection):
    """The index of the largest score once each has Laplace noise of scale 2·distance/ε (Dwork & Roth 2014, §3.3).

    Of equal ones the first wins. Only the index is released; `PermuteAndFlip` finds better ones for the same ε.

    Guarantee: pure ε of one contribution, for the unit and neighbors of the reach. Given the noise of the others,
    an index wins if its own noise is at least some r, and on neighboring data if it is at least r + 2·distance (the
    first of equals wins on both); P(X ≥ r + k) ≥ e^(-k/scale)·P(X ≥ r) for discrete Laplace noise and whole k
    (Dwork & Roth 2014, Claim 3.9). Every index can come out, whatever the data.

    >>> from privet.core.random import SeededRng
    >>> from privet.mechanisms.histogram import Categories, Histogram
    >>> votes = Histogram(Categories(("yes", "no")))
    >>> ReportNoisyMax.for_epsilon(1.0, votes).release(votes(["no"] * 99 + ["yes"]), rng=SeededRng(1)).value
    1
    """

    @property
    def event(self) -> event.NoisyMax:
        return event.NoisyMax(self.epsilon)

    def _choose(self, scores: Integers, rate: Fraction, rng: Rng) -> int:
        return int((scores + discrete_laplace(1 / rate, len(scores), rng)).argmax())

    @property
    def expected_error(self) -> float:
        """A bound on how far below the best score the chosen one is, on average: twice the largest of all noises."""
        scores = Scores(self.reach)
        return 2 * (scores.expected_gap(self.epsilon) + scores.grid.step)

    def interval(self, confidence: float) -> float:
        """Return how far below the best score the chosen one is, at most: no noise exceeds half of it.

        Args:
            confidence: The confidence, between 0 and 1.
        """
        miss = checked_confidence(confidence)
        scores = Scores(self.reach)
        return 2 * (scores.width(self.epsilon) * math.log(self.reach.dimension / miss) + scores.grid.step)
