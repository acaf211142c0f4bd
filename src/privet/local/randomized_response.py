"""Randomized response: yes or no (Warner 1965), and one of K answers (Kairouz, Bonawitz & Ramage 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy.typing as npt

from privet.core import event
from privet.core.random import Rng
from privet.local.oracle import NumberOracle
from privet.mechanisms import Integers
from privet.mechanisms import randomized_response as mechanisms

__all__ = ["GeneralizedRandomizedResponse"]


@dataclass(frozen=True)
class GeneralizedRandomizedResponse(NumberOracle):
    """Say the truth with probability e^ε/(e^ε + K - 1), and otherwise any other answer, each as likely.

    With two answers this is Warner's. The best there is for small domains: it beats unary encoding for K < 3e^ε + 2.

    >>> from privet.core.random import SeededRng
    >>> coin = GeneralizedRandomizedResponse(2, 1.0)
    >>> coin.event
    RandomizedResponse(epsilon=1.0, categories=2)
    >>> tally = coin.aggregate(coin.randomize([1] * 600 + [0] * 400, SeededRng(3)))
    >>> coin.estimate(tally).estimate.round(2).tolist()
    [0.4, 0.6]
    """

    @cached_property
    def response(self) -> mechanisms.RandomizedResponseMechanism:
        """What draws one report."""
        return mechanisms.RandomizedResponseMechanism(self.epsilon, self.domain)

    @property
    def event(self) -> event.RandomizedResponse:
        """K-ary randomized response."""
        return self.response.event

    @property
    def limit(self) -> int:
        """The truth is told where a word is below this."""
        return self.response.threshold

    @property
    def keep(self) -> Fraction:
        return self.response.keep

    @property
    def other(self) -> Fraction:
        return self.response.lie

    @property
    def outputs(self) -> int:
        return self.domain

    def randomize(self, values: npt.ArrayLike, rng: Rng) -> Integers:
        """Return one answer for each; ε-DP for a replaced answer (Kairouz, Bonawitz & Ramage 2016).

        Args:
            values: One answer for each respondent.
            rng: The randomness of the reports.

        Raises:
            InvalidInput: A value is no possible answer. Nothing is drawn.
        """
        return self.response.randomize(self.checked_values(values), rng=rng)

    def _supports(self, counts: Integers) -> Integers:
        return counts
