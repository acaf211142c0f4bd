"""Normal noise on torch's threads: the law of the core's, from the middle to beyond 9σ, and nobody's bits twice.

Statistical tests are seeded; the rate stated is the chance that a correct generator fails under a random seed. Tests of
the secure stream draw anew each time and fail by chance less than once in 10^9.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from scipy import stats

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng, box_muller, default_rng
from privet.training import noise
from privet.training.noise import fill, transform


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for each other on a busy machine make tests slow; the test of threads sets its own number."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


BOTH = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
TURNS = {torch.float32: torch.int32, torch.float64: torch.int64}
EDGES = [0, 1, 2, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1, -(2**40), -3, -2, -1]


def pairs(words: list[int], turns: list[int], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    cosines, sines = torch.full((2, len(words)), torch.nan, dtype=dtype)
    angle = torch.tensor(turns, dtype=TURNS[dtype])
    transform(torch.tensor(words), angle, 1.0, cosines, sines, torch.empty(3, len(words), dtype=dtype))
    return cosines, sines


def drawn(count: int, dtype: torch.dtype, seed: int, std: float = 1.0) -> torch.Tensor:
    out = torch.full((count,), torch.nan, dtype=dtype)
    fill(out, std, SeededRng(seed))
    return out


@BOTH
def test_the_radius_is_exact_at_both_ends(dtype: torch.dtype) -> None:
    """Catches a lost tail (a radius that stops below 9σ) and a lost middle (radii that collapse to 0)."""
    words = sorted({sign * (1 << k) + d for k in range(63) for sign in (1, -1) for d in (-1, 0, 1)} | set(EDGES))
    cosines, sines = pairs(words, [0] * len(words), dtype)
    radius = torch.hypot(cosines.double(), sines.double()).numpy()
    half = [2 * s + 1 for s in words]  # in units of 2^-65
    minus_log = [-math.log(h / 2**65) if h > 0 else -math.log1p(h / 2**65) for h in half]
    expected = np.sqrt(2 * np.array(minus_log))
    assert np.max(np.abs(radius / expected - 1)) < (4e-7 if dtype == torch.float32 else 1e-15)
    assert expected.max() > 9.49
    assert 0 < radius.min() < 3e-10


@BOTH
def test_it_is_the_transform_of_the_core(dtype: torch.dtype) -> None:
    """Catches two transforms that drift apart: the same words must give the same normals, up to rounding."""
    rng = SeededRng(1)
    radius = np.concatenate([rng.words(9_999).view(np.int64), EDGES])
    angle = rng.words(len(radius)).view(np.int64)
    angle = angle if dtype == torch.float64 else (angle >> 32).astype(np.int32)
    cosines, sines = np.empty((2, len(radius)), dtype=np.float64 if dtype == torch.float64 else np.float32)
    box_muller.transform(radius, angle, 1.7, cosines, sines)
    ours = torch.full((2, len(radius)), torch.nan, dtype=dtype)
    words, turns = torch.from_numpy(radius), torch.from_numpy(angle)
    transform(words, turns, 1.7, ours[0], ours[1], torch.empty(3, len(radius), dtype=dtype))
    for own, other in zip(ours.numpy(), (cosines, sines), strict=True):
        assert np.max(np.abs(own - other)) < (8e-6 if dtype == torch.float32 else 2e-14)


@BOTH
def test_the_law_is_normal(dtype: torch.dtype) -> None:
    """Catches a wrong scale, a skew and thin tails up to 5σ. False-alarm rate 3e-6: three tests at 1e-6."""
    normals = drawn(4_000_000, dtype, 6, std=0.25).double().numpy() * 4
    assert stats.kstest(normals[:1_000_000], "norm").pvalue > 1e-6
    edges = np.concatenate([[-np.inf, -4.75, -4.5, -4.0, -3.5], np.linspace(-3, 3, 61), [3.5, 4.0, 4.5, 4.75, np.inf]])
    expected = np.diff(stats.norm.cdf(edges)) * len(normals)
    observed = np.histogram(normals, edges)[0]
    assert observed.sum() == len(normals)
    assert stats.chisquare(observed, expected).pvalue > 1e-6
    assert abs((normals**4).mean() - 3) < 5 * math.sqrt(96 / len(normals))


@BOTH
def test_draws_are_independent(dtype: torch.dtype) -> None:
    """Catches passes or halves of a pass that share bits. False-alarm rate 1e-6 for all lags together."""
    normals = drawn(1 << 20, dtype, 8).double().numpy()
    half = len(normals) // 4  # the two halves of a pass are the pairs
    for lag in (1, 2, 3, half - 1, half, 2 * half, 2 * half + 1):
        for power in (1, 2):
            x = normals**power - (normals**power).mean()
            share = (x[lag:] * x[:-lag]).mean() / (x * x).mean()
            assert abs(share) < 6 / math.sqrt(len(normals) - lag), (lag, power)


@BOTH
@pytest.mark.parametrize("count", [0, 1, 2, 3, 65_537, (1 << 19) - 1, 1 << 19, (1 << 19) + 1, (1 << 19) + 2, 1_200_001])
def test_every_element_is_written(dtype: torch.dtype, count: int) -> None:
    """Catches an odd element or a last pass that keeps whatever was in memory."""
    normals = drawn(count, dtype, 9)
    assert normals.isfinite().all()
    assert (normals != 0).all()
    assert len(np.unique(normals.numpy())) >= 0.9 * count


def test_shapes_types_and_memory() -> None:
    """Catches a tensor with holes or of another order that is filled wrongly, and autograd left in the dark."""
    for tensor in (torch.zeros(6, 8)[:, ::2], torch.zeros(3, 4, 5).transpose(0, 2), torch.zeros(())):
        fill(tensor, 1.0, SeededRng(2))
        assert (tensor != 0).all()
    outer = torch.zeros(6, 8)
    fill(outer[:, ::2], 1.0, SeededRng(2))
    assert (outer[:, 1::2] == 0).all()
    weight = torch.nn.Parameter(torch.zeros(5))
    product = (weight * weight).sum()
    fill(weight, 1.0, SeededRng(2))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(product, weight)


def test_what_cannot_be_filled_is_refused() -> None:
    """Catches noise that loses its tails in half precision, is shared between elements, or has no finite scale."""
    for tensor in (torch.zeros(4, dtype=torch.bfloat16), torch.zeros(1).expand(4)):
        with pytest.raises(InvalidInput, match="tensor"):
            fill(tensor, 1.0, SeededRng(1))
    for std in (-1.0, math.nan, math.inf, 1e38):
        with pytest.raises(InvalidInput, match="std"):
            fill(torch.zeros(4), std, SeededRng(1))
    words = torch.zeros(2, dtype=torch.int64)
    with pytest.raises(InvalidInput, match="rows"):
        transform(words, words, 1.0, torch.zeros(2), torch.zeros(2), torch.zeros(2, 2))


@pytest.mark.parametrize("std", [0.0, 1e-30, 1e-12, 1e12, 1e30])
def test_every_scale(std: float) -> None:
    """Catches squares of the deviation that overflow or vanish in float32. False-alarm rate 1e-9."""
    normals = drawn(100_000, torch.float32, 3, std).double()
    assert abs(normals.std().item() - std) <= std * 6.2 / math.sqrt(200_000)


def test_threads_do_not_change_the_numbers() -> None:
    """Catches a seeded run that depends on how many processors there are."""
    several = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        several.append(drawn(300_001, torch.float32, 4))
    for other in several[1:]:
        assert (several[0] - other).abs().max() < 1e-5


def test_no_two_draws_share_a_word() -> None:
    """Catches one key's stream in two threads, and working memory that is used before it is drawn anew.

    Two neighbours of one draw are two neighbours of another by chance less than once in 10^15.
    """

    def draw(_: int) -> torch.Tensor:
        out = torch.empty(8_000, dtype=torch.float64)
        fill(out, 1.0, default_rng())
        return out.view(-1, 2)

    with ThreadPoolExecutor(4) as pool:
        everything = torch.cat(list(pool.map(draw, range(64))))
    assert len({row.tobytes() for row in everything.numpy()}) == 64 * 4_000


def test_global_seeds_do_not_touch_it() -> None:
    """Catches noise from a generator that anybody can seed."""
    found = []
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)
        out = torch.empty(1000)
        fill(out, 1.0, default_rng())
        found.append(out)
    assert not torch.equal(*found)


def test_modes_of_torch_do_not_touch_it() -> None:
    """Catches working memory that was made in inference mode and cannot be written to afterwards."""
    noise._SCRATCH[torch.float32]._bits = np.empty(0, dtype=np.uint8)
    with torch.inference_mode():
        drawn(1000, torch.float32, 1)
    assert drawn(1000, torch.float32, 1).isfinite().all()


FORK = """
import os, sys, torch
from privet.core.random import default_rng
from privet.training.noise import fill
out = torch.empty(200_000)
torch.set_num_threads(2)
fill(out, 1.0, default_rng())
read, write = os.pipe()
child = os.fork()
fill(out, 1.0, default_rng())
if not child:
    os.write(write, out[:1000].numpy().tobytes())
    os._exit(0)
theirs = os.read(read, 4000)
os.waitpid(child, 0)
sys.exit(0 if len(theirs) == 4000 and theirs != out[:1000].numpy().tobytes() else 1)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="processes do not fork there")
def test_a_forked_process_draws_its_own() -> None:
    """Catches a child that repeats its parent's noise, or that waits for ever for threads which it does not have."""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], timeout=120).returncode == 0
