"""The law of a privacy loss, seen only through the masses that it puts on cells of the real line."""

from __future__ import annotations

import math
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

__all__ = ["Array", "FiniteLoss", "Law", "between", "law_delta", "law_epsilon", "normal_cells", "reach"]

Array: TypeAlias = npt.NDArray[np.float64]
_ROUNDING = 1e-14
_LEAST = 1e-316
"""What a Q-mass may be that underflowed to 0, atom by atom."""


class Law(Protocol):
    """L = log(dP/dQ) for one pair (P, Q).

    `cells(bounds)` gives, for rising bounds b₀ < … < b_n, the P- and Q-masses of L in (−∞, b₀), [b₀, b₁), …, [b_n, ∞);
    losses of +∞ are left out and kept in `infinite` (their P-mass), losses of −∞ belong to the first cell.
    """

    @property
    def infinite(self) -> float:
        """P-mass of an infinite loss."""
        ...

    @property
    def support(self) -> tuple[float, float]:
        """An interval that holds every finite loss; its ends may be infinite."""
        ...

    def cells(self, bounds: Array) -> tuple[Array, Array]:
        """P- and Q-masses of the cells, each with a small relative error even far out."""
        ...


class FiniteLoss:
    """What laws share whose losses are all finite; unless they say otherwise, there is no largest one."""

    infinite = 0.0

    @property
    def support(self) -> tuple[float, float]:
        """The whole line."""
        return -math.inf, math.inf


def normal_cells(standardized: Array) -> Array:
    """Masses of a standard normal between −∞, the given rising points, and ∞; taken from the nearer tail."""
    below, above = ndtr(standardized), ndtr(-standardized)
    inner = np.where(standardized[:-1] > 0, above[:-1] - above[1:], below[1:] - below[:-1])
    return np.concatenate((below[:1], inner, above[-1:]))


def between(below: Array, above: Array) -> Array:
    """Masses between −∞, rising points, and ∞, from the masses below and above each point; from the nearer tail."""
    inner = np.where(above[:-1] < 0.5, above[:-1] - above[1:], below[1:] - below[:-1])
    return np.concatenate((below[:1], inner, above[-1:]))


def reach(law: Law, tail: float) -> tuple[float, float]:
    """Ends between which L falls but for a P-mass of at most `tail` on either side (found on a grid, outward)."""
    low, high = law.support
    if not (np.isfinite(low) and np.isfinite(high)):
        low, high = _unbounded_reach(law, tail, low, high)
    for _ in range(12):  # each pass zooms 256-fold at most
        bounds = np.linspace(low, high, 257)
        mass, _q = law.cells(bounds)
        left, right = np.cumsum(mass), np.cumsum(mass[::-1])[::-1]
        first = int(np.searchsorted(left[:-1] > tail, True))
        last = int(np.searchsorted(right[1:] <= tail, True))
        new_low = low if first == 0 else float(bounds[min(first - 1, 256)])
        new_high = high if last > 256 else float(bounds[last])
        if not new_low < new_high:
            break
        shrunk = (new_high - new_low) > 0.5 * (high - low)
        low, high = new_low, new_high
        if shrunk:
            break
    return low, high


def _unbounded_reach(law: Law, tail: float, low: float, high: float) -> tuple[float, float]:
    step = 1.0
    while True:
        left = -step if np.isinf(low) else low
        right = step if np.isinf(high) else max(high, left + 1.0)
        left = min(left, right - 1.0)
        mass, _q = law.cells(np.array([left, right]))
        if (mass[0] <= tail and mass[-1] <= tail) or step > 1e12:
            return float(left), float(right)
        step *= 2.0


def law_delta(law: Law, epsilon: float, side: int) -> float:
    """δ(ε) = P(L ≥ ε) − e^ε·Q(L ≥ ε), rounded up for side = 1 and down for side = −1."""
    p, q = law.cells(np.array([epsilon]))
    above, below = float(p[1]), float(q[1]) if side > 0 else max(float(q[1]), _LEAST)
    scaled = math.exp(min(epsilon + math.log(below), 700.0)) if below > 0 else 0.0
    # a tail of mass m comes from an exponent of |log m|, whose own rounding error is relative to that
    slack = _ROUNDING * (1 - math.log(max(above, _LEAST))) * (above + scaled)
    exact = law.infinite + above - scaled + side * slack
    if math.isnan(exact):
        return 1.0 if side > 0 else 0.0
    delta = min(1.0, max(0.0, exact))
    return max(delta, 5e-324) if side > 0 and epsilon < law.support[1] else delta


def law_epsilon(law: Law, delta: float, side: int) -> float:
    """The least ε with δ(ε) ≤ delta, bracketed by bisection; the outer end for the asked side."""
    if law_delta(law, 0.0, side) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while law_delta(law, high, side) > delta:
        low, high = high, 2 * high
        if high > 1e15:
            return math.inf if side > 0 else low
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high or high - low <= 1e-13 * high:
            break
        low, high = (middle, high) if law_delta(law, middle, side) > delta else (low, middle)
    return high if side > 0 else low
