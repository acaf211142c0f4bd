"""Searches that never have to be exact: whatever they return has been seen to satisfy the caller's own bound."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "falling_root", "largest_count", "least"]

Array = npt.NDArray[np.float64]
_POINTS = np.linspace(-1.0, 1.0, 65)


def falling_root(value: Callable[[float], float], low: float, high: float, *, tolerance: float = 1e-13) -> float:
    """Where a falling function becomes ≤ 0 in [low, high], rounded up to a point where it was seen to be ≤ 0.

    `value(high) ≤ 0` is the caller's business; values may be infinite, and may jump. False position (Illinois), with a
    bisection whenever two steps in a row have not halved the bracket: never slower than three bisections.
    """
    at_low, at_high = value(low), min(value(high), 0.0)
    if at_low <= 0:
        return low
    nothing = 1e-20 * (abs(low) + abs(high)) + 1e-300
    slow, side = 0, 0
    while (width := high - low) > tolerance * max(abs(low), abs(high)) + nothing:
        middle = low + width / 2
        if slow < 2 and math.isfinite(at_low) and math.isfinite(at_high) and at_low > at_high:
            # at least a third of the tolerance away from the ends, so that the bracket closes from both sides
            margin = tolerance * max(abs(low), abs(high)) / 3 + nothing / 3
            guess = low + width * (at_low / (at_low - at_high))
            middle = min(max(guess, low + margin), high - margin)
        if not low < middle < high:
            break
        at_middle = value(middle)
        if at_middle > 0:
            at_high = at_high / 2 if side > 0 else at_high
            low, at_low, side = middle, at_middle, 1
        else:
            at_low = at_low / 2 if side < 0 else at_low
            high, at_high, side = middle, at_middle, -1
        slow = 0 if slow == 2 or high - low <= width / 2 else slow + 1
    return high


def least(objective: Callable[[Array], Array], center: float, radius: float) -> float:
    """Return the least value of a bowl-shaped function that is seen around `center`: a grid, then three closer ones.

    Args:
        objective: The function, on an array.
        center: Where the search starts.
        radius: How far it looks from there.
    """
    best = math.inf
    for _ in range(4):
        points = center + radius * _POINTS
        values = objective(points)
        at = int(np.argmin(values))
        best = min(best, float(values[at]))
        center, radius = float(points[at]), 2 * radius / (len(_POINTS) - 1)
    return best


def largest_count(fits: Callable[[int], bool], limit: int, start: int = 0) -> int:
    """Return the largest whole number up to `limit` that fits, by doubling and bisection.

    Args:
        fits: Whether a number fits; if one does, all smaller ones do.
        limit: The largest number that is tried.
        start: A number that is known to fit, and the answer if no larger one does.
    """
    stride, low, high = 1, start, start + 1
    while high <= limit and fits(high):
        stride *= 2
        low, high = high, start + stride
    high = min(high, limit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
