"""The compiled loops, for every kind of processor that this one can play: the same numbers as float64 gives, and none
beside the memory they were given."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from torch import Tensor
from torch.nn import functional as F

from privet.core.random import SeededRng, box_muller
from privet.core.random.keystream import Keystream
from privet.training import noise
from privet.training.native import loops

PROCESSORS = ("plain", "avx2", "avx512")
LEAST = torch.finfo(torch.float32).tiny
EDGES = [0, 1, 2, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1, -(2**40), -(2**32), -3, -2, -1]
TURNS = [0, 1, -1, 2**29 - 1, 2**29, 2**29 + 1, -(2**29), 2**30, -(2**30), 2**31 - 1, -(2**31), 7, 11, 13, 17]


def test_they_are_compiled_where_a_compiler_is() -> None:
    """Catches a build that fails without a word, after which every other test is of the code in Python."""
    if shutil.which("cc") is None:
        pytest.skip("no compiler")
    assert loops.processor() is not None


@pytest.fixture(params=PROCESSORS)
def kernels(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """The compiled module, with the loops for one kind of processor."""
    if loops.processor() is None:
        pytest.skip("not compiled")
    from privet.training.native import _kernels

    if not _kernels.choose(request.param):
        pytest.skip("another processor")
    yield _kernels
    assert _kernels.choose(_kernels.processor)


def normal(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def guarded(*shape: int) -> tuple[Tensor, Tensor]:
    """Memory of a shape amid more of it, and all of it."""
    size = int(np.prod(shape))
    whole = torch.full((size + 128,), 77.0)
    return whole[64 : 64 + size].view(shape), whole


def untouched(whole: Tensor) -> bool:
    return bool((whole[:64] == 77).all() and (whole[-64:] == 77).all())


# --- The cipher -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [0, 1, 3, 7, 8, 9, 31, 32, 33, 64, 1000])
@pytest.mark.parametrize("first", [0, 1, 255, 2**32 - 5, 2**40, 2**63 - 3])
def test_the_stream_is_that_of_openssl(kernels: ModuleType, first: int, blocks: int) -> None:
    """Catches a wrong key schedule or round, a counter that carries wrongly, and blocks beyond those asked for."""
    if not kernels.cipher:
        pytest.skip("no instructions")
    key = SeededRng(first % 1000 + blocks).bits(32)
    out = np.full(16 * blocks + 32, 77, dtype=np.uint8)
    kernels.stream(key, first, blocks, out.ctypes.data)
    expected = Cipher(AES(key), CTR(first.to_bytes(16, "big"))).encryptor().update(bytes(16 * blocks))
    assert out[: 16 * blocks].tobytes() == expected
    assert (out[16 * blocks :] == 77).all()


def test_a_key_of_another_size_is_refused(kernels: ModuleType) -> None:
    """Catches a key that is read beyond its end."""
    with pytest.raises(ValueError, match="32 bytes"):
        loops.normals(bytes(31), None, 1.0, torch.empty(4))


# --- Noise ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 2, 3, 31, 32, 33, 2047, 2048, 2049, 2051, 10_001])
def test_normals_are_those_of_the_core(kernels: ModuleType, size: int) -> None:
    """Catches a transform that drifts from the core's, words that are used twice or not at all, and a lost tail."""
    key, pairs = SeededRng(size).bits(32), (size + 1) // 2
    words = np.empty(loops.bytes_for(size), dtype=np.uint8)
    Keystream(key).fill(words)
    radius, angle = words[: 8 * pairs].view("<i8"), words[loops.first_angle(pairs) :].view("<i4")
    radius[: len(EDGES)], angle[: len(TURNS)] = EDGES[:pairs], TURNS[:pairs]
    out, whole = guarded(size)
    loops.normals(b"", words, 1.7, out)
    assert untouched(whole)
    cosines, sines = np.empty(pairs), np.empty(size - pairs)
    box_muller.transform(radius, (angle.astype(np.int64) << 32) + (1 << 31), 1.7, cosines, sines)
    expected = np.concatenate([cosines, sines])
    length = np.maximum(np.hypot(cosines, np.pad(sines, (0, pairs - len(sines)))), np.abs(cosines))
    scale = np.concatenate([length, length[: len(sines)]])
    assert np.all(np.abs(out.double().numpy() - expected) <= 4e-7 * scale)


