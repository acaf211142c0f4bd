"""Report noisy max with discrete Laplace noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from privet.core import checked, event
from privet.core.bounded import Bounded
from privet.core.random import Rng, discrete_laplace
from privet.core.release import Release
from privet.mechanisms.additive import checked_confidence
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.reach import Of, Reach, reach_of, steps_of
from privet.mechanisms.selection import Scores

__all__ = ["NoisyMax"]


@dataclass(frozen=True)
class NoisyMax:
    """The place of the largest score once each has Laplace noise of scale 2·distance/ε (Dwork & Roth 2014, §3.3).

    Of equal ones the first wins. Only the place is released; `PermuteAndFlip` finds better places for the same ε.

    >>> from privet.core.random import SeededRng
    >>> from privet.mechanisms.histogram import Categories, Histogram
    >>> votes = Histogram(Categories(("yes", "no")))
    >>> NoisyMax.for_epsilon(1.0, votes).release(votes(["no"] * 99 + ["yes"]), rng=SeededRng(1)).value
    1
    """

    epsilon: float
    """Of one contribution that comes or goes; `for_epsilon` works it out for the unit."""
    of: Of
    """The clipper of the scores: a histogram, a vector of clamped scores or losses with a minus."""

    def __post_init__(self) -> None:
        checked.positive("epsilon", self.epsilon)
        object.__setattr__(self, "of", reach_of(self.of))

    @staticmethod
    def for_epsilon(epsilon: float, of: Of) -> NoisyMax:
        """ε-DP for the unit of the clipper."""
        return NoisyMax(steps_of(epsilon, reach_of(of).unit), of)

    @property
    def reach(self) -> Reach:
        """What the mechanism was made for."""
        return reach_of(self.of)

    @property
    def event(self) -> event.NoisyMax:
        """The choice."""
        return event.NoisyMax(self.epsilon)

    @property
    def expected_error(self) -> float:
        """A bound on how far below the best score the chosen one is, on average: twice the largest of all noises."""
        scores = Scores(self.reach)
        return 2 * (scores.width(self.epsilon) * (1 + math.log(self.reach.dimension)) + scores.grid.step)

    def interval(self, confidence: float) -> float:
        """How far below the best score the chosen one is, at most: no noise exceeds half of it."""
        miss = checked_confidence(confidence)
        scores = Scores(self.reach)
        return 2 * (scores.width(self.epsilon) * math.log(self.reach.dimension / miss) + scores.grid.step)

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[int]:
        """The place of the largest noisy score.

        Guarantee: pure ε of one contribution, for the unit and neighbours of the reach. Given the noise of the others,
        a place wins if its own noise is at least some r, and on neighbouring data if it is at least r + 2·distance (the
        first of equals wins on both); P(X ≥ r + k) ≥ e^(-k/scale)·P(X ≥ r) for discrete Laplace noise and whole k
        (Dwork & Roth 2014, Claim 3.9). Every place can come out, whatever the data.
        """
        scores = Scores(self.reach)
        steps = scores.steps(query)
        noise = discrete_laplace(1 / scores.rate(self.epsilon), len(steps), rng)
        return Release.of(
            int((steps + noise).argmax()), self.event, unit=query.unit, source=source, randomness=rng.kind
        )
