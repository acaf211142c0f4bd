"""The Gaussian accountant (Dong, Roth & Su 2022): exact, and only for what is nothing but Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privet.accounting.accountant import Accountant
from privet.accounting.canonical import CountedEvent
from privet.accounting.conversions import gdp_to_delta, gdp_to_epsilon
from privet.accounting.neighbor_distance import gaussian_mu
from privet.accounting.table import require_all
from privet.core.unit import Unit

__all__ = ["delta", "epsilon", "mu"]


def epsilon(parts: Sequence[CountedEvent], delta: float, unit: Unit) -> float:
    """Return ε at δ, exact but for rounding, which is outward.

    Args:
        parts: The canonical parts of an event.
        delta: The δ.
        unit: Whose data is protected.

    Raises:
        NotProven: No theorem covers a part for the unit.
    """
    return gdp_to_epsilon(mu(parts, unit), delta)


def delta(parts: Sequence[CountedEvent], epsilon: float, unit: Unit) -> float:
    """Return δ at ε, exact but for rounding, which is outward.

    Args:
        parts: The canonical parts of an event.
        epsilon: The ε.
        unit: Whose data is protected.

    Raises:
        NotProven: No theorem covers a part for the unit.
    """
    return gdp_to_delta(mu(parts, unit), epsilon)


def mu(parts: Sequence[CountedEvent], unit: Unit) -> float:
    """√(Σ count·(shift/σ)²): Gaussian releases together are one Gaussian release (Dong, Roth & Su 2022, Cor. 3.3).

    >>> from privet.core.event import Gaussian
    >>> mu([CountedEvent(Gaussian(2.0), None, 16)], Unit())
    2.0
    """
    require_all(parts, unit, Accountant.GDP)  # so that every leaf is Gaussian
    # squares nothing that could underflow
    return math.hypot(*(math.sqrt(part.count) * gaussian_mu(part.leaf, unit) for part in parts))
