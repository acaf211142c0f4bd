"""The pure ε of one run of a leaf, unsampled, for a unit; infinite where there is none."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from privet.accounting.shift import span, stretch
from privet.core.event import (
    DiscreteLaplace,
    Exponential,
    Laplace,
    Leaf,
    NoisyMax,
    Pure,
    RandomizedResponse,
)
from privet.core.unit import Unit

__all__ = ["amplified", "pure_epsilon"]


def pure_epsilon(leaf: Leaf, unit: Unit) -> float:
    """ε such that one run is ε-DP for the unit.

    >>> from privet.core.unit import Neighbours
    >>> pure_epsilon(Laplace(2.0), Unit()), pure_epsilon(Laplace(2.0), Unit(neighbours=Neighbours.REPLACE))
    (0.5, 1.0)
    """
    rule = _PURE.get(type(leaf))
    return rule(leaf, unit) if rule is not None else math.inf


def amplified(epsilon: float, rate: float) -> float:
    """ln(1 + q·(e^ε − 1)): what sampling leaves of ε (Balle, Barthe & Gaboardi 2018, Thms 8 and 9)."""
    if rate == 1 or epsilon == math.inf:
        return epsilon
    if epsilon > 30:  # e^ε alone would overflow; (1 − q)/q·e^(−ε) is what it leaves out
        return epsilon + math.log(rate) + math.log1p((1 - rate) / rate * math.exp(-epsilon))
    return math.log1p(rate * math.expm1(epsilon))


def _laplace(leaf: Any, unit: Unit) -> float:
    return span(unit) / float(leaf.noise_multiplier)


def _discrete_laplace(leaf: Any, unit: Unit) -> float:
    return span(unit) * float(leaf.bound) / float(leaf.scale)


def _steps(leaf: Any, unit: Unit) -> float:
    return stretch(leaf, unit) * float(leaf.epsilon)


_PURE: dict[type[Leaf], Callable[[Any, Unit], float]] = {
    Laplace: _laplace,
    DiscreteLaplace: _discrete_laplace,
    Exponential: _steps,
    NoisyMax: _steps,
    RandomizedResponse: _steps,
    Pure: _steps,
}
