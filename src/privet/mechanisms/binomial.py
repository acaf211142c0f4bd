"""Binomial noise: fair coins, and nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.special import bdtr, gammaln

from privet.accounting import largest_count
from privet.core import Bounded, InvalidInput, Release, checked, event
from privet.core.random import Rng
from privet.mechanisms.additive import add_noise, checked_confidence
from privet.mechanisms.grid import Integers, NoiseGrid, ceiling
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.reach import COUNT, ForReach, Of, Reach, reach_of

__all__ = ["Binomial", "binomial_delta"]

_MOST_COINS = 1 << 20
_UP = 1 + 1e-8
"""Ten times the error of the distribution function that δ is computed from, measured up to the most coins."""


@lru_cache(maxsize=4096)
def binomial_delta(coins: int, distance: int, epsilon: float) -> float:
    """Return δ at ε of Bin(coins, ½) against itself moved by `distance`, exact up to an outward rounding of 1e-8.

    The ratio of the masses at x and at x - distance falls in x, so that δ = max over k of F(k) - e^ε·F(k - distance).

    >>> round(binomial_delta(16, 1, 1.0), 4)
    0.0095
    """

    def log_ratio(k: int) -> float:
        """log of P(k) over P(k - distance)."""
        if k < distance:
            return math.inf
        mass = gammaln(np.array([k - distance + 1, coins - k + distance + 1, k + 1, coins - k + 1], dtype=np.float64))
        return float(mass[0] + mass[1] - mass[2] - mass[3])

    low, high = 0, coins
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if log_ratio(middle) > epsilon else (low, middle)
    near = np.arange(max(low - 3, 0), min(high + 3, coins) + 1, dtype=np.float64)
    here = bdtr(near, coins, 0.5)
    there = np.where(near >= distance, bdtr(np.maximum(near - distance, 0), coins, 0.5), 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = here * _UP - np.where(there > 0, np.exp(epsilon) * there, 0.0)
    return float(min(1.0, max(0.0, np.nanmax(gaps))))


@dataclass(frozen=True)
class Binomial(ForReach):
    """The heads of fair coins, less half of the coins, added to whole numbers (Agarwal et al. 2018).

    Fair coins are all that it needs, so that several parties can each add some. Its δ is computed from the mass
    function, coordinate by coordinate, and not from a bound.

    >>> Binomial.for_epsilon(1.0, 1e-6).coins
    80
    """

    coins: int
    """How many, a multiple of 16."""
    epsilon: float
    """The ε, of one record and one coordinate, that δ is stated for."""
    of: Of = COUNT

    def __post_init__(self) -> None:
        checked.positive("epsilon", self.epsilon)
        if checked.count("coins", self.coins, 16) % 16 or self.coins > _MOST_COINS:
            raise InvalidInput("coins", f"is {self.coins}", "give a multiple of 16, at most 2^20")
        super().__post_init__()
        NoiseGrid.whole(self.reach)

    @staticmethod
    def for_epsilon(epsilon: float, delta: float, of: Of = COUNT) -> Binomial:
        """Return the mechanism with the fewest coins that is (ε, δ)-DP for the unit.

        Args:
            epsilon: The privacy cost of one release, for the unit of the clipper.
            delta: The δ at which ε is stated.
            of: The clipper whose answers are to be released, or its reach.

        Raises:
            InvalidInput: ε or δ is out of range, or would need more than 2^20 coins.
        """
        reach = reach_of(of)
        records, moved = reach.unit.records, _moved(reach)
        share = checked.positive("epsilon", epsilon) / (records * moved) * (1 - 2.0**-50)
        # k steps of one unit cost δ·(1 + e^ε + … + e^((k-1)ε)): Vadhan 2017, Lemma 2.2.
        worse = sum(math.exp(share * k) for k in range(records))
        target = checked.positive("delta", checked.share("delta", delta)) / (moved * worse) * (1 - 1e-9)
        distance, most = _distance(reach), _MOST_COINS // 16
        sixteens = 1 + largest_count(lambda n: binomial_delta(16 * n, distance, share) > target, most)
        if sixteens > most:
            raise InvalidInput("epsilon", f"= {epsilon} would take more than 2^20 coins", "use DiscreteGaussian")
        return Binomial(16 * sixteens, share, of)

    @property
    def event(self) -> event.Event:
        """An (ε, δ) block for each coordinate that a unit moves, for the neighbors of the unit."""
        delta = binomial_delta(self.coins, _distance(self.reach), self.epsilon)
        one = event.Approximate(self.epsilon, delta, self.reach.unit.neighbours)
        moved = _moved(self.reach)
        return one if moved == 1 else event.Repeated(one, moved)

    @property
    def expected_error(self) -> float:
        """E|noise| of one coordinate: coins/2 · C(coins, coins/2)/2^coins (de Moivre 1730)."""
        half = self.coins / 2
        log = gammaln(self.coins + 1) - 2 * gammaln(half + 1) - self.coins * math.log(2)
        return half * math.exp(float(log))

    def interval(self, confidence: float) -> float:
        """Return the half-width for one coordinate.

        Args:
            confidence: The confidence, between 0 and 1.
        """
        miss, half = checked_confidence(confidence), self.coins // 2
        # P(|noise| > k) = 2·P(noise < -k), which is 0 for k = half
        return 1.0 + largest_count(lambda k: 2 * float(bdtr(half - k - 1, self.coins, 0.5)) > miss, half - 1, start=-1)

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[Any]:
        """Return the answer with its noise, as whole numbers.

        Args:
            query: An answer of the clipper that the mechanism was made for.
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.

        Raises:
            InvalidInput: The answer could move further than the mechanism was made for.

        Guarantee: (ε, δ) for each coordinate that a unit moves, for the unit and neighbors of the reach, with the
        exact δ of the mass function (Dwork, Kenthapadi, McSherry, Mironov & Naor 2006 have the idea). Outputs that only
        one of two neighbors can give are part of δ.
        """
        grid = NoiseGrid.whole(self.reach)
        return add_noise(query, self.event, grid, partial(_heads, self.coins), whole=True, rng=rng, source=source)


def _moved(reach: Reach) -> int:
    return min(math.ceil(reach.distance("l0")), reach.dimension)


def _distance(reach: Reach) -> int:
    """How far one of the unit's records moves a coordinate."""
    return ceiling(NoiseGrid.whole(reach).moves("linf") / reach.unit.records)


def _heads(coins: int, size: int, rng: Rng) -> Integers:
    """Heads less half of the coins, `size` times."""
    heads = np.empty(size, dtype=np.int64)
    for index in range(size):
        heads[index] = int.from_bytes(rng.bits(coins // 8), "little").bit_count() - coins // 2
    return heads
