"""The normal law, from the middle to beyond 9σ.

Statistical tests are seeded; the rate stated is the chance that a correct generator fails under a random seed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from privet.core.random import SeededRng
from privet.core.random.box_muller import LARGEST, transform

F32: type[Any] = np.float32
F64: type[Any] = np.float64
BOTH = pytest.mark.parametrize("dtype", [F32, F64])
EDGES = [0, 1, 2, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1, -(2**40), -3, -2, -1]


def pairs(words: list[int], turns: list[int], dtype: type[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    angle: npt.NDArray[Any] = np.array(turns, dtype=np.int32 if dtype is F32 else np.int64)
    cosines, sines = np.full((2, len(words)), np.nan, dtype=dtype)
    transform(np.array(words, dtype=np.int64), angle, 1.0, cosines, sines)
    return cosines, sines


@BOTH
def test_the_radius_is_exact_at_both_ends(dtype: type[Any]) -> None:
    """Catches a lost tail (a radius that stops below 9σ) and a lost middle (radii that collapse to 0).

    Compares with sqrt(-2 ln U) for U = (s + 1/2)/2^64 mod 1, computed from integers, at every power of two.
    """
    words = sorted({sign * (1 << k) + d for k in range(63) for sign in (1, -1) for d in (-1, 0, 1)} | set(EDGES))
    cosines, sines = pairs(words, [0] * len(words), dtype)
    radius = np.hypot(cosines.astype(float), sines.astype(float))
    half = [2 * s + 1 for s in words]  # in units of 2^-65
    minus_log = [-math.log(h / 2**65) if h > 0 else -math.log1p(h / 2**65) for h in half]
    expected = np.sqrt(2 * np.array(minus_log))
    assert np.max(np.abs(radius / expected - 1)) < (4e-7 if dtype is F32 else 1e-15)


@BOTH
def test_extreme_words_give_finite_numbers(dtype: type[Any]) -> None:
    """Catches an infinite or missing number, a tail under 9σ for the all-zero word, and an exact 0 for all ones."""
    top = 2**31 if dtype is F32 else 2**63
    turns = [0, 1, -1, top - 1, -top, top // 2, top // 2 - 1, -top // 2, top // 4]
    grid = [(word, turn) for word in EDGES for turn in turns]
    cosines, sines = pairs([word for word, _ in grid], [turn for _, turn in grid], dtype)
    both = np.concatenate([cosines, sines]).astype(float)
    assert np.isfinite(both).all()
    assert (both != 0).all()
    radius = np.hypot(cosines.astype(float), sines.astype(float))
    assert radius.max() < LARGEST
    zeros = [i for i, (word, _) in enumerate(grid) if word == 0]
    ones = [i for i, (word, _) in enumerate(grid) if word == -1]
    assert radius[zeros].min() > 9.49
    assert 0 < radius[ones].min() <= radius[ones].max() < 3e-10


@BOTH
def test_the_angle_covers_the_circle(dtype: type[Any]) -> None:
    """Catches an angle of too few bits, a missing quadrant and swapped or shifted coordinates."""
    bits = 32 if dtype is F32 else 64
    rng = SeededRng(4)
    turns = [int(w) - (1 << (bits - 1)) for w in (rng.words(5000) >> np.uint64(64 - bits))]
    word = -(2**63)  # U = 1/2
    cosines, sines = pairs([word] * len(turns), turns, dtype)
    radius = math.sqrt(2 * math.log(2))
    angles = np.array([2 * math.pi * ((turn + 0.5) / 2**bits) for turn in turns])
    error = 1e-6 if dtype is F32 else 2e-15
    assert np.max(np.abs(cosines - radius * np.cos(angles))) < error
    assert np.max(np.abs(sines - radius * np.sin(angles))) < error
    assert len(np.unique(cosines)) > 4900, "neighbouring angles give the same number"


@BOTH
def test_the_law_is_normal(dtype: type[Any]) -> None:
    """Catches a wrong scale, a skew and thin tails up to 5σ. False-alarm rate 3e-6: three tests at 1e-6."""
    drawn = SeededRng(6).normal(4_000_000, dtype=dtype).astype(float)
    assert stats.kstest(drawn[:1_000_000], "norm").pvalue > 1e-6
    edges = np.concatenate([[-np.inf, -4.75, -4.5, -4.0, -3.5], np.linspace(-3, 3, 61), [3.5, 4.0, 4.5, 4.75, np.inf]])
    expected = np.diff(stats.norm.cdf(edges)) * len(drawn)
    observed = np.histogram(drawn, edges)[0]
    assert observed.sum() == len(drawn)
    assert expected.min() > 3.9
    assert stats.chisquare(observed, expected).pvalue > 1e-6
    fourth = (drawn**4).mean()
    assert abs(fourth - 3) < 5 * math.sqrt(96 / len(drawn))


@BOTH
@pytest.mark.parametrize("leading", [20, 40, 50])
def test_the_tail_has_the_right_law(dtype: type[Any], leading: int) -> None:
    """Catches a tail of the right length and the wrong shape, out to 9σ, where no sample would ever reach.

    Given that the leading bits of U are 0, -ln U exceeds leading·ln 2 by an exponential variable; given that they are
    1, -ln U is uniform on (0, 2^-leading). False-alarm rate 2e-6: two tests at 1e-6.
    """
    words = SeededRng(7, leading).words(100_000) >> np.uint64(leading)
    for low in (words.view(np.int64), ~words.view(np.int64)):
        cosines, sines = (np.empty(len(words), dtype=dtype) for _ in range(2))
        transform(low, np.zeros(len(words), dtype=np.int32), 1.0, cosines, sines)
        minus_log = np.hypot(cosines.astype(float), sines.astype(float)) ** 2 / 2
        if (low >= 0).all():
            result = stats.kstest(minus_log - leading * math.log(2), "expon")
        else:
            result = stats.kstest(minus_log * 2.0**leading, "uniform")
        assert result.pvalue > 1e-6


@BOTH
def test_draws_are_independent(dtype: type[Any]) -> None:
    """Catches pairs that share a radius or an angle, and chunks that share bits. False-alarm rate 1e-6."""
    drawn = SeededRng(8).normal(1 << 19, dtype=dtype).astype(float)
    limit = 6 / math.sqrt(1 << 18)
    for lag in (1, 2, 3, 8, 1 << 14, 1 << 15, 1 << 16, 1 << 18):
        for power in (1, 2):
            x = drawn**power - (drawn**power).mean()
            assert abs((x[lag:] * x[:-lag]).mean() / (x * x).mean()) < limit, (lag, power)
    cosine, sine = drawn[: 1 << 15], drawn[1 << 15 : 1 << 16]  # the two halves of one chunk are the pairs
    joint = np.histogram2d(stats.norm.cdf(cosine), stats.norm.cdf(sine), bins=16, range=[[0, 1], [0, 1]])[0]
    assert stats.chisquare(joint.reshape(-1)).pvalue > 1e-7


@BOTH
@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 65_535, 65_536, 65_537, 65_538, 65_539, 131_073])
def test_every_element_is_written(dtype: type[Any], count: int) -> None:
    """Catches an odd element or a last chunk that keeps whatever was in memory."""
    drawn = SeededRng(9).normal(count, dtype=dtype)
    assert drawn.shape == (count,)
    assert drawn.dtype == dtype
    assert np.isfinite(drawn).all()
    assert len(np.unique(drawn)) >= 0.95 * count
    assert (drawn != 0).all()


def test_shapes() -> None:
    """Catches a shape that is flattened or reversed, and a default type other than float64."""
    assert SeededRng(1).normal((3, 4, 5)).shape == (3, 4, 5)
    assert SeededRng(1).normal(()).shape == ()
    assert SeededRng(1).normal(2).dtype == np.float64
