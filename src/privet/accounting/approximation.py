"""Approximations that are no guarantee, under names that say so; nothing here may enter a budget or a report's ε."""

from __future__ import annotations

import math

from privet.accounting.conversions import gdp_to_epsilon
from privet.core import checked

__all__ = ["gdp_clt_not_a_guarantee"]


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
