"""Sums of independent grid losses: one fast Fourier transform of exponentially tilted masses.

Tilting by e^(λL) moves the bulk of the sum to the tail that decides δ, so that the transform's rounding error is small
against δ itself, however small δ is. What the transform cannot see (mass outside its window, rounding) is bounded and
counted on the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft

from privet.accounting.grid import Grid
from privet.accounting.laws import Array

__all__ = ["Curve", "compose", "cumulants"]

_EPS = 2.0**-52
_MOST = 1 << 23


@dataclass(frozen=True, eq=False)
class Curve:
    """δ as a function of ε for a composed loss: δ(ε) = infinite + Σ_{s > ε} mass(s)·(1 − e^(ε − s)).

    Masses are kept divided by e^(K − λs); `scale` = K, `tilt` = λ. `stray` bounds the tilted mass that may be
    misplaced, `missing` the plain mass above the window.
    """

    losses: Array
    tilted: Array
    tilt: float
    scale: float
    infinite: float
    stray: float
    missing: float

    @cached_property
    def _sums(self) -> tuple[Array, Array, float]:
        """Σ of mass and of mass·e^(c − s) over all grid losses from each index on, in units of e^(K − λc)."""
        centre = float(self.losses[int(np.argmax(self.tilted))])
        offset = self.losses - centre
        with np.errstate(over="ignore", invalid="ignore"):  # far below the centre sums may be infinite: δ is 1 there
            weights = self.tilted * np.exp(-self.tilt * offset)
            discounted = weights * np.exp(-offset)
            return np.cumsum(weights[::-1])[::-1], np.cumsum(discounted[::-1])[::-1], centre

    def _error(self, epsilon: float, side: int) -> float:
        """What to add (side = 1) or take off (side = −1) so that δ is certainly bounded."""
        stray = self.stray * math.exp(min(self.scale - self.tilt * epsilon, 700.0))
        return side * (stray + (self.missing if side > 0 else 0.0))

    def delta(self, epsilon: float, side: int) -> float:
        """A certified bound on δ(ε): above for side = 1, below for side = −1."""
        mass, discounted, centre = self._sums
        index = int(np.searchsorted(self.losses, epsilon, side="right"))
        finite = 0.0
        if index < len(self.losses):
            unit = math.exp(min(self.scale - self.tilt * centre, 700.0))
            finite = unit * (float(mass[index]) - math.exp(min(epsilon - centre, 700.0)) * float(discounted[index]))
        if side > 0 and (epsilon < self.losses[0] or not math.isfinite(finite)):
            return 1.0
        finite = finite if math.isfinite(finite) else 0.0
        return min(1.0, max(0.0, self.infinite + finite + self._error(epsilon, side)))

    def epsilon(self, delta: float, side: int) -> float:
        """A certified bound on the least ε with δ(ε) ≤ delta: above for side = 1, below for side = −1."""
        mass, discounted, centre = self._sums
        unit = math.exp(min(self.scale - self.tilt * centre, 700.0))
        with np.errstate(over="ignore", invalid="ignore"):
            safety = side * (self.stray * np.exp(np.minimum(self.scale - self.tilt * self.losses, 700.0)))
            safety += self.missing if side > 0 else 0.0
            later = np.append(mass[1:], 0.0) - np.exp(self.losses - centre) * np.append(discounted[1:], 0.0)
            at_points = self.infinite + unit * later + safety  # δ at each grid loss
        at_points = np.where(np.isnan(at_points), float(side > 0), at_points)
        above = np.flatnonzero(at_points > delta)
        if len(above) == 0:
            return max(0.0, float(self.losses[0])) if side > 0 else 0.0
        index = int(above[-1]) + 1  # δ is certified to have come down from here on
        if index == len(at_points):
            return math.inf if side > 0 else max(0.0, float(self.losses[-1]))
        # between two grid losses δ(ε) = infinite + unit·(A − e^(ε − c)·B), with the larger safety, of the left end
        left, right = float(self.losses[index - 1]), float(self.losses[index])
        room = (delta - self.infinite - float(safety[index - 1])) / unit
        numerator, below = float(mass[index]) - room, float(discounted[index])
        inside = centre + math.log(numerator / below) if numerator > 0 and below > 0 else (left if side < 0 else right)
        return max(0.0, min(max(inside, left), right))


def cumulants(grid: Grid, tilts: Array) -> Array:
    """log Σ mass·e^(tilt·loss) for each tilt."""
    with np.errstate(divide="ignore"):
        exponents = tilts[:, None] * grid.losses[None, :] + np.log(grid.mass)[None, :]
    top = exponents.max(axis=1)
    return np.asarray(top + np.log(np.exp(exponents - top[:, None]).sum(axis=1)))


def compose(grids: Sequence[tuple[Grid, int]], tilt: float) -> Curve:
    """The sum of `count` independent copies of each grid law, with everything that is uncertain bounded."""
    step = grids[0][0].step
    scale, mean, variance, centre = 0.0, 0.0, 0.0, 0
    pieces: list[tuple[Array, int, int]] = []
    for grid, count in grids:
        exponent = tilt * grid.losses
        with np.errstate(divide="ignore"):
            exponent = exponent + np.log(grid.mass)
        top = float(exponent.max())
        weights = np.exp(exponent - top)
        total = float(weights.sum())
        scale += count * (top + math.log(total))
        weights /= total
        index = np.arange(grid.first, grid.first + len(weights), dtype=np.float64)
        average = float(weights @ index)
        middle = round(average)
        mean += count * (average - middle)
        variance += count * float(weights @ (index - average) ** 2)
        centre += count * middle
        pieces.append((weights, grid.first - middle, count))
    deviation = math.sqrt(max(variance, 1e-12))
    size = fft.next_fast_len(int(2 * (9 * deviation + abs(mean)) + 64), real=True)
    while True:
        start = round(mean) - size // 2
        right = _overflow(pieces, start + size, 1, deviation)
        left = _overflow(pieces, start, -1, deviation)
        if right + left < 1e-9 or size * 2 > _MOST:
            break
        size = fft.next_fast_len(size * 2, real=True)
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    copies = 0
    for weights, first, count in pieces:
        folded = np.zeros(size)
        for begin in range(0, len(weights), size):
            _place(folded, weights[begin : begin + size], first + begin)
        transform = fft.rfft(folded)
        spectrum *= transform if count == 1 else np.power(transform, count)
        copies += count
    summed = np.roll(fft.irfft(spectrum, n=size), -(start % size))
    tilted = np.maximum(summed, 0.0)
    offset = math.fsum(count * grid.offset for grid, count in grids)
    losses = offset + step * np.arange(centre + start, centre + start + size, dtype=np.float64)
    rounding = _EPS * (8.0 * copies + 20.0 * math.log2(size)) * math.sqrt(size)
    log_missing = scale - tilt * float(losses[-1])
    missing = right * math.exp(min(log_missing, 700.0))
    kept = sum(count * math.log1p(-min(grid.infinite, 1.0 - 1e-16)) for grid, count in grids)
    return Curve(losses, tilted, tilt, scale, -math.expm1(kept), left + right + rounding, missing)


def _place(folded: Array, weights: Array, first: int) -> None:
    size = len(folded)
    begin = first % size
    head = min(len(weights), size - begin)
    folded[begin : begin + head] += weights[:head]
    folded[: len(weights) - head] += weights[head:]


def _overflow(pieces: Sequence[tuple[Array, int, int]], limit: int, side: int, deviation: float) -> float:
    """Chernoff's bound on the tilted mass of sums beyond `limit`."""
    rates = np.array([1.0, 3.0, 9.0]) / deviation
    exponent = -side * rates * limit
    for weights, first, count in pieces:
        index = np.arange(first, first + len(weights), dtype=np.float64)
        with np.errstate(divide="ignore"):
            logs = np.log(weights)
        for k, rate in enumerate(side * rates):
            power = rate * index + logs
            top = float(power.max())
            exponent[k] += count * (top + math.log(float(np.exp(power - top).sum())))
    return math.exp(min(0.0, float(exponent.min())))
