"""The scattering transform of pictures: fixed wavelets, moduli and local averages, which depend on no data.

Bruna & Mallat (2013), "Invariant scattering convolution networks"; Oyallon & Mallat (2015), "Deep roto-translation
scattering for object classification". A linear model on these features is the strongest known private model of small
pictures (Tramèr & Boneh 2021). A picture's features depend on it alone, so they cost no privacy, and they are as
private as the picture: `cached` writes them where only their owner reads.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import pi, sqrt
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from privet.core import InvalidInput, checked

__all__ = ["Scattering", "cached"]

_WIDTH, _FREQUENCY = 0.8, 3 * pi / 4
"""Of the finest wavelet: its Gaussian's deviation in pixels, and its center; both are dilated by 2^j."""
_ALIASES = 4
"""Periods of the spectrum that are added up on each side; beyond them float32 has only zeros."""
_AT_ONCE = 32
"""Pictures that are transformed together: as many as fit into a processor's cache."""
_VERSION = 1
"""In the names of cached files: to be raised when the numbers change."""


@dataclass(frozen=True)
class Scattering:
    """Scattering coefficients of orders 0, 1 and 2 of pictures of one size.

    With x the picture, ψ Morlet wavelets of `scales` octaves and `angles` directions, φ a Gaussian of 2^scales pixels:
    x ∗ φ, |x ∗ ψ₁| ∗ φ, and ||x ∗ ψ₁| ∗ ψ₂| ∗ φ for every ψ₂ coarser than ψ₁, each at every 2^scales-th pixel.
    Wavelets are scaled so that the transform is non-expansive (Bruna & Mallat 2013, section 2.3), up to the reflected
    margin around the picture.

    >>> Scattering(28, 28).shape
    (81, 7, 7)
    """

    height: int
    width: int
    scales: int = 2
    angles: int = 8

    def __post_init__(self) -> None:
        for name in ("height", "width", "scales", "angles"):
            checked.count(name, getattr(self, name))
        least = min(self.height, self.width)
        if 2**self.scales >= least:
            problem = f"is {self.scales}, and a picture of {self.height} × {self.width} has fewer octaves"
            raise InvalidInput("scales", problem, "give a number below log2 of its shorter side")

    @property
    def channels(self) -> int:
        """Number of maps of a picture of one color."""
        return 1 + self.scales * self.angles + self.angles**2 * self.scales * (self.scales - 1) // 2

    @property
    def orders(self) -> tuple[int, int, int]:
        """How many maps are of order 0, 1 and 2; they come in this order."""
        first = self.scales * self.angles
        return 1, first, self.channels - 1 - first

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of one picture's coefficients: channels, rows, columns."""
        step = 2**self.scales
        return self.channels, -(-self.height // step), -(-self.width // step)

    def __call__(self, pictures: Tensor) -> Tensor:
        """Coefficients [n, channels, rows, columns] of pictures [n, height, width], or of [n, colors, height, width],
        whose colors are transformed one by one and follow each other among the channels.
        """
        if pictures.shape[-2:] != (self.height, self.width) or pictures.ndim not in {3, 4}:
            problem = (
                f"has the shape {tuple(pictures.shape)}, and pictures of {self.height} × {self.width} are expected"
            )
            raise InvalidInput("pictures", problem)
        colours = pictures.shape[1] if pictures.ndim == 4 else 1
        flat = pictures.reshape(-1, 1, self.height, self.width)
        parts = [self._transform(self._padded(part.float())) for part in torch.split(flat, _AT_ONCE) if len(part)]
        found = torch.cat([torch.zeros(0, *self.shape), *parts])
        return found.reshape(len(pictures), colours * self.channels, *self.shape[1:])

    def _padded(self, pictures: Tensor) -> Tensor:
        """With a reflected margin of one coarse step, so that the border of a picture meets no other border."""
        step = 2**self.scales
        down, right = (-self.height) % step, (-self.width) % step
        return F.pad(pictures, (step, step + right, step, step + down), mode="reflect")[:, 0]

    def _transform(self, padded: Tensor) -> Tensor:
        """Of pictures with their margin."""
        bank, spectrum = self._bank, torch.fft.fft2(padded)
        maps = [self._average(padded, 0)[:, None]]
        finer: list[tuple[int, Tensor]] = []
        for scale in range(self.scales):
            first = _modulus(spectrum[:, None], bank[0, scale], 2**scale)
            maps.append(self._average(first, scale))
            finer.append((scale, first))
        for fine, first in finer[:-1]:
            spectra = torch.fft.fft2(first)[:, :, None]
            for scale in range(fine + 1, self.scales):
                second = _modulus(spectra, bank[fine, scale], 2 ** (scale - fine))
                maps.append(self._average(second, scale).flatten(1, 2))
        return torch.cat(maps, 1)

    def _average(self, maps: Tensor, scale: int) -> Tensor:
        """Maps that are 2^scale apart, averaged by φ and at every 2^scales-th pixel, without the margin."""
        down, across = self._averages[scale]
        return down @ maps @ across.T

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """Of a picture with its margin."""
        step = 2**self.scales
        return (self.shape[1] + 2) * step, (self.shape[2] + 2) * step

    @cached_property
    def _bank(self) -> dict[tuple[int, int], Tensor]:
        """Spectra [angles, …] of the wavelets of one scale, on the grid of a finer one."""
        grid = tuple(self._sizes)
        coarse = [
            torch.stack(
                [_morlet(grid, scale, pi * angle / self.angles, 4 / self.angles) for angle in range(self.angles)]
            )
            for scale in range(self.scales)
        ]
        gain = _gain(_gaussian(grid, self._blur), torch.cat(coarse))
        bank = {}
        for scale, wavelets in enumerate(coarse):
            for fine in range(scale + 1):
                # They are always used at every 2^(scale − fine)-th pixel, whose spectrum has this factor.
                part = _folded(wavelets, 2**fine) / 4 ** (scale - fine)
                bank[fine, scale] = (gain * part).to(torch.complex64)
        return bank

    @property
    def _blur(self) -> float:
        return float(_WIDTH * 2 ** (self.scales - 1))

    @cached_property
    def _averages(self) -> list[tuple[Tensor, Tensor]]:
        """For maps of each scale, the matrices that average and thin out columns and rows."""
        step = 2**self.scales
        pairs = []
        for scale in range(self.scales):
            sides = []
            for size, kept in zip(self._sizes, self.shape[1:], strict=True):
                at = torch.arange(0, size, 2**scale, dtype=torch.float64)
                wanted = step * torch.arange(1, kept + 1, dtype=torch.float64)
                away = wanted[:, None] - at
                around = torch.stack([away + size * turn for turn in range(-_ALIASES, _ALIASES + 1)])
                weights = torch.exp(-((around / self._blur) ** 2) / 2).sum(0)
                sides.append((weights / weights.sum(1, keepdim=True)).float())
            pairs.append((sides[0], sides[1]))
        return pairs


def _modulus(spectrum: Tensor, wavelets: Tensor, step: int) -> Tensor:
    """|x ∗ ψ| at every `step`-th pixel, of a picture's spectrum; its aliases fall onto each other, one at a time."""
    height, width = spectrum.shape[-2] // step, spectrum.shape[-1] // step
    folded = torch.zeros((), dtype=spectrum.dtype)
    for down in range(0, step * height, height):
        for across in range(0, step * width, width):
            at = (..., slice(down, down + height), slice(across, across + width))
            folded = spectrum[at] * wavelets[at] if not folded.ndim else folded.addcmul_(spectrum[at], wavelets[at])
    found: Tensor = torch.fft.ifft2(folded).abs()
    return found


def _folded(spectrum: Tensor, step: int) -> Tensor:
    """The spectrum of every `step`-th pixel, but for the factor step²: aliases fall onto each other."""
    if step == 1:
        return spectrum
    *others, height, width = spectrum.shape
    return spectrum.reshape(*others, step, height // step, step, width // step).sum((-4, -2))


def _frequencies(sizes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Of a grid's spectrum, with aliases: [2A+1, height, 2A+1, width], in the directions down and across."""
    turns = 2 * pi * torch.arange(-_ALIASES, _ALIASES + 1, dtype=torch.float64)
    down, across = (turns[:, None] + 2 * pi * torch.fft.fftfreq(size, dtype=torch.float64) for size in sizes)
    return down[:, :, None, None], across[None, None]


def _morlet(sizes: tuple[int, ...], scale: int, angle: float, slant: float) -> Tensor:
    """The spectrum of a Morlet wavelet on a grid: a Gaussian around a frequency, less one around zero, so that it sums
    to zero. Sampling in space adds up aliases (Poisson's formula).
    """
    down, across = _frequencies(sizes)
    along = across * np.cos(angle) + down * np.sin(angle)
    beside = (down * np.cos(angle) - across * np.sin(angle)) / slant
    width, centre = _WIDTH * 2**scale, _FREQUENCY / 2**scale
    wave = torch.exp(-(((along - centre) ** 2 + beside**2) * width**2) / 2).sum((0, 2))
    still = torch.exp(-((along**2 + beside**2) * width**2) / 2).sum((0, 2))
    return wave - wave[0, 0] / still[0, 0] * still


def _gaussian(sizes: tuple[int, ...], width: float) -> Tensor:
    down, across = _frequencies(sizes)
    return torch.exp(-((down**2 + across**2) * width**2) / 2).sum((0, 2))


def _gain(low: Tensor, wavelets: Tensor) -> float:
    """The largest factor for wavelets with |φ̂|² + ½ Σ (|ψ̂(ω)|² + |ψ̂(−ω)|²) ≤ 1 everywhere (Littlewood–Paley)."""
    power = (wavelets**2).sum(0)
    mirrored = torch.roll(power.flip((0, 1)), (1, 1), (0, 1))
    both = (power + mirrored) / 2
    room = 1 - low**2
    inside = both > 1e-6 * both.max()
    return sqrt(max(float((room[inside] / both[inside]).min()), 0.0))


def cached(
    pictures: Tensor, features: Callable[[Tensor], Tensor], folder: str | os.PathLike[str], key: str = ""
) -> Tensor:
    """The features of pictures, from a file in `folder` if they were computed before.

    The file's name is a hash of the pictures' bytes and of `key`, which says what the features are; by default, what
    they print as. Features are as private as the pictures: the file can be read by its owner alone (mode 600), and so
    can the folder, if it is made here.
    """
    whole = np.ascontiguousarray(pictures.numpy())
    text = f"{_VERSION} {key or features} {whole.dtype} {whole.shape}"
    digest = hashlib.sha256(text.encode())
    digest.update(whole.data)
    place = Path(folder) / f"features-{digest.hexdigest()[:32]}.npy"
    if place.exists():
        return torch.from_numpy(np.load(place))
    found = features(pictures)
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = place.with_name(f"{place.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        np.save(file, found.numpy())
    beside.replace(place)
    return found
