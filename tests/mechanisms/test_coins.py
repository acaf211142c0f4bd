"""Thresholds are rounded to the safe side, packed coins have exactly their probability, and lanes are counted right."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.local.packed_bits import bit_counts
from privet.mechanisms.coins import WORD, coins, cost, growth, packed, threshold, usable
from tests.local.branches import Branches

EPSILONS = (1e-4, 0.1, 0.5, 1.0, 1.0986122886681098, 2.0, 7.3, 20.0, 40.0)


def power(epsilon: float | Fraction) -> Fraction:
    """e^ε to 200 digits."""
    with mpmath.workdps(200):
        exact = Fraction(epsilon)
        return Fraction(str(mpmath.exp(mpmath.mpf(exact.numerator) / exact.denominator)))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_odds_are_below_the_exponential_and_nearly_it(epsilon: float) -> None:
    """Fails when e^ε is rounded up anywhere, so that a report would be worth more than ε."""
    for exact in (Fraction(epsilon), Fraction(epsilon) / 2, Fraction(epsilon) / 3):
        found, true = growth(exact), power(exact)
        assert true * (1 - Fraction(1, 10**50)) < found < true
        limit = threshold(found)
        assert (
            Fraction(limit, WORD - limit) <= found < Fraction(limit + 1, WORD - limit - 1) if limit + 1 < WORD else True
        )


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_cost_of_odds_is_not_below_their_logarithm(epsilon: float) -> None:
    """Fails when a logarithm is rounded down, so that a stated ε would be too small."""
    assert epsilon <= cost(power(epsilon)) <= epsilon * (1 + 1e-14)


def test_an_epsilon_that_means_nothing_is_refused() -> None:
    """Fails when an ε beyond what 64 bits can do is taken silently."""
    for bad in (0.0, -1.0, 1e-5, 41.0, float("nan"), float("inf")):
        with pytest.raises(InvalidInput, match="epsilon"):
            usable(bad)


def test_a_coin_has_its_probability() -> None:
    """Fails when a coin compares with ≤ or with a threshold beside its own."""
    limit = threshold(Fraction(3, 7))
    law = Branches([limit]).law(lambda rng: bool(coins(limit, 1, rng)[0]))
    assert law == {True: Fraction(limit, WORD), False: 1 - Fraction(limit, WORD)}


@pytest.mark.parametrize("eighths", range(1, 8))
def test_packed_coins_have_their_probability(eighths: int) -> None:
    """Fails when a round of the comparison reads the wrong bit or decides a lane twice: all 2³ bits of one lane."""

    class Lane:
        def __init__(self, bits: tuple[int, ...]) -> None:
            self.bits = list(bits)

        def words(self, n: int) -> object:
            return np.full(n, (WORD - 1) * self.bits.pop(0), dtype=np.uint64)

    ways = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    up = 0
    for bits in ways:
        drawn = packed(eighths << 61, (1, 2), Lane((*bits,)))  # type: ignore[arg-type]
        assert set(drawn.reshape(-1).tolist()) <= {0, WORD - 1}
        up += int(drawn[0, 0] > 0)
    assert up == eighths


@pytest.mark.parametrize("limit", [WORD // 2, threshold(Fraction(1, 3)), 1 << 54, WORD - (1 << 54), 12345 << 49])
def test_packed_lanes_are_fair_and_alone(limit: int) -> None:
    """Fails when lanes share bits or are compressed into the wrong places; each of 128 lane means and 127 neighbours'
    products within 5.5 deviations, a false alarm in about 10^5 runs, and the seed is fixed."""
    rows = packed(limit, (40_000, 2), SeededRng(5))
    lanes = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little").astype(np.float64)
    p = limit / WORD
    spread = np.sqrt(p * (1 - p) / len(lanes))
    assert np.abs(lanes.mean(axis=0) - p).max() < 5.5 * spread
    centred = lanes - p
    products = (centred[:, 1:] * centred[:, :-1]).mean(axis=0)
    assert np.abs(products).max() < 5.5 * p * (1 - p) / np.sqrt(len(lanes)) + 5.5 * spread**2


@pytest.mark.parametrize(("rows", "lanes"), [(0, 3), (1, 64), (2, 65), (3, 130), (1000, 100), (20_000, 70)])
def test_lanes_are_counted_as_one_would(rows: int, lanes: int) -> None:
    """Fails when a carry is lost or a block's last rows are dropped."""
    words = SeededRng(2).words(rows * (-(-lanes // 64))).reshape(rows, -(-lanes // 64))
    plain = np.unpackbits(words.view(np.uint8).reshape(rows, 8 * words.shape[1]), axis=1, bitorder="little")[:, :lanes]
    assert bit_counts(words, lanes).tolist() == plain.sum(axis=0, dtype=np.int64).tolist()
