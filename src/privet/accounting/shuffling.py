"""Privacy amplification by shuffling: what a crowd of honest reports adds to what each of them promises by itself.

The price of a `Shuffled` event is read off the law in `laws/shuffled.py`, which every accountant here uses. The bounds
from the literature are beside it, for comparison and as checks: each is valid, and none of them is below that price.
"""

from __future__ import annotations

import math

import numpy as np

from privet.accounting.canonical import canonical
from privet.accounting.laws import Atoms, crowd, law_epsilon
from privet.accounting.pure import pure_epsilon
from privet.accounting.search import Array, falling_root
from privet.core import Neighbours, RandomizedResponse, Shuffled, Unit, checked

__all__ = [
    "attains",
    "blanket_epsilon",
    "clones_closed_form",
    "clones_epsilon",
    "largest_local_epsilon",
    "law_of",
    "local_of",
    "shuffled_curve",
    "shuffled_epsilon",
]

_ONE = Unit(neighbours=Neighbours.REPLACE)
_LEAST = 1e-250
_CUTS = (1e-20, 1e-40, 1e-80, 1e-160)
"""A few, so that one law serves many δ."""
_FARTHEST, _STEP = 30.0, 1e-3
_LEAST_LOCAL = 1e-12
"""Below this ε₀ rounding is larger than what a crowd could hide."""
_SLACK = 1e-6
"""More than rounding can add to the logarithm of a δ."""


def local_of(leaf: Shuffled) -> tuple[float, int]:
    """ε₀ of one report, and K if it is one K-ary randomized response; 2, which holds for everything, if it is not."""
    alone = canonical(leaf.event).parts[0].leaf if attains(leaf) else None
    return pure_epsilon(leaf, _ONE), alone.categories if isinstance(alone, RandomizedResponse) else 2


def attains(leaf: Shuffled) -> bool:
    """Whether each report is known to be one randomized response, so that the price has a lower end too."""
    parts = canonical(leaf.event).parts
    return len(parts) == 1 and parts[0].count == 1 and isinstance(parts[0].leaf, RandomizedResponse)


def law_of(leaf: Shuffled, tail: float) -> Atoms:
    """The loss of one shuffled batch, for one replaced answer; masses below `tail` may be cut."""
    cut = next((candidate for candidate in _CUTS if candidate <= tail), _LEAST)
    return crowd(*local_of(leaf), leaf.reports, cut)


def shuffled_epsilon(leaf: Shuffled, delta: float) -> float:
    """ε of one batch at δ, for one replaced answer; never above ε₀."""
    alone = pure_epsilon(leaf, _ONE)
    return alone if delta <= 0 else min(alone, law_epsilon(law_of(leaf, delta * 1e-5), delta, 1))


def largest_local_epsilon(reports: int, *, epsilon: float, delta: float, categories: int = 2) -> float:
    """The largest ε₀ of each report, to 0.1 %, whose batch costs at most (ε, δ); ε itself at least.

    >>> round(largest_local_epsilon(10**4, epsilon=1.0, delta=1e-6), 1)
    5.5
    """
    low, high = checked.positive("epsilon", epsilon), max(_FARTHEST, epsilon)
    checked.share("delta", delta)
    while high - low > _STEP * low:
        middle = (low + high) / 2
        fits = shuffled_epsilon(Shuffled(RandomizedResponse(middle, categories), reports), delta) <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    return low


def shuffled_curve(leaf: Shuffled, orders: Array) -> Array:
    """D_a of one batch at each finite order: Σ p·e^((a − 1)·loss) over the law that dominates it."""
    law = law_of(leaf, _LEAST)
    logs = np.log(law.p)
    divergences = []
    for order in orders.tolist():
        powers = logs + (order - 1) * law.losses
        most = float(powers.max())
        divergences.append((most + math.log(float(np.exp(powers - most).sum()))) / (order - 1))
    return np.asarray(np.maximum(divergences, 0.0) * (1 + 1e-12), dtype=np.float64)


