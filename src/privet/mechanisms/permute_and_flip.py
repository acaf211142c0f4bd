"""Permute and flip: the best choice by score for its ε, drawn exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privet.core import event
from privet.core.random import Rng
from privet.mechanisms.grid import Integers
from privet.mechanisms.selection import Selection, coins, random_order

__all__ = ["PermuteAndFlip"]


@dataclass(frozen=True)
class PermuteAndFlip(Selection):
    """In random order, each is taken by a coin of e^(ε·(score - best)/(2·distance)) (McKenna & Sheldon 2020).

    Never worse than the exponential mechanism, and up to twice as good; the law is that of report-noisy-max with
    exponential noise (Ding et al. 2021). Its loss has no bounded range, so many of them compose somewhat worse.

    Guarantee: pure ε of one contribution (McKenna & Sheldon 2020, Thm 1), for the unit and neighbors of the reach.
    Every index can come out, whatever the data.

    >>> from privet.core.random import SeededRng
    >>> from privet.mechanisms.histogram import Categories, Histogram
    >>> votes = Histogram(Categories(("yes", "no")))
    >>> PermuteAndFlip.for_epsilon(1.0, votes).release(votes(["no"] * 99 + ["yes"]), rng=SeededRng(1)).value
    1
    """

    @property
    def event(self) -> event.NoisyMax:
        return event.NoisyMax(self.epsilon)

    def _choose(self, scores: Integers, rate: Fraction, rng: Rng) -> int:
        order = random_order(len(scores), rng)
        gaps = scores.max() - scores
        return int(order[coins(gaps[order], rate, rng).argmax()])  # the coin of the best is always true
