"""Hadamard response (Acharya, Sun & Zhang 2019): short reports, and all shares from one fast transform."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from privet.core.random import Rng
from privet.local.oracle import NumberOracle
from privet.mechanisms import WORD, Booleans, Integers, coins, growth, threshold

__all__ = ["HadamardResponse"]


@dataclass(frozen=True)
class HadamardResponse(NumberOracle):
    """Report a column of a Hadamard matrix in which the row of one's value is +1, with probability e^ε/(e^ε + 1).

    Value v has the row v + 1 of the K × K matrix of Sylvester, K being the next power of two above the domain, and
    the entry at column y is (-1)^|y & (v + 1)|. Each row has K/2 entries of +1, and two rows agree in half of them.

    >>> HadamardResponse(1000, 1.0).report_bits
    10
    """

    @property
    def limit(self) -> int:
        """A column of +1 is reported where a word is below this."""
        return threshold(growth(self.epsilon))

    @property
    def keep(self) -> Fraction:
        return Fraction(self.limit, WORD)

    @property
    def other(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def outputs(self) -> int:
        return 1 << self.domain.bit_length()

    def randomize(self, values: npt.ArrayLike, rng: Rng) -> Integers:
        """Return one column for each; ε-DP for a replaced answer (Acharya, Sun & Zhang 2019, section 3).

        Args:
            values: One answer for each respondent.
            rng: The randomness of the reports.

        Raises:
            InvalidInput: A value is no possible answer. Nothing is drawn.
        """
        rows = self.checked_values(values) + 1
        is_plus = coins(self.limit, rows.size, rng)
        drawn = rng.below(self.outputs, rows.size)
        is_minus = _is_odd(drawn & rows)
        # Flipping a bit that the row has pairs every column of +1 with one of -1.
        return np.where(is_minus == is_plus, drawn ^ (rows & -rows), drawn)

    def _supports(self, counts: Integers) -> Integers:
        sums = _transform(counts)
        # Column counts with +1 less those with -1; their sum is the number of reports.
        supports: Integers = (sums[0] + sums[1 : self.domain + 1]) // 2
        return supports


def _is_odd(numbers: Integers) -> Booleans:
    """Whether a number has an odd count of ones."""
    folded = numbers
    for shift in (32, 16, 8, 4, 2, 1):
        folded = folded ^ (folded >> shift)
    return (folded & 1).astype(np.bool_)


def _transform(counts: Integers) -> Integers:
    """The Walsh–Hadamard transform, in K·log K additions."""
    values, half = counts, 1
    while half < counts.size:
        pairs = values.reshape(-1, 2, half)
        values = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        half *= 2
    return values
