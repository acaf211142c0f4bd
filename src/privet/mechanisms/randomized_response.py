"""K-ary randomized response on whole arrays, drawn exactly: what one person says instead of the truth."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput, checked, event
from privet.core.random import Rng
from privet.mechanisms.coins import WORD, coins, growth, threshold

__all__ = ["RandomizedResponseMechanism"]

_LARGEST_EPSILON: Final = 700.0
_MOST_CATEGORIES: Final = 1 << 32


@dataclass(frozen=True)
class RandomizedResponseMechanism:
    """One of `categories` answers, the true one with odds e^ε to 1 against each other one (Kairouz et al. 2016).

    The truth is told where a word of 64 random bits lies below a threshold, which is e^ε/(e^ε + K - 1) rounded *down*
    to a multiple of 2^-64; else one of the others is told, each as likely as any. So the law has no floating-point
    number in it, and its log-ratio is ε or a little less.

    >>> from privet.core.random import SeededRng
    >>> response = RandomizedResponseMechanism(1.0, 4)
    >>> round(float(response.keep), 4), round(float(response.lie), 4)
    (0.4754, 0.1749)
    >>> response.randomize(np.array([0, 1, 2, 3]), rng=SeededRng(1)).tolist()
    [3, 0, 3, 3]
    """

    epsilon: float
    categories: int = 2

    def __post_init__(self) -> None:
        if checked.positive("epsilon", self.epsilon) > _LARGEST_EPSILON:
            raise InvalidInput("epsilon", f"is {self.epsilon:g}, and 64 bits do not hold it", "use 700 or less")
        if checked.count("categories", self.categories, 2) > _MOST_CATEGORIES:
            raise InvalidInput("categories", f"are {self.categories:,}", "hash them into fewer first")
        if self.threshold * self.categories < WORD:  # rounded down below 1/K, a lie would be likelier than the truth
            problem = f"is {self.epsilon:g}, and 64 bits do not hold it for {self.categories:,} categories"
            raise InvalidInput("epsilon", problem, "use a larger one")

    @cached_property
    def threshold(self) -> int:
        """Words below this tell the truth: the largest T with T·(K - 1) ≤ e^ε·(2^64 - T)."""
        return min(threshold(growth(self.epsilon) / (self.categories - 1)), WORD - 1)

    @property
    def event(self) -> event.RandomizedResponse:
        """What one report is, for neighbors that replace the truth by any other."""
        return event.RandomizedResponse(self.epsilon, self.categories)

    @property
    def keep(self) -> Fraction:
        """The chance that the truth is told, exactly."""
        return Fraction(self.threshold, WORD)

    @property
    def lie(self) -> Fraction:
        """The chance of each other answer, exactly."""
        return (1 - self.keep) / (self.categories - 1)

    def randomize(self, values: npt.NDArray[Any], *, rng: Rng) -> npt.NDArray[np.int64]:
        """Return one report for each value, of that value alone; values are clipped to 0, …, `categories` - 1.

        How many random bits are used does not depend on the values.
        """
        reports = np.clip(np.asarray(values, dtype=np.int64), 0, self.categories - 1)
        flat = reports.reshape(-1)
        lies = np.flatnonzero(~coins(self.threshold, flat.size, rng))
        drawn = rng.below(self.categories - 1, lies.size)
        # The numbers from the true one on move up by one, so that each other answer is as likely.
        drawn += drawn >= flat[lies]
        flat[lies] = drawn
        return reports

    def likeliest(self, counts: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the maximum-likelihood shares of the true answers, given counts of reports; they are ≥ 0 and sum to 1.

        They maximize Σ n_j log(q + (p - q)·π_j), the log-likelihood after the channel, which is concave. Where π_j > 0,
        n_j / (q/(p - q) + π_j) is the same for all, so that π_j = n_j/λ - q/(p - q) for the most frequent answers, as
        many as stay positive. Without counts all shares are equal.
        """
        seen = np.asarray(counts, dtype=np.float64)
        if not seen.sum():
            return np.full(len(seen), 1.0 / len(seen))
        floor = float(self.lie / (self.keep - self.lie))
        falling = np.sort(seen)[::-1]
        sizes = np.arange(1, len(seen) + 1)
        rates = falling.cumsum() / (1.0 + sizes * floor)
        active = int(np.flatnonzero(falling > floor * rates)[-1])
        shares = np.maximum(seen / rates[active] - floor, 0.0)
        return np.asarray(shares / shares.sum())
