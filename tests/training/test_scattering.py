"""The scattering transform against a slow computation in space, and the properties that make it worth having."""

from __future__ import annotations

import stat
from math import cos, pi, sin, sqrt
from pathlib import Path

import numpy as np
import pytest
import torch

from privet.core.errors import InvalidInput
from privet.training.models.scattering import Scattering, cached


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def kernel(size: int, width: float, centre: float, angle: float, slant: float) -> np.ndarray:
    """A Gaussian wave, sampled in space far beyond the picture and wrapped onto it."""
    far = np.arange(-4 * size, 4 * size)
    down, across = np.meshgrid(far, far, indexing="ij")
    along, beside = across * cos(angle) + down * sin(angle), down * cos(angle) - across * sin(angle)
    bell = np.exp(-(along**2 + (beside * slant) ** 2) / (2 * width**2)) * slant / (2 * pi * width**2)
    wave = bell * np.exp(1j * centre * along)
    if centre:
        wave -= bell * wave.sum() / bell.sum()
    wrapped = np.zeros((size, size), dtype=complex)
    np.add.at(wrapped, (down % size, across % size), wave)
    return wrapped


def convolved(picture: np.ndarray, filter_: np.ndarray) -> np.ndarray:
    """A circular convolution, one shift at a time."""
    total = np.zeros(picture.shape, dtype=complex)
    for down in range(len(picture)):
        for across in range(len(picture)):
            total += filter_[down, across] * np.roll(picture, (down, across), (0, 1))
    return total


