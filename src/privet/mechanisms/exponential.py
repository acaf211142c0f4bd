"""The exponential mechanism, drawn exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from privet.core import checked, event
from privet.core.bounded import Bounded
from privet.core.random import Rng
from privet.core.release import Release
from privet.mechanisms.additive import checked_confidence
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.reach import Of, Reach, reach_of, steps_of
from privet.mechanisms.selection import Scores, exponential_choice

__all__ = ["Exponential"]


@dataclass(frozen=True)
class Exponential:
    """One of many, with probability ∝ e^(ε·score/(2·distance)) (McSherry & Talwar 2007); the 2 falls away for counts.

    Only integers decide: no weight is ever computed in floating point (Ilvento 2020).

    >>> from privet.core.random import SeededRng
    >>> from privet.mechanisms.histogram import Categories, Histogram
    >>> votes = Histogram(Categories(("yes", "no")))
    >>> Exponential.for_epsilon(1.0, votes).release(votes(["no"] * 99 + ["yes"]), rng=SeededRng(1)).value
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
    def for_epsilon(epsilon: float, of: Of) -> Exponential:
        """ε-DP for the unit of the clipper."""
        return Exponential(steps_of(epsilon, reach_of(of).unit), of)

    @property
    def reach(self) -> Reach:
        """What the mechanism was made for."""
        return reach_of(self.of)

    @property
    def event(self) -> event.Exponential:
        """The choice."""
        return event.Exponential(self.epsilon)

    @property
    def expected_error(self) -> float:
        """A bound on how far below the best score the chosen one is, on average: width·(1 + ln of the number)."""
        return Scores(self.reach).width(self.epsilon) * (1 + math.log(self.reach.dimension))

    def interval(self, confidence: float) -> float:
        """How far below the best score the chosen one is, at most (McSherry & Talwar 2007, Thm 6)."""
        miss = checked_confidence(confidence)
        scores = Scores(self.reach)
        rounding = 0.0 if scores.grid.exact else scores.grid.step
        return scores.width(self.epsilon) * max(0.0, math.log(self.reach.dimension / miss)) + rounding

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[int]:
        """The place of the chosen one.

        Guarantee: ε of one contribution, with a loss of range ε (McSherry & Talwar 2007, Thm 6; Durfee & Rogers 2019),
        for the unit and neighbours of the reach. Every place can come out, whatever the data.
        """
        scores = Scores(self.reach)
        chosen = exponential_choice(scores.gaps(query), scores.rate(self.epsilon), rng)
        return Release.of(chosen, self.event, unit=query.unit, source=source, randomness=rng.kind)
