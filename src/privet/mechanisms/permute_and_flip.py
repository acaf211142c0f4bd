"""Permute and flip: the best choice by score for its ε, drawn exactly."""

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
from privet.mechanisms.selection import Scores, coins, shuffled

__all__ = ["PermuteAndFlip"]


@dataclass(frozen=True)
class PermuteAndFlip:
    """In random order, each is taken by a coin of e^(ε·(score - best)/(2·distance)) (McKenna & Sheldon 2020).

    Never worse than the exponential mechanism, and up to twice as good; the law is that of report-noisy-max with
    exponential noise (Ding et al. 2021). Its loss has no bounded range, so many of them compose somewhat worse.

    >>> from privet.core.random import SeededRng
    >>> from privet.mechanisms.histogram import Categories, Histogram
    >>> votes = Histogram(Categories(("yes", "no")))
    >>> PermuteAndFlip.for_epsilon(1.0, votes).release(votes(["no"] * 99 + ["yes"]), rng=SeededRng(1)).value
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
    def for_epsilon(epsilon: float, of: Of) -> PermuteAndFlip:
        """ε-DP for the unit of the clipper."""
        return PermuteAndFlip(steps_of(epsilon, reach_of(of).unit), of)

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
        """A bound on how far below the best score the chosen one is, on average: that of the exponential mechanism."""
        return Scores(self.reach).width(self.epsilon) * (1 + math.log(self.reach.dimension))

    def interval(self, confidence: float) -> float:
        """How far below the best score the chosen one is, at most: a bound for the exponential mechanism too."""
        miss = checked_confidence(confidence)
        scores = Scores(self.reach)
        rounding = 0.0 if scores.grid.exact else scores.grid.step
        return scores.width(self.epsilon) * max(0.0, math.log(self.reach.dimension / miss)) + rounding

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[int]:
        """The place of the chosen one.

        Guarantee: pure ε of one contribution (McKenna & Sheldon 2020, Thm 1), for the unit and neighbours of the reach.
        Every place can come out, whatever the data.
        """
        scores = Scores(self.reach)
        gaps = scores.gaps(query)
        order = shuffled(len(gaps), rng)
        first = int(coins(gaps[order], scores.rate(self.epsilon), rng).argmax())  # the coin of the best is always true
        return Release.of(int(order[first]), self.event, unit=query.unit, source=source, randomness=rng.kind)
