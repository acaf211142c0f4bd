"""Coins that come up with probability exp(-γ), exactly (Canonne, Kamath & Steinke 2020, Algorithm 1).

Only integers decide. A coin of probability γ/k compares a uniform real number, of which `bits` bits are drawn at first,
with γ/k, of which a lower and an upper bound are known in the same units. Where these bits cannot tell (about one coin
in 2^24), more are drawn and compared with the exact fraction until they can. So whole arrays are decided in 64-bit
arithmetic, no matter how long the fractions are, and the law is exact.

How long a draw takes depends on what is drawn, as in every rejection sampler: do not let others time single draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from privet.core.random.faults import PATIENCE, broken_source
from privet.core.random.rng import Rng

__all__ = ["BITS", "CEILING", "Exponents", "accept", "run_lengths"]

_Integers: TypeAlias = npt.NDArray[np.int64]
_Booleans: TypeAlias = npt.NDArray[np.bool_]

BITS: Final = 40
# Exponents from here on are not told apart: a coin of probability e^-2048 that comes up means a broken source.
CEILING: Final = 2048
_LONGEST_ROW: Final = 1 << 16


@dataclass(frozen=True, eq=False)
class Exponents:
    """Numbers γ ≥ 0, each between `low` and `high` in units of 2^-bits, and exactly known on request.

    A γ of `CEILING` or more may be stated as exactly `CEILING`.
    """

    low: _Integers
    high: _Integers
    exact: Callable[[int], Fraction]
    bits: int = BITS

    @staticmethod
    def of(gamma: Fraction, count: int, bits: int = BITS) -> Exponents:
        """Return exponents that are all γ, `count` of them."""
        low, high = _enclose(gamma, bits)
        return Exponents(
            np.full(count, low, dtype=np.int64), np.full(count, high, dtype=np.int64), lambda _: gamma, bits
        )


def accept(exponents: Exponents, rng: Rng) -> _Booleans:
    """For each γ one coin, true with probability exp(-γ)."""
    bits, one = exponents.bits, 1 << exponents.bits
    # exp(-γ) = exp(-1)^whole · exp(-part) with part in [0, 1]; a γ of exactly n counts as n - 1 and a part of 1.
    whole = np.maximum(exponents.low - 1, 0) >> bits
    low, high = exponents.low - (whole << bits), exponents.high - (whole << bits)
    exact = exponents.exact
    for i in (high > one).nonzero()[0]:  # the bounds lie on two sides of a whole number
        gamma = exact(int(i))
        whole[i] = gamma.__floor__()
        low[i], high[i] = _enclose(gamma - int(whole[i]), bits)
    if not whole.any():
        return _fractional(low, high, exact, bits, rng)
    alive = _survivors(whole, bits, rng)
    result = np.zeros(len(whole), dtype=np.bool_)
    result[alive] = _fractional(
        low[alive], high[alive], lambda j: exact(int(alive[j])) - int(whole[alive[j]]), bits, rng
    )
    return result


def run_lengths(gamma: Fraction, count: int, rng: Rng, bits: int = BITS) -> _Integers:
    """Return how many coins of probability exp(-γ) come up before one fails, `count` times.

    All runs are cut from one row of coins, which is made longer until it holds `count` of them. (Taking the runs that
    happen to end within a row of fixed length would favour short ones.)
    """
    ends, length = np.empty(0, dtype=np.int64), 0
    top, bottom = gamma.numerator, gamma.denominator
    while len(ends) < count:
        missing = count - len(ends)
        # 1/(1 - e^-γ) coins a run, on average, is at most 1 + 1/γ.
        row = min(_LONGEST_ROW, missing - (-missing * bottom // top) + 8)
        fails = (~accept(Exponents.of(gamma, row, bits), rng)).nonzero()[0]
        ends = np.concatenate([ends, length + fails]) if length else fails
        length += row
        if length > PATIENCE * (len(ends) + 1) * (1 - (-bottom // top)):
            raise broken_source()
    runs = ends[:count].copy()
    runs[1:] -= ends[: count - 1] + 1
    return runs


def _survivors(whole: _Integers, bits: int, rng: Rng) -> _Integers:
    """The places i where `whole[i]` coins of probability 1/e all came up."""
    survives = whole == 0
    asked = np.flatnonzero(~survives)
    survives[asked] = run_lengths(Fraction(1), asked.size, rng, bits) >= whole[asked]
    if (whole[survives] >= CEILING - 1).any():
        raise broken_source()
    return np.flatnonzero(survives)


def _fractional(low: _Integers, high: _Integers, exact: Callable[[int], Fraction], bits: int, rng: Rng) -> _Booleans:
    """The loop of Algorithm 1 for γ in [0, 1]: count coins of probability γ/k, k = 1, 2, …, until one fails.

    The k at which it fails is odd with probability 1 - γ + γ²/2 - … = exp(-γ).
    """
    result = np.zeros(len(low), dtype=np.bool_)
    active = np.arange(len(low))
    # The first coin of γ = 1 always comes up.
    k = 2 if low.size and int(low.min()) == 1 << bits else 1
    while active.size:
        drawn = (rng.words(active.size) >> np.uint64(64 - bits)).view(np.int64)
        scaled = drawn * k
        maybe = scaled < high
        scaled += k
        up = scaled <= low
        if np.count_nonzero(up) < np.count_nonzero(maybe):
            for i in np.flatnonzero(maybe & ~up):
                up[i] = _longer(int(drawn[i]), bits, exact(int(active[i])) / k, rng)
        if k % 2:
            result[active] = ~up  # those that came up go on, and are written again when they fail
        on = up.nonzero()[0]
        active, low, high = active[on], low[on], high[on]
        k += 1
        if k > PATIENCE:
            raise broken_source()
    return result


def _longer(drawn: int, bits: int, probability: Fraction, rng: Rng) -> bool:
    """Whether a uniform number with the leading bits `drawn` is below `probability`: draws on until that is certain."""
    top, bottom, length = probability.numerator, probability.denominator, bits
    while length < PATIENCE * bits:
        drawn = (drawn << bits) | int(rng.words(1)[0]) >> (64 - bits)
        length += bits
        if (drawn + 1) * bottom <= top << length:
            return True
        if drawn * bottom >= top << length:
            return False
    raise broken_source()


def _enclose(gamma: Fraction, bits: int) -> tuple[int, int]:
    if gamma >= CEILING:
        return CEILING << bits, CEILING << bits
    scaled, bottom = gamma.numerator << bits, gamma.denominator
    return scaled // bottom, -(-scaled // bottom)
