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
import numpy.typing as npt
from scipy import fft

from privet.accounting.grid import LossGrid
from privet.accounting.laws import Array

__all__ = ["LossCurve", "compose", "cumulants"]

_EPS = 2.0**-52
_MOST, _LEAST_WINDOW, _FEW = 1 << 23, 1 << 17, 4
"""The largest window, and the least that many pieces share: each of them is transformed at that size."""
_FAR = 700.0
"""The largest exponent that is raised: e^700 is a double, e^710 is not."""


@dataclass(frozen=True, eq=False)
class LossCurve:
    """δ as a function of ε for a composed loss: δ(ε) = infinite + Σ_{s > ε} mass(s)·(1 − e^(ε − s)).

    Masses are kept divided by e^(K − λs); `scale` = K, `tilt` = λ. `stray` bounds the tilted mass that may be
    misplaced, `missing` the plain mass above the window. To these come the rounding errors of the sums over the grid.
    """

    losses: Array
    tilted: Array
    tilt: float
    scale: float
    infinite: float
    stray: float
    missing: float
    drift: float
    """How far `scale` may be off."""

    @cached_property
    def _sums(self) -> tuple[Array, Array, float]:
        """Σ of mass and of mass·e^(c − s) over all grid losses from each index on, in units of e^(K − λc)."""
        center = float(self.losses[int(np.argmax(self.tilted))])
        offset = self.losses - center
        with np.errstate(over="ignore", invalid="ignore"):  # far below the center sums may be infinite: δ is 1 there
            weights = self.tilted * np.exp(-self.tilt * offset)
            discounted = weights * np.exp(-offset)
            return np.cumsum(weights[::-1])[::-1], np.cumsum(discounted[::-1])[::-1], center

    @cached_property
    def _rounding(self) -> float:
        """The relative rounding error of sums over the grid: one for each term, and what the exponents bring along."""
        far = float(max(abs(self.losses[0]), abs(self.losses[-1])))
        return _EPS * (2.0 * len(self.losses) + 16.0 * (self.tilt + 1.0) * far + 64.0)

    def _error(self, epsilon: float, side: int) -> float:
        """What to add (side = 1) or take off (side = −1) so that δ is certainly bounded."""
        stray = self.stray * math.exp(min(self.scale - self.tilt * epsilon, _FAR))
        return side * (stray + (self.missing if side > 0 else 0.0))

    def delta(self, epsilon: float, side: int) -> float:
        """A certified bound on δ(ε): above for side = 1, below for side = −1."""
        mass, discounted, center = self._sums
        index = int(np.searchsorted(self.losses, epsilon, side="right"))
        finite = 0.0
        if index < len(self.losses):
            beyond = min(epsilon - center, _FAR)
            left = float(mass[index]) * (1 + side * 2 * self._rounding) - math.exp(beyond) * float(discounted[index])
            if math.isfinite(left):  # in logarithms, as the unit alone may be too small for a double
                log_unit = self.scale + side * self.drift - self.tilt * center
                finite = math.exp(min(log_unit + math.log(left), _FAR)) if left > 0 else 0.0
            else:
                finite = math.inf
        if side > 0 and (epsilon < self.losses[0] or not math.isfinite(finite)):
            return 1.0
        known = side > 0 or (math.isfinite(finite) and epsilon - center < _FAR)
        return min(1.0, max(0.0, self.infinite + (finite if known else 0.0) + self._error(epsilon, side)))

    def epsilon(self, delta: float, side: int) -> float:
        """A certified bound on the least ε with δ(ε) ≤ delta: above for side = 1, below for side = −1."""
        mass, discounted, center = self._sums
        unit = math.exp(min(self.scale + side * self.drift - self.tilt * center, _FAR))
        if unit == 0:  # too far out for a double: nothing is certified here
            return math.inf if side > 0 else 0.0
        offset = self.losses - center
        far = int(np.searchsorted(offset, _FAR))
        with np.errstate(over="ignore", invalid="ignore"):
            safety = side * (self.stray * np.exp(np.minimum(self.scale - self.tilt * self.losses, _FAR)))
            safety += self.missing if side > 0 else 0.0
            # so far above the center that e^offset overflows, less is taken off than could be
            grown = np.exp(offset if far == len(offset) else np.minimum(offset, _FAR))
            after = np.append(mass[1:], 0.0)
            safety += side * 2 * self._rounding * unit * after  # each of the two sums is off by one such error
            later = after - grown * np.append(discounted[1:], 0.0)
            at_points = self.infinite + unit * later + safety  # δ at each grid loss
        at_points[~np.isfinite(at_points)] = float(side > 0)  # far below the center, where sums overflow
        if side < 0:
            at_points[far:] = 0.0
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
        inside = center + math.log(numerator / below) if numerator > 0 and below > 0 else (left if side < 0 else right)
        return max(0.0, min(max(inside, left), right))


