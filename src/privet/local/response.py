"""Randomised response: yes or no (Warner 1965), and one of K answers (Kairouz, Bonawitz & Ramage 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy.typing as npt

from privet.core import event
from privet.core.random import Rng
from privet.local.exact import WORD, Integers, coins, growth, threshold
from privet.local.single import NumberOracle

__all__ = ["RandomizedResponse"]


@dataclass(frozen=True)
class RandomizedResponse(NumberOracle):
    """Say the truth with probability e^ε/(e^ε + K - 1), and otherwise any other answer, each as likely.

    With two answers this is Warner's. The best there is for small domains: it beats unary encoding for K < 3e^ε + 2.

    >>> from privet.core.random import SeededRng
    >>> coin = RandomizedResponse(2, 1.0)
    >>> coin.event
    RandomizedResponse(epsilon=1.0, categories=2)
    >>> tally = coin.aggregate(coin.randomize([1] * 600 + [0] * 400, SeededRng(3)))
    >>> coin.estimate(tally).estimate.round(2).tolist()
    [0.4, 0.6]
    """

    @property
    def event(self) -> event.RandomizedResponse:
        """K-ary randomised response."""
        return event.RandomizedResponse(self.epsilon, self.domain)

    @property
    def limit(self) -> int:
        """The truth is told where a word is below this: the largest T with T·(K - 1) ≤ e^ε·(2^64 - T)."""
        return threshold(growth(self.epsilon) / (self.domain - 1))

    @property
    def keep(self) -> Fraction:
        return Fraction(self.limit, WORD)

    @property
    def other(self) -> Fraction:
        return (1 - self.keep) / (self.domain - 1)

    @property
    def outputs(self) -> int:
        return self.domain

    def randomize(self, values: npt.ArrayLike, rng: Rng) -> Integers:
        """One answer for each; ε-DP for a replaced answer (Kairouz, Bonawitz & Ramage 2016)."""
        reports = self.checked_values(values).copy()
        lies = (~coins(self.limit, reports.size, rng)).nonzero()[0]
        drawn = rng.below(self.domain - 1, lies.size)
        # The numbers from the true one on move up by one, so that each other answer is as likely.
        drawn += drawn >= reports[lies]
        reports[lies] = drawn
        return reports

    def _supports(self, counts: Integers) -> Integers:
        return counts
