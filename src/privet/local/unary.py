"""Unary encoding: one bit for each value, every one of them randomized (Wang, Blocki, Li & Jha 2017)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput
from privet.core.random import Rng
from privet.local.oracle import PureOracle
from privet.local.packed_bits import bit_counts, checked_words, has_clear_padding, set_bit, words_for
from privet.mechanisms import WORD, Integers, Words, coins, growth, packed, threshold

__all__ = ["BitOracle", "OptimizedUnary", "SymmetricUnary"]


@dataclass(frozen=True)
class BitOracle(PureOracle):
    """An oracle that reports a row of bits, packed into 64-bit words; the bit of the value held is special."""

    @property
    @abstractmethod
    def limits(self) -> tuple[int, int]:
        """Thresholds of the bit of one's own value and of every other bit."""

    @property
    def keep(self) -> Fraction:
        return Fraction(self.limits[0], WORD)

    @property
    def other(self) -> Fraction:
        return Fraction(self.limits[1], WORD)

    @property
    def slots(self) -> int:
        return self.domain

    @property
    def report_bits(self) -> int:
        return self.domain

    def randomize(self, values: npt.ArrayLike, rng: Rng) -> Words:
        """Return a row of words for each; ε-DP for a replaced answer, which changes two bits (Wang et al. 2017).

        Args:
            values: One answer for each respondent.
            rng: The randomness of the reports.

        Raises:
            InvalidInput: A value is no possible answer. Nothing is drawn.
        """
        own, rest = self.limits
        held = self.checked_values(values)
        rows = packed(rest, (held.size, words_for(self.domain)), rng)
        rows[:, -1] &= np.uint64(WORD - 1 >> -self.domain % 64)
        set_bit(rows, held, coins(own, held.size, rng))
        return rows

    def checked_reports(self, reports: npt.ArrayLike) -> npt.NDArray[Any]:
        rows = checked_words(reports, words_for(self.domain))
        if not has_clear_padding(rows, self.domain):
            raise InvalidInput(
                "reports", f"have bits after the first {self.domain}", "drop what no respondent can send"
            )
        return rows

    def _count(self, reports: npt.NDArray[Any]) -> Integers:
        return bit_counts(reports, self.domain)

    def _supports(self, counts: Integers) -> Integers:
        return counts


@dataclass(frozen=True)
class SymmetricUnary(BitOracle):
    """Every bit is kept with probability e^(ε/2)/(e^(ε/2) + 1): the one-time RAPPOR of Erlingsson et al. 2014."""

    @property
    def limits(self) -> tuple[int, int]:
        own = threshold(growth(Fraction(self.epsilon) / 2))
        return own, WORD - own


@dataclass(frozen=True)
class OptimizedUnary(BitOracle):
    """One's own bit is a fair coin, and every other bit is 1 with probability 1/(e^ε + 1): the least variance.

    >>> round(OptimizedUnary(1024, 1.0).variance(0.0), 4)
    3.6827
    """

    @property
    def limits(self) -> tuple[int, int]:
        return WORD // 2, WORD - threshold(growth(self.epsilon))
