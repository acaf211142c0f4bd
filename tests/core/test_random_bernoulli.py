"""Coins of probability exp(-γ): the algorithm is checked by going through everything that it can draw."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from privet.core.errors import PrivetError
from privet.core.random import Rng, SeededRng, bernoulli
from privet.core.random.bernoulli import BITS, CEILING, Exponents, accept, run_lengths


class Exhausted(Exception):
    """The run asked for more than its prefix holds."""


class Prefix:
    """Gives the words of a prefix, each of a few bits, and then stops the run."""

    def __init__(self, words: tuple[int, ...], bits: int) -> None:
        self._words, self._bits = iter(words), bits

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        taken = list(itertools.islice(self._words, n))
        if len(taken) < n:
            raise Exhausted
        return np.array(taken, dtype=np.uint64) << np.uint64(64 - self._bits)


def enumerated(run: Callable[[Rng], bool], bits: int, depth: int) -> tuple[Fraction, Fraction]:
    """The exact probability that `run` says yes within `depth` words, and that it is not done by then."""
    yes, still_open = Fraction(0), Fraction(0)
    prefixes: list[tuple[int, ...]] = [()]
    while prefixes:
        prefix = prefixes.pop()
        weight = Fraction(1, 2 ** (bits * len(prefix)))
        try:
            yes += weight * run(cast("Rng", Prefix(prefix, bits)))
        except Exhausted:
            if len(prefix) == depth:
                still_open += weight
            else:
                prefixes += [(*prefix, word) for word in range(1 << bits)]
    return yes, still_open


@pytest.mark.parametrize(("bits", "depth"), [(1, 18), (2, 9)])
@pytest.mark.parametrize("gamma", [Fraction(g) for g in ("0", "1/7", "1/4", "1/3", "1/2", "2/3", "3/4", "9/10", "1")])
def test_every_path_adds_up_to_exp(gamma: Fraction, bits: int, depth: int) -> None:
    """Catches any off-by-one: a k that starts or ends wrongly, an odd taken for an even, a comparison that is off by
    one unit, a continuation with too few bits. All sequences of tiny words are tried, so most coins need several.
    """
    yes, still_open = enumerated(lambda rng: bool(accept(Exponents.of(gamma, 1, bits), rng)[0]), bits, depth)
    assert still_open < Fraction(1, 150)
    assert float(yes) - 1e-15 <= math.exp(-gamma) <= float(yes + still_open) + 1e-15


def fair_coins(coins: Iterator[bool]) -> Callable[..., npt.NDArray[np.bool_]]:
    """Stands in for the coins of probability exp(-γ), γ ≤ 1, and takes them from a list instead."""

    def scripted(low: npt.NDArray[np.int64], *_: object) -> npt.NDArray[np.bool_]:
        taken = list(itertools.islice(coins, len(low)))
        if len(taken) < len(low):
            raise Exhausted
        return np.array(taken, dtype=np.bool_)

    return scripted


def test_runs_are_geometric_and_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a run that is one too long or short, and a row that is cut so that long runs are rarer than they should.

    With fair coins in place of the real ones, every row is tried: runs of lengths a and b weigh 2^-(a+1) · 2^-(b+1).
    """
    length = 12
    weights: dict[tuple[int, ...], int] = {}
    for row in itertools.product([False, True], repeat=length):
        monkeypatch.setattr(bernoulli, "_fractional", fair_coins(iter(row)))
        try:
            runs = tuple(run_lengths(Fraction(1), 2, SeededRng(0)).tolist())
        except Exhausted:
            assert sum(not coin for coin in row) < 2, "a row that holds two runs is enough"
            continue
        weights[runs] = weights.get(runs, 0) + 1
    expected = {(a, b): 2 ** (length - a - b - 2) for a in range(length) for b in range(length - 1 - a)}
    assert weights == expected


