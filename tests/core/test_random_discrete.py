"""The discrete Laplace and Gaussian laws against their exact probabilities, from tiny to huge scales.

Seeded; the rate stated is the chance that a correct sampler fails under a seed picked at random.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from privet.core.errors import InvalidInput, PrivetError
from privet.core.random import Randomness, SeededRng, discrete_gaussian, discrete_laplace
from privet.core.random.bernoulli import BITS, CEILING, Exponents
from privet.core.random.discrete import LARGEST_SCALE, _multiples, _squares
from privet.core.random.keystream import Bytes
from privet.core.random.rng import Rng

SAMPLERS: list[Callable[..., Any]] = [discrete_laplace, discrete_gaussian]
DRAWS = 300_000
SMALL = [
    Fraction(1, 5),
    Fraction(0.3),
    Fraction(1, 2),
    0.75,
    1,
    Fraction(3, 2),
    2,
    Fraction(5, 2),
    3.7,
    Fraction(20, 3),
]


def pmf(sampler: Callable[..., Any], parameter: float, values: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The exact probabilities, for parameters small enough to sum them all."""

    def weight(x: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        exponent = np.abs(x) / parameter if sampler is discrete_laplace else x**2 / (2 * parameter**2)
        return np.asarray(np.exp(-exponent))

    return np.asarray(weight(values) / weight(np.arange(-2000, 2001)).sum())


def upper_tail(sampler: Callable[..., Any], parameter: float, k: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """P(x ≥ k) for k > 0 and large parameters: in closed form, and by Euler–Maclaurin with an error of 1/(24σ²)."""
    if sampler is discrete_laplace:
        return np.asarray(np.exp(-k / parameter) / (1 + np.exp(-1 / parameter)))
    return np.asarray(special.ndtr(-(k - 0.5) / parameter))


@pytest.mark.parametrize("parameter", SMALL)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_small_scales_have_the_exact_law(sampler: Callable[..., Any], parameter: Fraction | float) -> None:
    """Catches a 0 that is counted twice, a step or a sign that is off by one, a wrong centre in the acceptance, a float
    taken for a nearby fraction. False-alarm rate 1e-6 for each parameter.
    """
    drawn = sampler(parameter, DRAWS, SeededRng(1))
    values = np.arange(-2000, 2001)
    expected = pmf(sampler, float(parameter), values) * DRAWS
    common = expected >= 8
    observed = np.array([np.count_nonzero(drawn == v) for v in values[common]])
    rest = DRAWS - observed.sum(), expected[~common].sum()
    if rest[1] >= 1:
        result = stats.chisquare([*observed, rest[0]], [*expected[common], rest[1]])
        assert result.pvalue > 1e-6
    else:
        assert stats.chisquare(observed, expected[common] * observed.sum() / expected[common].sum()).pvalue > 1e-6
        assert rest[0] <= 10


@pytest.mark.parametrize("parameter", [1000, 12345.678, Fraction(10**9, 7), 1e9, 2**40, LARGEST_SCALE])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_large_scales_have_the_exact_law(sampler: Callable[..., Any], parameter: Fraction | float) -> None:
    """Catches an overflow, a product cut short, and gaps between the integers that occur.

    False-alarm rate 3e-6 for each parameter: the law in 80 cells, the last digits, and the symmetry, at 1e-6 each.
    """
    drawn = sampler(parameter, DRAWS, SeededRng(2))
    scale = float(parameter)
    cuts = np.unique(np.ceil(np.concatenate([np.linspace(0.05, 3, 36), [3.5, 4.0, 4.2]]) * scale).astype(np.int64))
    above = upper_tail(sampler, scale, cuts)
    expected = np.concatenate([above[-1:], -np.diff(above)[::-1], [1 - 2 * above[0]], -np.diff(above), above[-1:]])
    edges = np.concatenate([-cuts[::-1] + 1, cuts])
    observed = np.bincount(np.searchsorted(edges, drawn, side="right"), minlength=len(edges) + 1)
    assert (expected * DRAWS).min() > 3
    assert stats.chisquare(observed, expected * DRAWS / expected.sum()).pvalue > 1e-6
    assert stats.chisquare(np.bincount(drawn % 12, minlength=12)).pvalue > 1e-6
    assert abs(np.count_nonzero(drawn > 0) - np.count_nonzero(drawn < 0)) < 5 * math.sqrt(DRAWS)


@pytest.mark.parametrize("parameter", [1e-3, Fraction(1, 1000), 1e-9, 1e-300, Fraction(1, 10**500)])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_tiny_scales_give_zeros(sampler: Callable[..., Any], parameter: Fraction | float) -> None:
    """Catches an overflow of 1/scale and a loop over all of its whole part: anything but 0 has a chance of e^-1000."""
    assert not sampler(parameter, 5000, SeededRng(3)).any()


def test_long_fractions_are_taken_exactly() -> None:
    """Catches a parameter that passes through a float on its way. False-alarm rate 1e-6."""
    near_two = 2 - Fraction(1, 10**40)
    drawn = discrete_laplace(near_two, DRAWS, SeededRng(4))
    zero = pmf(discrete_laplace, 2.0, np.array([0]))[0]
    assert stats.binomtest(int((drawn == 0).sum()), DRAWS, zero).pvalue > 1e-6
    assert not np.array_equal(drawn[:100], discrete_laplace(2, 100, SeededRng(4))), "another step, other draws"


def encloses(exponents: Exponents, exact: list[Fraction]) -> None:
    for i, gamma in enumerate(exact):
        low, high = int(exponents.low[i]), int(exponents.high[i])
        if low == CEILING << BITS:
            assert high == low
            assert gamma >= CEILING
        else:
            assert 0 <= low <= gamma * 2**BITS <= high
            assert exponents.exact(i) == gamma


fractions = st.builds(Fraction, st.integers(1, 10**12), st.integers(1, 10**12)) | st.floats(1e-12, 2.0**50).map(
    Fraction
)


@given(fractions, st.lists(st.integers(0, 2**62 - 1), min_size=1, max_size=8), st.lists(st.floats(0, 70), max_size=8))
def test_bounds_of_the_squares_hold(sigma: Fraction, sizes: list[int], multiples: list[float]) -> None:
    """Catches an overflow, a shift that rounds the wrong way and a bound that is off by one, for any σ up to 2^50."""
    sizes = sizes + [min(math.floor(m * sigma), 2**62 - 1) for m in (*multiples, *range(60, 300, 5))]
    scale = math.floor(sigma) + 1
    exact = [(y - sigma**2 / scale) ** 2 / (2 * sigma**2) for y in sizes]
    encloses(_squares(np.array(sizes, dtype=np.int64), sigma, scale), exact)


@given(st.floats(2, 2.0**50).map(Fraction) | st.integers(2, 2**50).map(Fraction), st.lists(st.floats(0, 1), min_size=1))
def test_bounds_of_the_multiples_hold(scale: Fraction, parts: list[float]) -> None:
    """Catches a product that overflows or that is rounded up, for any scale up to 2^50."""
    factors = [math.floor(part * math.floor(scale)) for part in parts]
    encloses(_multiples(np.array(factors, dtype=np.int64), 1 / scale), [factor / scale for factor in factors])


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_bounds_are_tight_where_it_matters(sampler: Callable[..., Any]) -> None:
    """Catches bounds so loose that most coins are settled one by one: right, but a thousand times slower."""
    scale = 1e9
    sizes = np.abs(sampler(scale, 10_000, SeededRng(5)))
    sizes = sizes[sizes < scale]
    bounds = (
        _squares(sizes, Fraction(scale), 10**9 + 1)
        if sampler is discrete_gaussian
        else _multiples(sizes, 1 / Fraction(scale))
    )
    assert (bounds.high - bounds.low).max() < 2 ** (BITS - 20)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_draws_are_independent(sampler: Callable[..., Any]) -> None:
    """Catches draws that repeat or lean on their neighbours. False-alarm rate 1e-7."""
    drawn = sampler(7, 1 << 18, SeededRng(6)).astype(float)
    for lag in (1, 2, 7, 1 << 12, 1 << 15):
        for x in (drawn, np.abs(drawn) - np.abs(drawn).mean()):
            assert abs((x[lag:] * x[:-lag]).mean() / (x * x).mean()) < 6 / math.sqrt(1 << 17)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_sizes(sampler: Callable[..., Any]) -> None:
    """Catches a wrong shape or type, and single draws of another law than arrays. False-alarm rate 1e-6."""
    assert sampler(2, (3, 4), SeededRng(1)).shape == (3, 4)
    assert sampler(2, 0, SeededRng(1)).shape == (0,)
    assert sampler(2, (), SeededRng(1)).shape == ()
    assert sampler(2, 5, SeededRng(1)).dtype == np.int64
    assert np.array_equal(sampler(2.5, 50, SeededRng(1)), sampler(Fraction(5, 2), 50, SeededRng(1)))
    rng = SeededRng(7)
    single = [sampler(1, None, rng) for _ in range(2000)]
    assert all(type(x) is int for x in single)
    zero = pmf(sampler, 1.0, np.array([0]))[0]
    assert stats.binomtest(single.count(0), len(single), zero).pvalue > 1e-6


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, -math.inf, Fraction(-1, 2), 2**50 + 1, 1e300, "1", None])
@pytest.mark.parametrize(("sampler", "argument"), [(discrete_laplace, "scale"), (discrete_gaussian, "sigma")])
def test_impossible_scales_are_refused(sampler: Callable[..., Any], argument: str, value: object) -> None:
    """Catches no noise at all where some was asked for, and integers that would wrap around."""
    with pytest.raises(InvalidInput) as caught:
        sampler(value, 3, SeededRng(1))
    assert caught.value.argument == argument


@pytest.mark.parametrize("value", [np.float64(2.5), np.float32(2.5), np.int64(2)])
def test_numpy_scalars_are_taken_exactly(value: Any) -> None:
    """Catches NumPy integers that overflow inside a Fraction, and their floats being refused."""
    expected = discrete_gaussian(Fraction(value.item()), 50, SeededRng(1))
    assert np.array_equal(discrete_gaussian(value, 50, SeededRng(1)), expected)


class Stuck(Rng):
    """A broken source that repeats one byte."""

    def __init__(self, byte: int) -> None:
        self._byte = byte

    @property
    def kind(self) -> Randomness:
        return Randomness.SEEDED

    @property
    def _instead(self) -> str:
        return ""

    def _fill(self, out: Bytes) -> None:
        out[...] = self._byte


@pytest.mark.parametrize("byte", [0, 255])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_stuck_source_is_noticed(sampler: Callable[..., Any], byte: int) -> None:
    """Catches a loop that never ends when nothing is ever accepted, or everything."""
    with pytest.raises(PrivetError, match="repeats itself"):
        sampler(3 if sampler is discrete_laplace else 2, 2, Stuck(byte))  # both propose with a scale of 3
