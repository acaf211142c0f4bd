"""The piecewise mechanism for means (Wang, Xiao, Yang, Zhao, Hui, Shin, Shin & Yu 2019), on whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privet.core.random import Rng
from privet.local.mean import MeanMechanism
from privet.mechanisms import WORD, Integers, coins, growth, threshold

__all__ = ["Piecewise"]


@dataclass(frozen=True)
class Piecewise(MeanMechanism):
    """Report a number from a window around one's own, or else from outside of it, evenly within each.

    A number at step s has the window of the reports s, s + 1, …, s + width - 1 among `steps` + width. The chance of the
    window is such that a report in it is e^ε times as likely as one outside. On a fine grid this is the mechanism of
    the paper, with its variance t²/(e^(ε/2) - 1) + (e^(ε/2) + 3)/(3(e^(ε/2) - 1)²).

    >>> round(Piecewise(2.0).variance(0.0), 4)
    0.6456
    """

    @property
    def width(self) -> int:
        """How many reports are in a window: e^(-ε/2) of the steps, which has the least variance."""
        return max(1, round(self.steps * math.exp(-self.epsilon / 2)))

    @property
    def limit(self) -> int:
        """The window is taken where a word is below this: the largest T with T·steps ≤ e^ε·width·(2^64 - T)."""
        return threshold(growth(self.epsilon) * self.width / self.steps)

    @property
    def outputs(self) -> int:
        return self.steps + self.width

    @property
    def center(self) -> float:
        return (self.outputs - 1) / 2

    @property
    def _pull(self) -> Fraction:
        """By how much the mean report moves with each step."""
        inside = Fraction(self.limit, WORD)
        return inside - (1 - inside) * Fraction(self.width, self.steps)

    @property
    def gain(self) -> float:
        return float(2 / (self._pull * self.steps))

    @property
    def noise(self) -> tuple[float, float]:
        pull, inside = self._pull, Fraction(self.limit, WORD)
        window = Fraction(self.width**2 - 1, 12)
        outside = (1 - inside) * Fraction(self.outputs * (self.outputs**2 - 1), 12 * self.steps)
        return float(1 / pull - 1), float((pull * window + outside) / (pull * self.steps / 2) ** 2)

    def _draw(self, steps: Integers, rng: Rng) -> Integers:
        """ε-DP for a replaced number: every report has one of two chances, whose ratio is at most e^ε."""
        inside = coins(self.limit, steps.size, rng)
        window = steps + rng.below(self.width, steps.size)
        outside = rng.below(self.steps, steps.size)
        outside += self.width * (outside >= steps)
        return np.where(inside, window, outside)
