"""Trade-off functions (Dong, Roth & Su 2022): the least false-negative rate of any attack at a false-positive rate.

A curve δ(ε) and a trade-off function f say the same: f(x) is the supremum over ε of
max(0, 1 − δ(ε) − e^ε·x, e^(−ε)·(1 − δ(ε) − x)) (their Prop. 2.5), and back, δ(ε) is the supremum over x of
1 − e^ε·x − f(x) (their Prop. 2.12).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scipy.special import ndtr, ndtri

from privet.core import InvalidInput, checked

__all__ = ["PiecewiseTradeoff", "delta_of", "gaussian_tradeoff", "piecewise", "tradeoff_of"]

_FARTHEST = 740.0  # e^−740 is about the least positive number
_ULP = 2.0**-52


def tradeoff_of(delta_curve: Callable[[float], float], fpr: float) -> float:
    """A lower bound on the false-negative rate of every attack with this false-positive rate.

    `delta_curve(ε)` must be an upper bound on δ(ε) in both directions. Every ε gives a bound, and the best of a grid
    that is refined three times is taken, so the answer is never too large, whatever the curve looks like.

    >>> round(tradeoff_of(lambda epsilon: 0.0 if epsilon >= 1 else 1.0, 0.1), 2)
    0.73
    """
    fpr = _rate("fpr", fpr)

    def bound(epsilon: float) -> float:
        rest = 1 - delta_curve(epsilon)
        return max(0.0, rest - math.exp(epsilon) * fpr if epsilon < 700 else 0.0, math.exp(-epsilon) * (rest - fpr))

    # the first line is positive up to log(1/x); the second falls once most of δ is gone
    most = min(-math.log(fpr), _FARTHEST) if fpr > 0 else _FARTHEST
    gone = 1.0
    while gone < _FARTHEST and delta_curve(gone) > (1 - fpr) / 2:
        gone *= 2
    edges = (0.0, max(min(2 * gone, _FARTHEST), most))
    best = bound(0.0)
    for low, high in (edges, (0.0, min(8.0, edges[1]))):
        best = max(best, _highest(bound, low, high))
    return min(1.0 - fpr, best) * (1 - 4 * _ULP)


def delta_of(tradeoff: Callable[[float], float], epsilon: float) -> float:
    """δ(ε) of a trade-off function, rounded up; for one that is not symmetric, δ(ε) of its own direction.

    f is convex, so 1 − e^ε·x − f(x) is concave: between two points it lies below the line through the two points
    before them, which bounds what the search has not seen.
    """
    slope = math.exp(min(checked.nonnegative("epsilon", epsilon), 700.0))

    def height(x: float) -> float:
        return 1 - slope * x - tradeoff(x)

    low, high = 0.0, 1.0
    unseen = 0.0
    best = 0.0
    for _ in range(24):
        points = [low + (high - low) * j / 16 for j in range(17)]
        heights = [height(x) for x in points]
        at = max(range(17), key=heights.__getitem__)
        best = max(best, heights[at])
        unseen = _unseen(heights, at)
        low, high = points[max(at - 1, 0)], points[min(at + 1, 16)]
        if unseen <= 1e-15:
            break
    return min(1.0, best + unseen + 4 * _ULP)


def _unseen(heights: Sequence[float], at: int) -> float:
    """How far a concave function can rise above the largest of its values on an even grid."""
    if at == 0:
        return max(0.0, 2 * heights[1] - heights[2] - heights[0])
    if at == len(heights) - 1:
        return max(0.0, 2 * heights[-2] - heights[-3] - heights[-1])
    return max(heights[at] - heights[at - 1], heights[at] - heights[at + 1])


@dataclass(frozen=True)
class PiecewiseTradeoff:
    """A trade-off function made of straight lines between points (false-positive rate, false-negative rate)."""

    points: tuple[tuple[float, float], ...]

    def __call__(self, fpr: float) -> float:
        """The false-negative rate at this false-positive rate."""
        fpr = _rate("fpr", fpr)
        for (x0, y0), (x1, y1) in zip(self.points, self.points[1:], strict=False):
            if x0 <= fpr <= x1 and x1 > x0:
                return y0 + (y1 - y0) * (fpr - x0) / (x1 - x0)
        return 0.0


def piecewise(epsilon: float, delta: float = 0.0) -> PiecewiseTradeoff:
    """All that one (ε, δ) says about attacks (Wasserman & Zhou 2010): three lines that meet on the diagonal.

    >>> piecewise(0.0, 0.0).points
    ((0.0, 1.0), (0.5, 0.5), (1.0, 0.0))
    """
    epsilon, delta = checked.nonnegative("epsilon", epsilon), checked.share("delta", delta)
    middle = (1 - delta) * math.exp(-epsilon) / (1 + math.exp(-epsilon))
    corners = ((0.0, 1 - delta), (middle, middle), (1 - delta, 0.0), (1.0, 0.0))
    return PiecewiseTradeoff(corners if delta > 0 else corners[:3])


def gaussian_tradeoff(mu: float, fpr: float) -> float:
    """G_μ(x) = Φ(Φ⁻¹(1 − x) − μ): one normal variable against another, μ standard deviations away.

    >>> round(gaussian_tradeoff(1.0, 0.05), 4)
    0.7405
    """
    mu, fpr = checked.nonnegative("mu", mu), _rate("fpr", fpr)
    return float(ndtr(-float(ndtri(fpr)) - mu))


def _highest(value: Callable[[float], float], low: float, high: float) -> float:
    best = -math.inf
    for _ in range(4):
        points = [low + (high - low) * j / 20 for j in range(21)]
        values = [value(x) for x in points]
        at = max(range(21), key=values.__getitem__)
        best = max(best, values[at])
        low, high = points[max(at - 1, 0)], points[min(at + 1, 20)]
    return best


def _rate(argument: str, value: float) -> float:
    number = checked.finite(argument, value)
    if not 0 <= number <= 1:
        raise InvalidInput(argument, f"is {number}, which is not in [0, 1]", "a rate is a share of all cases")
    return number
