"""The Gaussian accountant (Dong, Roth & Su 2022): exact, and only for what is nothing but Gaussian noise.

Beside it stands an approximation that is no guarantee, as its name says: it may not enter a budget or a report's ε.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from privet.accounting.accountant import Accountant
from privet.accounting.canonical import CountedEvent
from privet.accounting.conversions import gdp_to_delta, gdp_to_epsilon
from privet.accounting.neighbor_distance import gaussian_mu
from privet.accounting.table import require_all
from privet.core import Unit, checked

__all__ = ["delta", "epsilon", "gdp_clt_not_a_guarantee", "mu"]


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


def gdp_clt_not_a_guarantee(sample_rate: float, noise_multiplier: float, steps: int, delta: float) -> float:
    """ε as the central limit theorem suggests it (Bu, Dong, Long & Su 2020): often close, and *below* the truth.

    Many Poisson-sampled Gaussian steps look like one μ-GDP release with μ = q·√(T·(e^(1/σ²) − 1)). The limit is never
    reached: with q = 0.01, σ = 0.6, T = 100 and δ = 1e-6 it says 1.71 where the truth is 4.75. Kept for comparison with
    papers that quote it.

    >>> round(gdp_clt_not_a_guarantee(0.01, 0.6, 100, 1e-6), 2)
    1.71
    """
    rate = checked.probability("sample_rate", sample_rate)
    precision = 1 / checked.positive("noise_multiplier", noise_multiplier) ** 2
    grown = math.expm1(precision) if precision < 700 else math.inf
    return gdp_to_epsilon(rate * math.sqrt(checked.count("steps", steps) * grown), delta)