@pytest.mark.parametrize(("gamma", "coins"), [("1/2", 1), ("1", 1), ("3/2", 2), ("2", 2), ("5/2", 3), ("4", 4)])
def test_a_large_exponent_takes_one_coin_for_each_unit(gamma: str, coins: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a whole part that is off by one: with fair coins in place of the real ones, ⌈γ⌉ of them must come up."""
    yes, still_open = 0, 0
    for row in itertools.product([False, True], repeat=11):
        monkeypatch.setattr(bernoulli, "_fractional", fair_coins(iter(row)))
        try:
            yes += bool(accept(Exponents.of(Fraction(gamma), 1), SeededRng(0))[0])
        except Exhausted:
            still_open += 1
    assert still_open <= 2
    assert yes <= 2 ** (11 - coins) <= yes + still_open


@pytest.mark.parametrize("bits", [3, 8, 40])
def test_bounds_on_two_sides_of_a_whole_number_are_resolved(bits: int) -> None:
    """Catches a whole part that is guessed from loose bounds. False-alarm rate 1e-6."""
    gammas = [Fraction(n, 100) for n in (99, 100, 101, 199, 200, 201, 250)]
    which = np.arange(210_000) % len(gammas)
    middle = np.array([math.floor(g * (1 << bits)) for g in gammas])[which]
    loose = 1 << (bits - 2)
    exponents = Exponents(np.maximum(middle - loose, 0), middle + loose + 1, lambda i: gammas[which[i]], bits)
    up = np.bincount(which, weights=accept(exponents, SeededRng(3)))
    expected = 30_000 * np.exp([-float(g) for g in gammas])
    deviations = (up - expected) / np.sqrt(expected * (1 - expected / 30_000))
    assert np.abs(deviations).max() < 5.3


@pytest.mark.parametrize(
    "gamma", ["1/1000", "1/3", "1", "7/5", "3", "13/2", "123456789012345678901/100000000000000000000"]
)
def test_frequencies_are_right(gamma: str) -> None:
    """Catches a wrong law end to end, with long fractions among the exponents. False-alarm rate 1e-6."""
    fraction, n = Fraction(gamma), 400_000
    up = int(accept(Exponents.of(fraction, n), SeededRng(4)).sum())
    assert stats.binomtest(up, n, math.exp(-fraction)).pvalue > 1e-6


def test_exponents_of_several_elements() -> None:
    """Catches exponents that are mixed up between elements, and long ones that are cut. False-alarm rate 1e-6."""
    gammas = [Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(2)]
    which = np.arange(200_000) % len(gammas)
    bounds = np.array([math.floor(gamma * (1 << BITS)) for gamma in gammas])[which]
    up = accept(Exponents(bounds, bounds + 1, lambda i: gammas[which[i]]), SeededRng(5))
    for place, gamma in enumerate(gammas):
        hits = up[which == place]
        assert stats.binomtest(int(hits.sum()), hits.size, math.exp(-gamma)).pvalue > 3e-7
    huge = [accept(Exponents.of(Fraction(n, 10**57), 1), SeededRng(5))[0] for n in (0, 10**30, 10**60)]
    assert huge == [True, True, False]
    assert accept(Exponents.of(Fraction(1, 3), 0), SeededRng(5)).shape == (0,)


class Pattern:
    """A broken source that repeats one word."""

    def __init__(self, word: int) -> None:
        self._word = word

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        return np.full(n, self._word, dtype=np.uint64)


@pytest.mark.parametrize(
    ("word", "gamma"), [(0, Fraction(1)), (0x5555555555555555, Fraction(1, 3)), (0, Fraction(CEILING))]
)
def test_a_stuck_source_is_noticed(word: int, gamma: Fraction) -> None:
    """Catches a loop that never ends: coins that always come up, and bits that never tell two numbers apart."""
    with pytest.raises(PrivetError, match="repeats itself"):
        accept(Exponents.of(gamma, 3), cast("Rng", Pattern(word)))
