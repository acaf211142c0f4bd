"""The pure ε of a leaf, unsampled, for a unit; infinite where there is none. Sums are exact and rounded up once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from privet.accounting.canonical import canonical
from privet.accounting.neighbor_distance import span, stretch
from privet.core import Unit
from privet.core import event as events

__all__ = ["amplified", "exact_epsilon", "pure_epsilon", "rounded_up", "sum_up"]

_ULP = 2.0**-52


def pure_epsilon(leaf: events.Leaf, unit: Unit) -> float:
    """ε such that one run is ε-DP for the unit, rounded up.

    >>> from privet.core.unit import Neighbours
    >>> pure_epsilon(events.Laplace(2.0), Unit(neighbours=Neighbours.REPLACE))
    1.0
    """
    exact = exact_epsilon(leaf, unit)
    return math.inf if exact is None else rounded_up(exact)


def exact_epsilon(leaf: events.Leaf, unit: Unit) -> Fraction | None:
    """The same as a fraction: three runs of 1/3 are 1, and not a little more. None where there is no finite ε."""
    rule = _PURE.get(type(leaf))
    return rule(leaf, unit) if rule is not None else None


def rounded_up(exact: Fraction) -> float:
    """The least double that is not below a fraction.

    >>> rounded_up(Fraction(1, 3)) > 1 / 3, rounded_up(Fraction(1, 2))
    (True, 0.5)
    """
    try:
        near = float(exact)
    except OverflowError:
        return math.inf
    return near if near >= exact else math.nextafter(near, math.inf)


def sum_up(amounts: Iterable[tuple[int, Fraction | float]]) -> float:
    """Σ count·ε, rounded up once; infinite where any ε is infinite or no number at all."""
    total = Fraction(0)
    for count, epsilon in amounts:
        if isinstance(epsilon, float) and not math.isfinite(epsilon):
            return math.inf
        total += count * Fraction(epsilon)
    return rounded_up(total)


def amplified(epsilon: float, rate: float) -> float:
    """ln(1 + q·(e^ε − 1)), rounded up: what sampling leaves of ε (Balle, Barthe & Gaboardi 2018, Thms 8 and 9)."""
    if rate == 1 or epsilon in (0, math.inf):
        return epsilon
    if epsilon > 30:  # e^ε alone would overflow, and so would (1 − q)/q; what 1 for 1 − q adds is below e^(−ε)
        log_odds = epsilon + math.log(rate) + 4 * _ULP * (epsilon - math.log(rate))
        sampled = log_odds + math.log1p(math.exp(-log_odds)) if log_odds > 0 else math.log1p(math.exp(log_odds))
    else:
        sampled = math.log1p(rate * math.expm1(epsilon))
    # what underflows to 0 still costs something
    return min(epsilon, math.nextafter(sampled * (1 + 8 * _ULP), math.inf))


def _laplace(leaf: Any, unit: Unit) -> Fraction | None:
    noise = Fraction(leaf.noise_multiplier)
    return Fraction(span(unit)) / noise if noise else None


def _discrete_laplace(leaf: Any, unit: Unit) -> Fraction | None:
    scale = Fraction(leaf.scale)
    return Fraction(span(unit)) * Fraction(leaf.bound) / scale if scale else None


def _steps(leaf: Any, unit: Unit) -> Fraction | None:
    return stretch(leaf, unit) * Fraction(leaf.epsilon)


def _shuffled(leaf: Any, unit: Unit) -> Fraction | None:
    """What each report is by itself: nothing that is done with reports takes that away."""
    inside = [(part.count, exact_epsilon(part.leaf, unit)) for part in canonical(leaf.event).parts]
    known = [count * epsilon for count, epsilon in inside if epsilon is not None]
    return sum(known, Fraction(0)) if len(known) == len(inside) else None


_PURE: dict[type[events.Leaf], Callable[[Any, Unit], Fraction | None]] = {
    events.Laplace: _laplace,
    events.DiscreteLaplace: _discrete_laplace,
    events.Exponential: _steps,
    events.NoisyMax: _steps,
    events.RandomizedResponse: _steps,
    events.Pure: _steps,
    events.Shuffled: _shuffled,
}
