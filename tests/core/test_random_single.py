"""Single exact draws: everything that they can draw is gone through, coin by coin and number by number."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from typing import cast

import numpy as np
import pytest
from scipy import stats

from privet.core.errors import PrivetError
from privet.core.random import Rng, SeededRng, discrete_gaussian, discrete_laplace, single
from privet.core.random.single import Coins, one_gaussian, one_laplace
from tests.core.test_random_bernoulli import enumerated
from tests.core.test_random_discrete import SAMPLERS, Stuck, pmf


@pytest.mark.parametrize(("bits", "depth"), [(1, 18), (2, 9)])
@pytest.mark.parametrize("gamma", [Fraction(g) for g in ("0", "1/7", "1/3", "1/2", "9/10", "1", "5/4", "2")])
def test_every_path_adds_up_to_exp(gamma: Fraction, bits: int, depth: int) -> None:
    """Catches an odd taken for an even, a k or a whole part that is off by one, a comparison that is off by one unit, a
    continuation with too few bits.
    """

    def coin(rng: Rng) -> bool:
        return Coins(rng, bits, block=1).exp(gamma.numerator, gamma.denominator)

    yes, still_open = enumerated(coin, bits, depth)
    assert still_open < Fraction(1, 25)
    assert float(yes) - 1e-15 <= math.exp(-gamma) <= float(yes + still_open) + 1e-15


@pytest.mark.parametrize("bits", [1, 2, 3])
@pytest.mark.parametrize("bound", [1, 2, 3, 5, 6, 8])
def test_every_number_below_is_equally_likely(bound: int, bits: int) -> None:
    """Catches a remainder in place of a second try, bits that are dropped at the wrong end, a bound that is reached."""
    for value in range(bound):
        yes, still_open = enumerated(lambda rng, v=value: Coins(rng, bits, block=1).below(bound) == v, bits, 12 // bits)  # type: ignore[misc]
        assert yes <= Fraction(1, bound) <= yes + still_open
        assert still_open <= Fraction(1, 4)
    assert all(Coins(SeededRng(1)).below(bound) < bound for _ in range(20))


class Undecided(Exception):
    """The script has ended; what can come next, with its chance."""

    def __init__(self, chances: list[tuple[int, float]]) -> None:
        self.chances = chances


class Script:
    """Stands in for `Coins`: outcomes from a list, with their exact chances."""

    def __init__(self, outcomes: tuple[int, ...]) -> None:
        self._outcomes = iter(outcomes)

    def _next(self, chances: list[tuple[int, float]]) -> int:
        for outcome in self._outcomes:
            return outcome
        raise Undecided(chances)

    def exp(self, top: int, bottom: int) -> bool:
        chance = math.exp(-top / bottom)
        return bool(self._next([(1, chance), (0, 1 - chance)]))

    def below(self, bound: int) -> int:
        return self._next([(value, 1 / bound) for value in range(bound)])


def law(draw: Callable[[], int], monkeypatch: pytest.MonkeyPatch, least: float) -> tuple[dict[int, float], float]:
    """The probability of every integer, from all scripts that are likelier than `least`, and that of the others."""
    found: dict[int, float] = defaultdict(float)
    scripts: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    unknown = 0.0
    while scripts:
        script, weight = scripts.pop()
        if weight < least:
            unknown += weight
            continue
        monkeypatch.setattr(single, "Coins", lambda _, script=script: Script(script))
        try:
            found[draw()] += weight
        except Undecided as branch:
            scripts += [((*script, outcome), weight * chance) for outcome, chance in branch.chances if chance]
    return found, unknown


SCALES = [Fraction(1, 2), Fraction(1), Fraction(5, 2), Fraction(3)]


@pytest.mark.parametrize("scale", SCALES)
def test_the_law_of_laplace_is_exact(scale: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a 0 that is counted twice, a step or a sign that is off by one, a wrong rate."""
    found, unknown = law(lambda: one_laplace(scale, cast("Rng", None)), monkeypatch, least=2e-6)
    assert unknown < 0.01
    values = np.arange(-4, 5)
    for value, expected in zip(values.tolist(), pmf(discrete_laplace, float(scale), values), strict=True):
        assert found[value] - 1e-12 <= expected <= found[value] + unknown + 1e-12


@pytest.mark.parametrize("sigma", SCALES)
def test_the_law_of_gaussians_is_exact(sigma: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a wrong centre or width in the acceptance: what is proposed times what is kept of it is the law."""
    scales, kept = [], []

    class Keeps:
        def exp(self, top: int, bottom: int) -> bool:
            kept.append(math.exp(-top / bottom))
            return True

    values = np.arange(-40, 41)
    monkeypatch.setattr(single, "Coins", lambda _: Keeps())
    for value in values.tolist():

        def proposed(top: int, bottom: int, _: object, value: int = value) -> int:
            scales.append(top / bottom)
            return value

        monkeypatch.setattr(single, "_laplace", proposed)
        assert one_gaussian(sigma, cast("Rng", None)) == value
    assert len(set(scales)) == 1
    weights = pmf(discrete_laplace, scales[0], values) * kept
    assert np.allclose(weights / weights.sum(), pmf(discrete_gaussian, float(sigma), values), atol=1e-12)


@pytest.mark.parametrize("parameter", [2.7, Fraction(10**9, 7), 2**50])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_single_draws_have_the_spread_of_arrays(sampler: Callable[..., int], parameter: float | Fraction) -> None:
    """Catches a large scale that is cut short, end to end. False-alarm rate 1e-6 (Kolmogorov & Smirnov)."""
    rng = SeededRng(1)
    alone = np.array([sampler(parameter, None, rng) for _ in range(4000)]) + rng.uniform(4000)
    together = np.asarray(sampler(parameter, 40_000, rng)) + rng.uniform(40_000)
    assert stats.ks_2samp(alone, together).pvalue > 1e-6


@pytest.mark.parametrize("parameter", [1e-3, 1e-300, Fraction(1, 10**500)])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_tiny_scales_give_zero(sampler: Callable[..., int], parameter: float | Fraction) -> None:
    """Catches a loop over the whole part of 1/scale."""
    assert not any(sampler(parameter, None, SeededRng(3)) for _ in range(50))


@pytest.mark.parametrize("byte", [0, 255])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_stuck_source_is_noticed(sampler: object, byte: int) -> None:
    """Catches a loop that never ends when nothing is ever accepted, or everything."""
    draw, scale = (discrete_laplace, 3) if sampler is discrete_laplace else (discrete_gaussian, 2)
    with pytest.raises(PrivetError, match="repeats itself"):
        draw(scale, None, Stuck(byte))


def test_one_number_in_any_shape() -> None:
    """Catches a single draw that forgets the shape that was asked for."""
    assert discrete_laplace(2, (1, 1), SeededRng(1)).tolist() == [[discrete_laplace(2, None, SeededRng(1))]]
    assert discrete_gaussian(2, (), SeededRng(1)).dtype == np.int64
