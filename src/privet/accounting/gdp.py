"""The Gaussian accountant (Dong, Roth & Su 2022): exact, and only for what is nothing but Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privet.accounting.accountant import Accountant
from privet.accounting.canonical import CountedEvent
from privet.accounting.conversions import gdp_to_delta, gdp_to_epsilon
from privet.accounting.shift import span
from privet.accounting.table import require
from privet.core.event import Gaussian
from privet.core.unit import Unit

__all__ = ["delta", "epsilon", "mu"]


def epsilon(parts: Sequence[CountedEvent], delta: float, unit: Unit) -> float:
    """ε at δ, exact but for rounding, which is outward."""
    return gdp_to_epsilon(mu(parts, unit), delta)


def delta(parts: Sequence[CountedEvent], epsilon: float, unit: Unit) -> float:
    """δ at ε, exact but for rounding, which is outward."""
    return gdp_to_delta(mu(parts, unit), epsilon)


def mu(parts: Sequence[CountedEvent], unit: Unit) -> float:
    """√(Σ count·(shift/σ)²): Gaussian releases together are one Gaussian release (Dong, Roth & Su 2022, Cor. 3.3).

    >>> mu([CountedEvent(Gaussian(2.0), None, 16)], Unit())
    2.0
    """
    parts_of_mu: list[float] = []
    for part in parts:
        require(part, unit, Accountant.GDP)
        noise = part.leaf.noise_multiplier if isinstance(part.leaf, Gaussian) else 0.0
        one = span(unit) / noise if noise > 0 else math.inf
        parts_of_mu.append(math.sqrt(part.count) * one)
    return math.hypot(*parts_of_mu)  # squares nothing that could underflow