def test_slow_computation_in_space_agrees() -> None:
    """Catches a wrong filter, a lost alias, a wrong order of channels, a wrong stride or a wrong margin."""
    picture = torch.rand(1, 8, 8, generator=generator()).double()
    scales, angles, margin = 2, 3, 4
    padded = np.pad(picture[0].numpy(), margin, mode="reflect")
    size = len(padded)
    low = kernel(size, 0.8 * 2 ** (scales - 1), 0, 0, 1)
    waves = [
        [kernel(size, 0.8 * 2**j, 0.75 * pi / 2**j, pi * angle / angles, 4 / angles) for angle in range(angles)]
        for j in range(scales)
    ]
    power = np.sum([np.abs(np.fft.fft2(wave)) ** 2 for row in waves for wave in row], axis=0)
    power = (power + np.roll(power[::-1, ::-1], (1, 1), (0, 1))) / 2
    inside = power > 1e-6 * power.max()
    gain = sqrt(((1 - np.abs(np.fft.fft2(low)) ** 2)[inside] / power[inside]).min())

    def averaged(found: np.ndarray, step: int = 1) -> np.ndarray:
        # Coarse maps are kept at every second pixel before they are averaged.
        bell = kernel(size // step, 0.8 * 2 ** (scales - 1) / step, 0, 0, 1)
        inside = slice(margin // step, (margin + 8) // step, 4 // step)
        return convolved(found[::step, ::step], bell).real[inside, inside]

    first = [[np.abs(gain * convolved(padded, wave)) for wave in row] for row in waves]
    slow = [averaged(padded), *(averaged(found, 2**j) for j, row in enumerate(first) for found in row)]
    slow += [averaged(np.abs(gain * convolved(found, wave)), 2) for found in first[0] for wave in waves[1]]
    fast = Scattering(8, 8, scales, angles)(picture)[0].numpy()
    assert fast.shape == np.stack(slow).shape == (16, 2, 2)
    assert np.abs(fast - np.stack(slow)).max() < 1e-5


@pytest.mark.parametrize(
    ("sizes", "scales", "shape"),
    [((28, 28), 2, (81, 7, 7)), ((32, 32), 2, (81, 8, 8)), ((8, 8), 1, (9, 4, 4)), ((30, 17), 3, (217, 4, 3))],
)
def test_shapes(sizes: tuple[int, int], scales: int, shape: tuple[int, int, int]) -> None:
    """Catches a margin or stride that does not fit sizes which are no multiples of the stride."""
    scattering = Scattering(*sizes, scales)
    assert scattering.shape == shape
    assert scattering(torch.zeros(2, *sizes)).shape == (2, *shape)
    assert scattering(torch.zeros(2, 3, *sizes)).shape == (2, 3 * shape[0], *shape[1:])
    assert scattering(torch.zeros(0, *sizes)).shape == (0, *shape)
    assert sum(scattering.orders) == shape[0]


def test_transform_never_expands() -> None:
    """Catches filters that are too strong: two pictures are never further apart afterwards (Bruna & Mallat 2013)."""
    scattering = Scattering(16, 16, 2)
    one, other = torch.rand(2, 40, 16, 16, generator=generator())
    spike = torch.zeros(40, 16, 16)
    spike[torch.arange(40), torch.arange(40) % 16, 7] = 3
    for first, second in ((one, other), (one, one + spike), (spike, 0 * spike), (one * 0 + 1, one * 0)):
        apart = (scattering(first) - scattering(second)).flatten(1).norm(dim=1) * 4
        before = scattering._padded((first - second)[:, None]).flatten(1).norm(dim=1)
        assert (apart <= 1.005 * before).all()
        assert (apart >= 0.1 * before).all()


def test_constant_pictures_have_only_an_average() -> None:
    """Catches wavelets that do not sum to zero, and averages that do not sum to one."""
    found = Scattering(16, 16, 2)(torch.full((1, 16, 16), 0.7))
    assert torch.allclose(found[:, :1], torch.tensor(0.7), atol=1e-5)
    assert found[:, 1:].abs().max() < 1e-5


def test_small_shifts_move_features_little() -> None:
    """Catches a lost modulus or average: a shifted picture stays near, and nearer with coarser averages."""
    noise = torch.randn(8, 32, 33, generator=generator())
    here, there = noise[:, :, :32], noise[:, :, 1:]
    moved = (here - there).norm() / here.norm()
    stayed = []
    for scales in (1, 2, 3):
        scattering = Scattering(32, 32, scales)
        stayed.append(float((scattering(here) - scattering(there)).norm() / scattering(here).norm()))
    assert moved > 1
    assert stayed[0] > stayed[1] > stayed[2]
    assert stayed[1] < 0.5


def test_every_picture_is_by_itself() -> None:
    """Catches statistics over the batch, which would cost privacy: alone or among others, features are the same."""
    pictures = torch.rand(70, 8, 8, generator=generator())
    scattering = Scattering(8, 8, 1)
    assert torch.allclose(scattering(pictures)[64:65], scattering(pictures[64:65]), atol=1e-6)
    assert torch.allclose(scattering(3 * pictures), 3 * scattering(pictures), atol=1e-5)


def test_wrong_sizes_are_refused() -> None:
    """Catches pictures of another size, whose features would mean something else."""
    with pytest.raises(InvalidInput, match="scales"):
        Scattering(8, 8, 3)
    with pytest.raises(InvalidInput, match="pictures"):
        Scattering(8, 8, 1)(torch.zeros(2, 8, 9))


def test_features_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    """Catches a cache that others can read, that is not used, or that takes one data set for another."""
    pictures = torch.randint(0, 256, (5, 8, 8), generator=generator(), dtype=torch.uint8)
    calls: list[int] = []

    def features(some: torch.Tensor) -> torch.Tensor:
        calls.append(len(some))
        return Scattering(8, 8, 1)(some)

    folder = tmp_path / "cache"
    first = cached(pictures, features, folder, key="a")
    assert torch.equal(cached(pictures, features, folder, key="a"), first)
    assert calls == [5]
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    cached(pictures, features, folder, key="b")
    cached(pictures.flip(0), features, folder, key="a")
    assert calls == [5, 5, 5]
