"""Means, variances and covariances from sums that one row moves by 1 in all.

A number v between its bounds is u = (v - low)/(high - low) in [0, 1]. One does not release how many rows there are, Σu
and Σu², which one row moves by up to 3 together, but the sums of Bernstein's polynomials, which are never negative and
add up to 1 for every row:

    mean         1 - u,  u
    variance     (1 - u)²,  2u(1 - u),  u²
    covariance   (1 - u)(1 - w),  (1 - u)w,  u(1 - w),  uw

So a row that comes or goes moves all of them together by 1 in L1, as it moves a histogram, and each gets noise for the
*whole* ε. Everything wanted is a quotient of linear combinations of them: rows = Σ of all, Σu = A₁/2 + A₂, and so on.
For a mean the noise has half the variance of two releases with ε/2 each.

In whole numbers it is exact: with U = round(u·m), the products of U and m - U are whole and add up to m or m².

*Intervals.* A quotient Σ rᵢAᵢ / Σ Aᵢ is linear-fractional, so that over a box of Aᵢ ≥ 0 its extremes lie at corners. If
every Aᵢ lies within its own interval (confidence 1 - miss/n each: the union bound), a mean lies between the extremes.
A variance is E(u - c)² - (Eu - c)² for every c; with c the estimated mean the second term is small of second order.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["MomentEstimate", "covariance", "mean", "variance"]


@dataclass(frozen=True)
class MomentEstimate:
    """A value and an interval, on the scale of u."""

    value: float
    low: float
    high: float


def mean(sums: Sequence[float], width: float) -> MomentEstimate:
    """The mean of u from the noisy sums of 1 - u and u, each off by at most `width`."""
    box = _Box.around(sums, width)
    low, high = box.extremes((0.0, 1.0))
    return MomentEstimate(box.quotient((0.0, 1.0), 0.5), low, high)


def variance(sums: Sequence[float], width: float) -> MomentEstimate:
    """The variance of u from the noisy sums of (1 - u)², 2u(1 - u) and u²."""
    box = _Box.around(sums, width)
    center = box.quotient((0.0, 0.5, 1.0), 0.5)
    second, first = (center**2, center**2 - center, (1 - center) ** 2), (-center, 0.5 - center, 1 - center)
    value = box.quotient(second, 0.125) - box.quotient(first, 0.0) ** 2
    (least, most), shift = box.extremes(second), box.extremes(first)
    low, high = least - max(shift[0] ** 2, shift[1] ** 2), most - _least_square(shift)
    return MomentEstimate(_within(value, 0.0, 0.25), _within(low, 0.0, 0.25), _within(high, 0.0, 0.25))


def covariance(sums: Sequence[float], width: float) -> MomentEstimate:
    """The covariance of u and w from the noisy sums of (1 - u)(1 - w), (1 - u)w, u(1 - w) and uw."""
    box = _Box.around(sums, width)
    c, d = box.quotient((0.0, 0.0, 1.0, 1.0), 0.5), box.quotient((0.0, 1.0, 0.0, 1.0), 0.5)
    product = (c * d, -c * (1 - d), -(1 - c) * d, (1 - c) * (1 - d))
    first, second = (-c, -c, 1 - c, 1 - c), (-d, 1 - d, -d, 1 - d)
    value = box.quotient(product, 0.0) - box.quotient(first, 0.0) * box.quotient(second, 0.0)
    (least, most), shifts = box.extremes(product), (box.extremes(first), box.extremes(second))
    corners = [one * other for one in shifts[0] for other in shifts[1]]
    low, high = least - max(corners), most - min(corners)
    return MomentEstimate(_within(value, -0.25, 0.25), _within(low, -0.25, 0.25), _within(high, -0.25, 0.25))


@dataclass(frozen=True)
class _Box:
    """Sums that cannot be negative, and how far from them the true ones may be."""

    sums: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]

    @staticmethod
    def around(sums: Sequence[float], width: float) -> _Box:
        held = tuple(max(float(noisy), 0.0) for noisy in sums)
        lows = tuple(max(float(noisy) - width, 0.0) for noisy in sums)
        # From 0 up, where noise took a sum below 0: a wider box holds the true sums no less often.
        return _Box(held, lows, tuple(noisy + width for noisy in held))

    def quotient(self, weights: Sequence[float], usual: float) -> float:
        """Σ rᵢAᵢ / Σ Aᵢ of the noisy sums; `usual` where nothing is left of them."""
        whole = sum(self.sums)
        return sum(r * a for r, a in zip(weights, self.sums, strict=True)) / whole if whole > 0 else usual

    def extremes(self, weights: Sequence[float]) -> tuple[float, float]:
        """The least and the largest quotient over the box."""
        quotients = []
        for corner in itertools.product(*zip(self.lows, self.highs, strict=True)):
            whole = sum(corner)
            if whole <= 0:  # there may be no rows at all
                return min(weights), max(weights)
            quotients.append(sum(r * a for r, a in zip(weights, corner, strict=True)) / whole)
        return min(quotients), max(quotients)


def _least_square(ends: tuple[float, float]) -> float:
    return 0.0 if ends[0] <= 0 <= ends[1] else min(ends[0] ** 2, ends[1] ** 2)


def _within(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