def clones_closed_form(epsilon: float, reports: int, delta: float) -> float:
    """Feldman, McMillan & Talwar 2021, Thm 3.1: closed form for any ε₀-DP randomizer; ε₀ where its condition fails.

    >>> round(clones_closed_form(4.0, 10**5, 1e-6), 4)
    0.5378
    """
    _checked(epsilon, reports, delta)
    if delta == 0 or epsilon > 700 or epsilon > math.log(reports / (16 * math.log(4 / delta))):
        return epsilon
    growth = math.exp(epsilon)
    wide = 8 * math.sqrt(growth * math.log(4 / delta) / reports) + 8 * growth / reports
    share = -math.expm1(-epsilon) / (1 + math.exp(-epsilon - math.log1p(wide)))
    return min(epsilon, math.log1p(share * wide) * (1 + 1e-12))


def clones_epsilon(epsilon: float, reports: int, delta: float) -> float:
    """Feldman, McMillan & Talwar 2021, numeric: each other report is a clone with the chance e^−ε₀.

    >>> round(clones_epsilon(4.0, 10**5, 1e-6), 4)
    0.1698
    """
    _checked(epsilon, reports, delta)
    if delta == 0 or epsilon == 0:
        return epsilon
    law = crowd(epsilon, 2, reports, delta * 1e-5, clones=math.exp(-epsilon))
    return min(epsilon, law_epsilon(law, delta, 1))


def blanket_epsilon(epsilon: float, reports: int, delta: float, *, categories: int = 2) -> float:
    """Balle, Bell, Gascón & Nissim 2019: the blanket by Hoeffding's or Bennett's inequality, whichever says less.

    For K-ary randomized response, or for any ε₀-DP randomizer with two categories (see `laws/shuffled.py`).

    >>> round(blanket_epsilon(1.0, 10**5, 1e-6), 4)
    0.0149
    """
    _checked(epsilon, reports, delta)
    checked.count("categories", categories, 2)
    if delta == 0 or not _LEAST_LOCAL <= epsilon <= 700:
        return epsilon
    growth = math.exp(epsilon)
    gamma = categories / (growth + categories - 1)

    def excess(found: float) -> float:
        return min(rule(growth, categories, gamma, reports, found) for rule in _TAILS) - math.log(delta) + _SLACK

    nearly = math.nextafter(epsilon, 0.0)
    return epsilon if excess(nearly) > 0 else falling_root(excess, epsilon * 1e-9, nearly, tolerance=1e-9)


def _hoeffding(growth: float, categories: int, gamma: float, reports: int, amplified: float) -> float:
    """log δ from E[(Σ L)₊] ≤ ∫ exp(−2(t + m·a)²/(m·w²)) dt ≤ w²/(4a)·exp(−2m·a²/w²), over m ~ Bin(n, γ).

    L = γ·Z has the mean −a = 1 − e^ε and a range of w = γ(p − 1)(1 + e^ε).
    """
    drift, width = math.expm1(amplified), gamma * (growth - 1) * (1 + math.exp(amplified))
    exponent = reports * math.log1p(gamma * math.expm1(-2 * (drift / width) ** 2))
    return math.log(width * width / (4 * drift * gamma * reports)) + exponent


def _bennett(growth: float, categories: int, gamma: float, reports: int, amplified: float) -> float:
    """The same by Bennett's inequality: Σ L + m·a ≥ s with a chance of exp(−m·(c/b²)·h(s·b/(m·c))) at most.

    b is the largest L + a, c its variance, h(u) = (1 + u)·log(1 + u) − u; the exponent is convex in s, and its slope
    at s = m·a is log(1 + a·b/c)/b.
    """
    drift, e = math.expm1(amplified), math.exp(amplified)
    second = ((growth - e) ** 2 + (growth * e - 1) ** 2 + (categories - 2) * drift**2) / categories
    largest, variance = gamma * (growth - e) + drift, gamma * gamma * second - drift * drift
    ratio = drift * largest / variance
    exponent = variance / largest**2 * ((1 + ratio) * math.log1p(ratio) - ratio)
    slope = math.log1p(ratio) / largest
    return -math.log(gamma * reports * slope) + reports * math.log1p(gamma * math.expm1(-exponent))


_TAILS = (_hoeffding, _bennett)


def _checked(epsilon: float, reports: int, delta: float) -> None:
    checked.nonnegative("epsilon", epsilon)
    checked.count("reports", reports)
    checked.share("delta", delta)