@pytest.mark.parametrize("size", [1, 2047, 4096, 30_001])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_key_gives_what_its_stream_gives(kernels: ModuleType, size: int, threads: int) -> None:
    """Catches pieces that take each other's part of the stream, and a result that depends on the threads."""
    if not kernels.cipher:
        pytest.skip("no instructions")
    key = SeededRng(size).bits(32)
    words = np.empty(loops.bytes_for(size), dtype=np.uint8)
    Keystream(key).fill(words)
    from_words, from_key = torch.empty(2, size)
    loops.normals(b"", words, 0.5, from_words)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    loops.normals(key, None, 0.5, from_key)
    torch.set_num_threads(before)
    assert torch.equal(from_words, from_key)


@pytest.mark.parametrize("size", [5, 2048, 600_001])
def test_noise_without_them_is_the_same(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a seed that means other noise on a machine without a compiler, or without instructions for the cipher."""
    drawn = torch.empty(3, size)
    noise.fill(drawn[0], 2.0, SeededRng(3))
    monkeypatch.setattr(loops, "has_cipher", bool)
    noise.fill(drawn[1], 2.0, SeededRng(3))
    monkeypatch.setattr(loops, "_kernels", None)
    noise.fill(drawn[2], 2.0, SeededRng(3))
    assert torch.equal(drawn[0], drawn[1])
    assert torch.allclose(drawn[0], drawn[2], rtol=1e-5, atol=1e-5)


# --- Norms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 3, 4, 15, 16, 17, 1000, 1024, 1025, 5000])
def test_squares_of_rows(kernels: ModuleType, size: int) -> None:
    """Catches numbers that are left out or read beyond a row's end, and slack that is forgotten."""
    rows = normal(9, size + 3)[:, :size]
    found = loops.row_squares(rows, 1e-3, 0.25)
    true = rows.double().square().sum(1)
    assert torch.allclose(found[0].double(), true, rtol=2e-6, atol=0)
    assert torch.allclose(found[1].double(), true * 1e-3 + 0.25, rtol=1e-5, atol=0)
    others = normal(9).square()
    both = loops.product_squares(rows, others, 1e-3, 0.25, 0.5, 0.125)
    assert torch.allclose(both[0].double(), true * others, rtol=2e-6, atol=0)
    slack = true * others * 1e-3 + others * 0.25 + true * 0.5 + 0.125
    assert torch.allclose(both[1].double(), slack.double(), rtol=1e-5, atol=0)


@pytest.mark.parametrize("positions", [1, 2, 7, 8, 9, 15, 16, 17, 33, 64, 100])
@pytest.mark.parametrize("time_first", [False, True])
def test_squares_of_products(kernels: ModuleType, positions: int, time_first: bool) -> None:
    """Catches a half of the matrix that is counted once or three times, a diagonal counted twice, another's rows."""
    sizes = (5, 18, 1, 40)
    shape = (positions, 6) if time_first else (6, positions)
    left, *rights = (normal(*shape, size, seed=size) for size in sizes)
    if time_first:
        left, *rights = (each.transpose(0, 1) for each in (left, *rights))
    found = loops.squares_of_products(left, rights, 1e-3, LEAST)
    lefts = left.double() @ left.double().mT
    for mine, right in zip(found, rights, strict=True):
        entries = lefts * (right.double() @ right.double().mT)
        assert torch.allclose(mine[0].double(), entries.sum((1, 2)), rtol=1e-5, atol=1e-5 * float(entries.abs().sum()))
        lengths = (left.double().norm(dim=2) * right.double().norm(dim=2)).sum(1)
        additions = loops.additions(left.shape[2]) + loops.additions(right.shape[2])
        slack = lengths.square() * 1.01e-3 * (additions + 24)
        expected = longer(entries.sum((1, 2)), slack, lengths * 1.01e-3 * (positions + 2))
        assert torch.allclose(mine[1].double(), expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("positions", [1, 2, 7, 8, 9, 33, 64])
@pytest.mark.parametrize(("places", "width"), [(1, 5), (3, 40), (1000, 17)])
def test_squares_of_rows_that_are_looked_up(kernels: ModuleType, positions: int, places: int, width: int) -> None:
    """Catches rows for one place that are squared one by one or twice, a row left out, and slack that is forgotten."""
    index = torch.randint(places, (6, positions), generator=torch.Generator().manual_seed(positions))
    right = normal(6, positions, width + 3)[:, :, :width]
    found = loops.lookup_squares(index, right, 1e-3, 0.25, 1e-4)
    spread = index[:, :, None].expand_as(right)
    tables = torch.zeros(6, places, width, dtype=torch.float64).scatter_add_(1, spread, right.double())
    true = tables.square().sum((1, 2))
    assert torch.allclose(found[0].double(), true, rtol=2e-6, atol=0)
    # Rows that share a place may give a longer sum when they are added one by one: a unit for each, and two.
    lengths = torch.zeros(6, places, dtype=torch.float64).scatter_add_(1, index, right.double().norm(dim=2))
    counts = torch.zeros(6, places, dtype=torch.float64).scatter_add_(1, index, torch.ones(index.shape).double())
    each = torch.where(counts > 1, (counts + 2) * 1.01e-4 * lengths, 0.0)
    assert torch.allclose(found[1].double(), longer(true, true * 1e-3 + 0.25, each.norm(dim=1)), rtol=1e-5, atol=0)


def longer(square: Tensor, slack: Tensor, apart: Tensor) -> Tensor:
    """The slack of a square whose root may be longer by `apart`."""
    return slack + apart * (2 * (square + slack).sqrt() + apart)


@pytest.mark.parametrize("positions", [1, 2, 63, 64, 65, 200])
@pytest.mark.parametrize("width", [1, 15, 16, 17, 64, 150])
@pytest.mark.parametrize("time_first", [False, True])
def test_gradients_of_a_layer_norm(kernels: ModuleType, positions: int, width: int, time_first: bool) -> None:
    """Catches columns that are left out or taken from a neighbour, and a chain of additions that is begun anew."""
    shape = (positions, 3) if time_first else (3, positions)
    gradient, inputs = (normal(*shape, width, seed=seed) for seed in (1, 2))
    if time_first:
        gradient, inputs = gradient.transpose(0, 1), inputs.transpose(0, 1)
    mean, rstd = normal(3, positions, seed=3), normal(3, positions, seed=4).abs()
    scale, shift = loops.normalised_gradients(gradient, inputs, mean, rstd)
    wide = gradient.double()
    terms = wide * (inputs.double() - mean.double()[:, :, None]) * rstd.double()[:, :, None]
    assert torch.all((scale.double() - terms.sum(1)).abs() <= 1e-6 * terms.abs().sum(1) + 1e-30)
    assert torch.all((shift.double() - wide.sum(1)).abs() <= 1e-6 * wide.abs().sum(1))


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_what_is_not_finite_stays_so(kernels: ModuleType, bad: float) -> None:
    """Catches a NaN that is lost on the way, after which its row would not be zeroed."""
    rows = normal(3, 40)
    rows[1, 17] = bad
    left, right = normal(3, 5, 8), normal(3, 5, 9)
    left[1, 2, 3] = bad
    pictures, gradient = normal(3, 2, 6, 6), normal(3, 4, 4, 4)
    gradient[1, 2, 0, 0] = bad
    twice = torch.tensor([0, 1, 0, 2, 3]).repeat(3, 1)
    numbers = torch.ones(3, 5)
    for values in (
        loops.lookup_squares(twice, left, 1e-6, LEAST, 1e-7)[0],
        loops.lookup_squares(twice + 9, left[:, [2, 0, 1, 3, 4]], 1e-6, LEAST, 1e-7)[0],
        *(each.sum(1) for each in loops.normalised_gradients(left, right[:, :, :8], numbers, numbers)),
        loops.row_squares(rows, 1e-6, LEAST)[0],
        loops.product_squares(rows.abs() + 1, torch.tensor([1.0, bad, 1.0]), 1e-6, LEAST, LEAST, LEAST)[0],
        loops.product_squares(rows, torch.ones(3), 1e-6, LEAST, LEAST, LEAST)[0],
        loops.squares_of_products(left, [right], 1e-6, LEAST)[0, 0],
        loops.convolution_gradients(pictures, gradient, (3, 3), (1, 1), (0, 0), None, 1e-6, LEAST)[0],
    ):
        assert values.isfinite().tolist() == [True, False, True]


# --- Convolutions -----------------------------------------------------------------------------------------------------

SHAPES = [
    # channels, outputs, window, stride, padding, height, width
    (1, 3, (8, 8), (2, 2), (3, 3), 13, 14),
    (1, 16, (1, 5), (1, 2), (0, 1), 1, 30),
    (3, 9, (3, 3), (1, 1), (1, 1), 7, 9),
    (16, 32, (4, 4), (2, 2), (0, 0), 13, 13),
    (5, 8, (2, 3), (3, 1), (2, 0), 8, 6),
    (21, 17, (3, 2), (1, 1), (0, 1), 5, 5),
    (32, 8, (3, 3), (1, 1), (1, 1), 6, 6),
    (48, 7, (1, 1), (1, 1), (0, 0), 4, 4),
    (130, 5, (1, 1), (2, 2), (0, 0), 3, 3),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("threads", [1, 3])
def test_each_examples_gradient_of_a_convolution(
    kernels: ModuleType,
    shape: tuple[int, int, tuple[int, int], tuple[int, int], tuple[int, int], int, int],
    threads: int,
) -> None:
    """Catches a window read at the wrong place, channels in another order, an example that gets another's numbers."""
    channels, outputs, window, stride, padding, height, width = shape
    inputs, weight = normal(5, channels, height, width), torch.zeros(outputs, channels, *window)
    gradient = normal(*F.conv2d(inputs, weight, stride=stride, padding=padding).shape, seed=2)
    out, whole = guarded(5, outputs, *window, channels)
    given = (inputs, gradient, window, stride, padding)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    found = loops.convolution_gradients(*given, out, 1e-3, 0.5)
    alone = loops.convolution_gradients(*given, None, 1e-3, 0.5)
    torch.set_num_threads(before)
    assert untouched(whole)
    for i in range(5):
        wide = weight.double().requires_grad_()
        result = F.conv2d(inputs[i : i + 1].double(), wide, stride=stride, padding=padding)
        (true,) = torch.autograd.grad(result, wide, gradient[i : i + 1].double())
        assert torch.allclose(out[i].movedim(-1, 1).double(), true, rtol=1e-5, atol=1e-5)
        assert float(found[0, i]) == pytest.approx(float(true.square().sum()), rel=1e-5)
        assert float(found[1, i]) == pytest.approx(float(true.square().sum()) * 1e-3 + 0.5, rel=1e-5)
    assert torch.equal(found, alone)


def test_what_does_not_fit_is_refused() -> None:
    """Catches shapes that would be read or written beyond their memory."""
    if loops.processor() is None:
        pytest.skip("not compiled")
    pictures, gradient = normal(2, 3, 6, 6), normal(2, 4, 4, 4)
    good = (pictures, gradient, (3, 3), (1, 1), (0, 0), None)
    loops.convolution_gradients(*good, 0.0, 0.0)
    wrong = (
        {1: normal(2, 4, 5, 4)},
        {1: normal(1, 4, 4, 4)},
        {0: pictures.double()},
        {0: pictures.transpose(2, 3)},
        {2: (4, 3)},
        {2: (0, 3)},
        {3: (0, 1)},
        {4: (-1, -1)},
        {3: (2, 1)},
        {5: torch.empty(2, 4, 3, 3, 2)},
        {5: torch.empty(2, 3, 3, 3, 4).movedim(1, 4)},
    )
    for change in wrong:
        given: list[Any] = [change.get(place, each) for place, each in enumerate((*good, 0.0, 0.0))]
        with pytest.raises(ValueError, match="are needed"):
            loops.convolution_gradients(*given)
    for refused in (
        lambda: loops.row_squares(normal(4, 4).T, 0.0, 0.0),
        lambda: loops.row_squares(normal(4), 0.0, 0.0),
        lambda: loops.product_squares(normal(4, 4), normal(5), 0.0, 0.0, 0.0, 0.0),
        lambda: loops.squares_of_products(normal(2, 3, 4), [normal(2, 4, 4)], 0.0, 0.0),
        lambda: loops.squares_of_products(normal(2, 3, 4), [normal(2, 3, 4)] * 5, 0.0, 0.0),
        lambda: loops.lookup_squares(torch.zeros(2, 3, dtype=torch.int32), normal(2, 3, 4), 0.0, 0.0, 0.0),
        lambda: loops.lookup_squares(torch.zeros(3, 2, dtype=torch.int64).T, normal(2, 3, 4), 0.0, 0.0, 0.0),
        lambda: loops.lookup_squares(torch.zeros(2, 4, dtype=torch.int64), normal(2, 3, 4), 0.0, 0.0, 0.0),
        lambda: loops.normalised_gradients(normal(2, 3, 4), normal(2, 3, 5), normal(2, 3), normal(2, 3)),
        lambda: loops.normalised_gradients(normal(2, 3, 4), normal(2, 3, 4), normal(2, 3), normal(2, 4)),
        lambda: loops.normalised_gradients(normal(2, 3, 4), normal(2, 4, 3).mT, normal(2, 3), normal(2, 3)),
        lambda: loops.normals(bytes(32), None, 1.0, torch.empty(4, 2)),
        lambda: loops.normals(bytes(32), None, 1.0, torch.empty(8)[::2]),
        lambda: loops.normals(bytes(32), np.zeros(47, dtype=np.uint8), 1.0, torch.empty(7)),
    ):
        with pytest.raises(ValueError, match="needed"):
            refused()


def test_the_environment_can_turn_them_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a switch that is only said to be one."""
    monkeypatch.setattr(loops, "_WANTED", False)
    assert not loops.usable(torch.zeros(1))
    assert loops.processor() is None


def test_a_forked_process_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches loops that wait for torch's threads, which no forked process has."""
    monkeypatch.setattr(loops, "_HOME", (1, 1))
    assert not loops.usable(torch.zeros(1))


def test_two_threads_do_not_share_working_memory() -> None:
    """Catches one thread's windows or rows that overwrite another's."""
    if loops.processor() is None:
        pytest.skip("not compiled")
    given = [(normal(8, 32, 12, 12, seed=i), normal(8, 24, 10, 10, seed=i + 50)) for i in range(4)]

    def squares(pair: tuple[Tensor, Tensor]) -> Tensor:
        found = loops.convolution_gradients(*pair, (3, 3), (1, 1), (0, 0), None, 0.0, 0.0)
        rows = pair[0].flatten(2)
        places = torch.arange(rows.shape[1]).remainder(5).repeat(len(rows), 1)
        looked_up = loops.lookup_squares(places, rows, 0.0, 0.0, 0.0)
        return torch.cat([found, looked_up, *loops.squares_of_products(rows, [rows], 0.0, 0.0)])

    alone = [squares(each) for each in given]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            assert all(map(torch.equal, pool.map(squares, given), alone))


def test_other_types_are_not_for_them() -> None:
    """Catches float64, half precision or a tensor without memory that is read as float32."""
    assert not any(loops.usable(torch.zeros(1, dtype=each)) for each in (torch.float64, torch.bfloat16, torch.int32))
    assert not loops.usable(torch.zeros(1, device="meta"))
