"""Local hashing (Wang, Blocki, Li & Jha 2017) with hashes of which collisions are known exactly.

A respondent draws a hash at random, hashes the value into g bins, and reports the hash together with a randomized
response of g answers. Here a value is written in m digits of base g, a prime, and the hashes are the g^m inner products
with a vector of m digits. Two different values collide under exactly 1/g of them, since a·(x - y) = 0 has g^(m-1)
solutions, so that the estimates are unbiased without any assumption on the hash; and as there are few hashes, reports
can be counted as they come, and all shares follow from the counts by one transform (compare Feldman, Nelson, Nguyen &
Talwar 2022). Collectors elsewhere hash every value once for every report.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput
from privet.core.random import Rng
from privet.local.oracle import NumberOracle
from privet.local.randomized_response import GeneralizedRandomizedResponse
from privet.mechanisms import Integers, growth

__all__ = ["LocalHashing"]

_MOST_COUNTS = 1 << 24
_LARGEST_BASE = 1 << 11


@dataclass(frozen=True)
class LocalHashing(NumberOracle):
    """Report a random hash and a randomized response about one's value under it.

    The number of bins is the prime with the least variance, next to e^ε + 1; a prime costs at most 3 % of variance
    against a bin number that need not be one.

    >>> oracle = LocalHashing(1024, 1.0)
    >>> oracle.bins, oracle.report_bits, round(oracle.variance(0.0), 2)
    (3, 13, 3.77)
    """

    @property
    def bins(self) -> int:
        """The base g."""
        return _bins(self.domain, self.epsilon)

    @property
    def digits(self) -> int:
        """How many digits a value has in this base."""
        return _digits(self.domain, self.bins)

    @property
    def hashes(self) -> int:
        """How many hashes there are to draw from."""
        return int(self.bins**self.digits)

    @property
    def response(self) -> GeneralizedRandomizedResponse:
        """What is done with the bin."""
        return GeneralizedRandomizedResponse(self.bins, self.epsilon)

    @property
    def keep(self) -> Fraction:
        return self.response.keep

    @property
    def other(self) -> Fraction:
        return Fraction(1, self.bins)

    @property
    def outputs(self) -> int:
        return self.hashes * self.bins

    def randomize(self, values: npt.ArrayLike, rng: Rng) -> Integers:
        """Return hash·g + answer for each; ε-DP for a replaced answer, as the hash does not depend on it.

        Args:
            values: One answer for each respondent.
            rng: The randomness of the reports.

        Raises:
            InvalidInput: A value is no possible answer. Nothing is drawn.
        """
        held = self.checked_values(values)
        drawn = rng.below(self.hashes, held.size)
        answers = self.response.randomize(self._hashed(drawn, held), rng)
        return drawn * self.bins + answers

    def _hashed(self, hashes: Integers, values: Integers) -> Integers:
        total = np.zeros(values.size, dtype=np.int64)
        for _ in range(self.digits):
            values, digit = np.divmod(values, self.bins)
            hashes, weight = np.divmod(hashes, self.bins)
            total += digit * weight
        return total % self.bins

    def _supports(self, counts: Integers) -> Integers:
        """Σ over hashes a of counts[a, a·v], one digit of v after the other."""
        g, m = self.bins, self.digits
        # Axes: what is left of the hash (the digit in hand last), digits of v so far, answer - Σ a_i·v_i of those.
        rest = counts.reshape(-1, g)[:, None, :]
        for _ in range(m):
            split = rest.reshape(rest.shape[0] // g, g, rest.shape[1], g)
            summed = np.zeros((split.shape[0], g, split.shape[2], g), dtype=np.int64)
            for v in range(g):
                for a in range(g):
                    summed[:, v] += np.roll(split[:, a], -a * v % g, axis=-1)
            rest = summed.reshape(summed.shape[0], -1, g)
        # The digits of v came in from the lowest, each in front of those before it: the order of the values.
        return rest[0, : self.domain, 0]


def _digits(domain: int, base: int) -> int:
    digits = 1
    while base**digits < domain:
        digits += 1
    return digits


@lru_cache(maxsize=64)
def _bins(domain: int, epsilon: float) -> int:
    """The prime of the least variance (e^ε - 1 + g)²/((e^ε - 1)²(g - 1)) among those whose tallies fit in memory."""
    odds = float(growth(epsilon))
    best, least = 0, math.inf
    for g in range(2, min(_LARGEST_BASE, 2 * math.ceil(odds) + 3)):
        fits = g ** (_digits(domain, g) + 1) <= _MOST_COUNTS
        variance = (odds - 1 + g) ** 2 / (g - 1)
        if fits and variance < least and all(g % p for p in range(2, math.isqrt(g) + 1)):
            best, least = g, variance
    if not best:
        problem = f"is {domain:,}, for which no tally of hashes fits in memory"
        raise InvalidInput("domain", problem, "use HadamardResponse, or fewer values")
    return best
