"""The exponential mechanism, drawn exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privet.core import event
from privet.core.random import Rng
from privet.mechanisms.grid import Integers
from privet.mechanisms.selection import Selection, exponential_choice

__all__ = ["ExponentialMechanism"]


@dataclass(frozen=True)
class ExponentialMechanism(Selection):
    """One of many, with probability ∝ e^(ε·score/(2·distance)) (McSherry & Talwar 2007); the 2 falls away for counts.

    Only integers decide: no weight is ever computed in floating point (Ilvento 2020).

    Guarantee: ε of one contribution, with a loss of range ε (McSherry & Talwar 2007, Thm 6; Durfee & Rogers 2019),
    for the unit and neighbors of the reach. Every index can come out, whatever the data.

    >>> from privet.core.random import SeededRng
    >>> from privet.mechanisms.histogram import Categories, Histogram
    >>> votes = Histogram(Categories(("yes", "no")))
    >>> ExponentialMechanism.for_epsilon(1.0, votes).release(votes(["no"] * 99 + ["yes"]), rng=SeededRng(1)).value
    1
    """

    @property
    def event(self) -> event.Exponential:
        return event.Exponential(self.epsilon)

    def _choose(self, scores: Integers, rate: Fraction, rng: Rng) -> int:
        return exponential_choice(scores.max() - scores, rate, rng)
