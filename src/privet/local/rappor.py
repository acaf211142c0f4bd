"""RAPPOR (Erlingsson, Pihur & Korolova 2014): reports that are asked for again and again, with a bound for all of them.

A value is written into a Bloom filter of k bits by h hashes, which differ between m cohorts. A *permanent* response
randomizes these bits once, and is kept by the respondent for good; each report is an *instantaneous* response made from
it. However many reports there are, they reveal no more than the permanent response does: that is the lifetime ε.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput, Neighbours, Pure, checked
from privet.core.random import Rng
from privet.local.oracle import FrequencyOracle, Tally
from privet.local.packed_bits import bit_counts, checked_words, has_clear_padding, words_for
from privet.local.shares import Floats, Shares
from privet.mechanisms import WORD, Integers, Words, cost, growth, packed, threshold

__all__ = ["Rappor"]

_RANK = 1e-8


@dataclass(frozen=True)
class Rappor(FrequencyOracle):
    """RAPPOR for values that are known by number; `epsilon` bounds all reports of one respondent's value together.

    The parameters of the paper, with f = 1/2 and so ε = 4·ln 3:

    >>> rappor = Rappor(100, 4.394449154672439)
    >>> round(float(rappor.flip), 6), round(rappor.once.epsilon, 4)
    (0.5, 1.0743)
    """

    bits: int = 128
    hashes: int = 2
    cohorts: int = 64
    p: float = 0.5
    """The chance that a report has a 1 where the permanent response has a 0."""
    q: float = 0.75
    """The chance that it has one where the permanent response has a 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("bits", "hashes", "cohorts"):
            checked.count(name, getattr(self, name))
        for name in ("p", "q"):
            object.__setattr__(self, name, checked.probability(name, getattr(self, name)))
        if not self.p < self.q < 1:
            raise InvalidInput("q", f"is {self.q}, and p is {self.p}", "0 < p < q < 1 is needed")

    @property
    def event(self) -> Pure:
        """Everything that is ever reported about one permanent response."""
        return Pure(self.epsilon, Neighbours.REPLACE)

    @property
    def once(self) -> Pure:
        """One report by itself, for those who see no second one: h·ln(q*(1-p*)/(p*(1-q*)))."""
        own, rest = self._marginals
        odds = (own * (1 - rest) / (rest * (1 - own))) ** self.hashes
        return Pure(min(self.epsilon, cost(odds)), Neighbours.REPLACE)

    @property
    def flip(self) -> Fraction:
        """The f of the paper: a permanent bit is a fair coin, and not the filter's, with this probability."""
        return Fraction(2 * (WORD - self._stay), WORD)

    @property
    def _stay(self) -> int:
        """The threshold of a permanent bit that is the filter's own: two values differ in at most 2h bits."""
        return threshold(growth(Fraction(self.epsilon) / (2 * self.hashes)))

    @property
    def _limits(self) -> tuple[int, int]:
        return int(Fraction(self.p) * WORD), int(Fraction(self.q) * WORD)

    @property
    def _marginals(self) -> tuple[Fraction, Fraction]:
        """The chance of a 1 in a report where the filter has a 1 (the paper's q*) and where it has a 0 (p*)."""
        stay, (low, high) = Fraction(self._stay, WORD), (Fraction(limit, WORD) for limit in self._limits)
        return stay * high + (1 - stay) * low, stay * low + (1 - stay) * high

    @property
    def slots(self) -> int:
        return self.cohorts * (self.bits + 1)

    @property
    def report_bits(self) -> int:
        return self.bits + (self.cohorts - 1).bit_length()

    def permanent(self, values: npt.ArrayLike, rng: Rng) -> Words:
        """Return a cohort and a permanent response for each value; the respondent stores it and never makes another.

        ε-DP for a replaced value (Erlingsson, Pihur & Korolova 2014, Thm 1).

        Args:
            values: One answer for each respondent.
            rng: The randomness of the reports.

        Raises:
            InvalidInput: A value is no possible answer. Nothing is drawn.
        """
        held = self.checked_values(values)
        cohort = rng.below(self.cohorts, held.size)
        changed = packed(WORD - self._stay, (held.size, words_for(self.bits)), rng)
        return self._rows(cohort, _filters(self)[cohort, held] ^ changed)

    def instantaneous(self, permanent: Words, rng: Rng) -> Words:
        """Return a report made from each permanent response; post-processing of it.

        Args:
            permanent: From `permanent`.
            rng: The randomness of the reports.
        """
        stored = self.checked_reports(permanent)
        shape, (low, high) = (len(stored), words_for(self.bits)), self._limits
        zeros, ones = packed(low, shape, rng), packed(high, shape, rng)
        return self._rows(stored[:, 0], (stored[:, 1:] & ones) | (~stored[:, 1:] & zeros))

    def randomize(self, values: npt.ArrayLike, rng: Rng) -> Words:
        """Return a first report for each value, a row with the cohort and the bits; store `permanent` for later ones.

        Args:
            values: One answer for each respondent.
            rng: The randomness of the reports.

        Raises:
            InvalidInput: A value is no possible answer. Nothing is drawn.
        """
        return self.instantaneous(self.permanent(values, rng), rng)

    def _rows(self, cohort: npt.NDArray[Any], bits: Words) -> Words:
        bits[:, -1] &= np.uint64(WORD - 1 >> -self.bits % 64)
        return np.concatenate([cohort.astype(np.uint64)[:, None], bits], axis=1)

    def checked_reports(self, reports: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return reports as an array, if they all could have been made by this oracle.

        Args:
            reports: Reports as they were received.

        Raises:
            InvalidInput: A report could not have been made.
        """
        rows = checked_words(reports, 1 + words_for(self.bits))
        if not has_clear_padding(rows[:, 1:], self.bits) or (rows[:, 0] >= self.cohorts).any():
            raise InvalidInput("reports", "have bits or cohorts that do not exist", "drop what no respondent can send")
        return rows

    def _count(self, reports: npt.NDArray[Any]) -> Integers:
        """How often each bit was set in each cohort, and then the cohorts' sizes."""
        counts = [bit_counts(reports[reports[:, 0] == cohort, 1:], self.bits) for cohort in range(self.cohorts)]
        sizes = np.bincount(reports[:, 0].astype(np.int64), minlength=self.cohorts)
        return np.concatenate([*counts, sizes])

    def _estimate(self, state: Tally) -> Shares:
        """Least squares on the bits' unbiased counts, which is linear and so unbiased too."""
        reports, counts = state.reports, state.counts
        own, rest = map(float, self._marginals)
        solved = _solution(self)
        sizes = counts[self.cohorts * self.bits :]
        bits = (counts[: self.cohorts * self.bits].reshape(self.cohorts, self.bits) - rest * sizes[:, None]) / (
            own - rest
        )
        shares = self.cohorts / reports * (solved @ bits.reshape(-1))
        return Shares(reports, shares, self._variance(np.clip(shares, 0.0, 1.0)) / reports, 0.0)

    def _variance(self, shares: Floats) -> Floats:
        """The variance from one report on average, for the given true shares: E[z²] - E[z]² for each value v.

        A report of value x in cohort j adds m·W_j·(its unbiased bits) to the estimates, W being the solution; cohorts
        are drawn evenly, and the bits of one report are independent.
        """
        own, rest = map(float, self._marginals)
        noise_own, noise_rest = (chance * (1 - chance) / (own - rest) ** 2 for chance in (own, rest))
        solved = _solution(self).reshape(self.domain, self.cohorts, self.bits)
        filters = _unpacked(self)
        total = np.zeros(self.domain)
        for j in range(self.cohorts):
            means = solved[:, j] @ filters[j].T  # value × sender's value
            spread = solved[:, j] ** 2 @ (noise_rest + (noise_own - noise_rest) * filters[j].T)
            total += self.cohorts * ((means**2 + spread) @ shares)
        return np.asarray(total - shares, dtype=np.float64)


@lru_cache(maxsize=4)
def _filters(plan: Rappor) -> Words:
    """The Bloom filter of every value in every cohort: public, and the same for everybody."""
    filters = np.zeros((plan.cohorts, plan.domain, words_for(plan.bits)), dtype=np.uint64)
    for cohort in range(plan.cohorts):
        for value in range(plan.domain):
            for number in range(plan.hashes):
                digest = hashlib.sha256(f"privet rappor {cohort} {number} {value}".encode()).digest()
                word, bit = divmod(int.from_bytes(digest[:16]) % plan.bits, 64)
                filters[cohort, value, word] |= np.uint64(1 << bit)
    return filters


def _unpacked(plan: Rappor) -> Floats:
    """The same with one number for each bit: cohort × value × bit."""
    raw = _filters(plan).astype("<u8").view(np.uint8)
    return np.unpackbits(raw, axis=-1, bitorder="little")[..., : plan.bits].astype(np.float64)


@lru_cache(maxsize=4)
def _solution(plan: Rappor) -> Floats:
    """The least-squares inverse of the matrix that makes bits from shares: value × (cohort and bit)."""
    design = _unpacked(plan).transpose(0, 2, 1).reshape(-1, plan.domain)
    if np.linalg.matrix_rank(design, rtol=_RANK) < plan.domain:
        problem = (
            f"is {plan.domain}, and the filters of {plan.cohorts} cohorts of {plan.bits} bits do not tell so many apart"
        )
        raise InvalidInput("domain", problem, "use more bits or more cohorts")
    return np.asarray(np.linalg.pinv(design), dtype=np.float64)