def cumulants(grid: LossGrid, tilts: Array) -> Array:
    """log Σ mass·e^(tilt·loss) for each tilt."""
    with np.errstate(divide="ignore"):
        exponents = tilts[:, None] * grid.losses[None, :] + np.log(grid.mass)[None, :]
    top = exponents.max(axis=1)
    return np.asarray(top + np.log(np.exp(exponents - top[:, None]).sum(axis=1)))


def compose(grids: Sequence[tuple[LossGrid, int]], tilt: float) -> LossCurve:
    """The sum of `count` independent copies of each grid law, with everything that is uncertain bounded."""
    pieces = [_tilted(grid, count, tilt) for grid, count in grids]
    mean = math.fsum(piece.count * piece.mean for piece in pieces)
    deviation = math.sqrt(max(math.fsum(piece.count * piece.variance for piece in pieces), 1e-12))
    # a window that is too small is certified too: what falls outside is counted as astray
    most = max(_MOST // max(1, len(pieces) // _FEW), _LEAST_WINDOW)
    size = fft.next_fast_len(int(min(2 * 9 * deviation + 64, most)), real=True)
    while True:
        start = round(mean) - size // 2
        right = _overflow(pieces, start + size, 1, deviation)
        left = _overflow(pieces, start, -1, deviation)
        if right + left < 1e-12 or size * 2 > most:
            break
        size = fft.next_fast_len(size * 2, real=True)
    exponent = np.zeros(size // 2 + 1, dtype=np.complex128)
    for piece in pieces:
        exponent += piece.count * piece.log_transform(size)
    summed, norm = _transformed_back(exponent, size, math.fsum(piece.count * piece.spread for piece in pieces) < 0.5)
    tilted = np.maximum(np.roll(summed, -(start % size)), 0.0)
    offset = math.fsum(piece.count * piece.offset for piece in pieces)
    losses = offset + grids[0][0].step * np.arange(start, start + size, dtype=np.float64)
    scale = math.fsum(piece.count * piece.scale for piece in pieces)
    # An error e in every transformed value moves the sum by at most e·√size times its root mean square (Parseval).
    error = _EPS * (8.0 * math.fsum(piece.count * piece.spread for piece in pieces) + 40.0 * math.log2(size) + 400.0)
    rounding = error * math.sqrt(size) * min(1.0, 2.0 * norm)
    missing = right * math.exp(min(scale - tilt * float(losses[-1]), _FAR))
    log_finite = math.fsum(count * math.log1p(-min(grid.infinite, 1.0 - 1e-16)) for grid, count in grids)
    drift = 8.0 * _EPS * math.fsum(piece.count * (1.0 + abs(piece.scale)) for piece in pieces)
    return LossCurve(losses, tilted, tilt, scale, -math.expm1(log_finite), left + right + rounding, missing, drift)


def _transformed_back(exponent: npt.NDArray[np.complex128], size: int, sparse: bool) -> tuple[Array, float]:
    """The masses of the sum and the norm that rounding errors are relative to.

    Where hardly any copy leaves its fullest cell, that atom is kept out of the transform, so that it cannot swamp the
    rest. Elsewhere what lies below e^-90, far under the rounding that is counted, is left out for speed.
    """
    if sparse:
        rest = fft.irfft(np.expm1(exponent), n=size)
        norm = float(np.sqrt(np.sum(rest**2)))
        rest[0] += 1.0
        return rest, norm
    seen = exponent.real > -90.0
    spectrum = np.zeros(len(exponent), dtype=np.complex128)
    spectrum[seen] = np.exp(exponent[seen])
    summed = fft.irfft(spectrum, n=size)
    return summed, float(np.sqrt(np.sum(summed**2)))


@dataclass(frozen=True, eq=False)
class _Piece:
    """A tilted, normalized law whose index 0 is its fullest cell, and how many copies of it are summed."""

    weights: Array
    first: int
    count: int
    scale: float
    offset: float
    """The loss at index 0."""
    mean: float
    variance: float
    spread: float
    """All mass but that of index 0."""

    def log_transform(self, size: int) -> npt.NDArray[np.complex128]:
        """log of the transform, from what index 0 leaves over: with little left, nothing is lost to rounding."""
        folded = np.zeros(size)
        for begin in range(0, len(self.weights), size):
            _place(folded, self.weights[begin : begin + size], self.first + begin)
        folded[0] -= self.weights[-self.first]
        excess = fft.rfft(folded) - self.spread  # transform − 1
        squared = np.maximum(excess.real * (2 + excess.real) + excess.imag**2, -0.75)  # |transform|² − 1
        modulus = np.maximum(np.hypot(1 + excess.real, excess.imag), 1e-300)
        real = np.where(modulus < 0.5, np.log(modulus), 0.5 * np.log1p(squared))
        return np.asarray(real + 1j * np.arctan2(excess.imag, 1 + excess.real))


def _tilted(grid: LossGrid, count: int, tilt: float) -> _Piece:
    with np.errstate(divide="ignore"):
        exponent = tilt * grid.losses + np.log(grid.mass)
    fullest = int(np.argmax(exponent))
    top = float(exponent[fullest])
    weights = np.exp(exponent - top)
    weights[fullest] = 0.0
    others = float(weights.sum())
    weights[fullest] = 1.0
    weights /= 1.0 + others
    index = np.arange(-fullest, len(weights) - fullest, dtype=np.float64)
    mean = float(np.sum(weights * index))
    variance = float(np.sum(weights * (index - mean) ** 2))
    spread = others / (1.0 + others)
    scale = top + math.log1p(others)
    return _Piece(weights, -fullest, count, scale, float(grid.losses[fullest]), mean, variance, spread)


def _place(folded: Array, weights: Array, first: int) -> None:
    size = len(folded)
    begin = first % size
    head = min(len(weights), size - begin)
    folded[begin : begin + head] += weights[:head]
    folded[: len(weights) - head] += weights[head:]


def _overflow(pieces: Sequence[_Piece], limit: int, side: int, deviation: float) -> float:
    """Chernoff's bound on the tilted mass of sums beyond `limit`, at rates that fit many small or few large losses."""
    widest = max(len(piece.weights) for piece in pieces)
    rates = np.array([1 / deviation, 3 / deviation, 9 / deviation, 2 / widest, 6 / widest, 18 / widest])
    exponent = -side * rates * limit
    for piece in pieces:
        index = np.arange(piece.first, piece.first + len(piece.weights), dtype=np.float64)
        for k, rate in enumerate(side * rates):
            if max(rate * index[0], rate * index[-1]) > 600:
                exponent[k] = math.inf  # of no use at this rate
            else:
                exponent[k] += piece.count * math.log1p(float(np.sum(np.expm1(rate * index) * piece.weights)))
    return math.exp(min(0.0, float(exponent.min())))
