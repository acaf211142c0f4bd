"""One exact draw at a time, in plain integers (Canonne, Kamath & Steinke 2020, Algorithms 1 to 3).

For a single answer, the calls of the array samplers cost more than their arithmetic: about ten times as much as here.
No floating-point number takes part, and a uniform number is compared with the exact fraction from its first bits on.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from privet.core.random.faults import PATIENCE, broken_source
from privet.core.random.rng import Rng

__all__ = ["Coins", "one_gaussian", "one_laplace"]

_BLOCK: Final = 16
"""Words at a time; a draw seldom takes more than two such blocks, and what is left over is never used."""


class Coins:
    """Coins and dice of exact probabilities, from words of `bits` bits."""

    def __init__(self, rng: Rng, bits: int = 64, block: int = _BLOCK) -> None:
        self._rng, self._bits, self._block = rng, bits, block
        self._words: list[int] = []

    def word(self) -> int:
        """Return the next bits."""
        if not self._words:
            self._words = self._rng.words(self._block).tolist()
            self._words.reverse()
        return self._words.pop() >> (64 - self._bits)

    def below(self, bound: int) -> int:
        """Return a uniform integer in [0, bound): leading bits, drawn again if they are too large."""
        wanted = (bound - 1).bit_length()
        for _ in range(PATIENCE):
            drawn, length = 0, 0
            while length < wanted:
                drawn, length = drawn << self._bits | self.word(), length + self._bits
            drawn >>= length - wanted
            if drawn < bound:
                return drawn
        raise broken_source()

    def ratio(self, top: int, bottom: int) -> bool:
        """Return True with probability top/bottom ≤ 1: compare a uniform number with it, in as many bits as needed."""
        drawn, length = self.word(), self._bits
        for _ in range(PATIENCE):
            bar, start = top << length, drawn * bottom
            if start + bottom <= bar:
                return True
            if start >= bar:
                return False
            drawn, length = drawn << self._bits | self.word(), length + self._bits
        raise broken_source()

    def exp(self, top: int, bottom: int) -> bool:
        """Return True with probability exp(-top/bottom): one coin of 1/e for each whole, and one for what is left."""
        whole, rest = divmod(top, bottom)
        for done in range(whole):
            if not self._fractional(1, 1):
                return False
            if done > PATIENCE:
                raise broken_source()
        return self._fractional(rest, bottom)

    def _fractional(self, top: int, bottom: int) -> bool:
        """Algorithm 1 for γ = top/bottom ≤ 1: the first k whose coin of γ/k fails is odd with probability exp(-γ)."""
        for k in range(1, PATIENCE):
            if not self.ratio(top, bottom * k):
                return k % 2 == 1
        raise broken_source()


def one_laplace(scale: Fraction, rng: Rng) -> int:
    """Return an integer x with probability proportional to exp(-|x|/scale), exactly."""
    return _laplace(scale.numerator, scale.denominator, Coins(rng))


def one_gaussian(sigma: Fraction, rng: Rng) -> int:
    """Return an integer x with probability proportional to exp(-x²/(2σ²)), exactly (Algorithm 3)."""
    coins, top, bottom = Coins(rng), sigma.numerator**2, sigma.denominator**2
    scale = math.floor(sigma) + 1
    below = 2 * top * bottom * scale**2
    for _ in range(PATIENCE):
        drawn = _laplace(scale, 1, coins)
        # (|y| - σ²/t)²/(2σ²) with σ² = top/bottom
        if coins.exp((abs(drawn) * scale * bottom - top) ** 2, below):
            return drawn
    raise broken_source()


def _laplace(top: int, bottom: int, coins: Coins) -> int:
    """Algorithm 2 for a scale of top/bottom, as in `discrete._laplace`: |x| = u + m·v with m = ⌊scale⌋, at least 1."""
    step = max(1, top // bottom)
    for _ in range(PATIENCE):
        size = coins.below(step)
        if not coins.exp(size * bottom, top):
            continue
        for _ in range(PATIENCE):
            if not coins.exp(step * bottom, top):
                break
            size += step
        else:
            raise broken_source()
        minus = coins.below(2)
        if size or not minus:  # 0 and -0 are one integer: count it once
            return -size if minus else size
    raise broken_source()
