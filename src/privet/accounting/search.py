"""Two searches that never have to be exact: whatever they return has been seen to satisfy the caller's own bound."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

__all__ = ["Array", "falling_root", "least"]

Array = npt.NDArray[np.float64]
_POINTS = np.linspace(-1.0, 1.0, 65)
_LARGEST = 1e6  # what an infinite value counts as while the root is looked for


def falling_root(value: Callable[[float], float], low: float, high: float, *, tolerance: float = 1e-13) -> float:
    """Where a falling function becomes ≤ 0 in [low, high], rounded up to a point where it was seen to be ≤ 0.

    `value(low) > 0 ≥ value(high)` is the caller's business; values may be infinite.
    """

    def seen(x: float) -> float:
        found = value(x)
        return min(found, _LARGEST) if found > 0 else min(max(found, -_LARGEST), -1e-300)  # 0 is low enough

    root = float(brentq(seen, low, high, xtol=1e-300, rtol=tolerance))
    step = tolerance * abs(root) + 1e-300
    while root < high and value(root) > 0:
        root, step = root + step, 2 * step
    return min(root, high)


def least(objective: Callable[[Array], Array], centre: float, radius: float) -> float:
    """The least value of a bowl-shaped function that is seen around `centre`: a grid, then three closer ones."""
    best = math.inf
    for _ in range(4):
        points = centre + radius * _POINTS
        values = objective(points)
        at = int(np.argmin(values))
        best = min(best, float(values[at]))
        centre, radius = float(points[at]), 2 * radius / (len(_POINTS) - 1)
    return best
