"""From one way of stating a guarantee to another. Every answer is an upper bound, rounded outward."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privet.accounting.analytic_gaussian import (
    analytic_gaussian_sigma,
    classical_gaussian_sigma,
    gdp_to_delta,
    gdp_to_epsilon,
)
from privet.accounting.certified_bounds import QUIET
from privet.accounting.pure import sum_up
from privet.accounting.search import Array, least
from privet.core import InvalidInput, checked

__all__ = [
    "analytic_gaussian_sigma",
    "classical_gaussian_sigma",
    "each_epsilon",
    "each_log_delta",
    "gdp_to_delta",
    "gdp_to_epsilon",
    "group_privacy",
    "rdp_to_epsilon",
    "zcdp_to_delta",
    "zcdp_to_epsilon",
]

_UP = 1 + 1e-14


def rdp_to_epsilon(orders: Sequence[float], values: Sequence[float], delta: float) -> float:
    """The least ε over all orders, in the tight form (Canonne, Kamath & Steinke 2020, Prop. 12; Balle et al. 2020).

    ε = r + log((a − 1)/a) − (log δ + log a)/(a − 1); at order ∞ the curve is the pure ε itself.

    >>> round(rdp_to_epsilon([2.0, 8.0, 32.0], [0.04, 0.16, 0.64], 1e-5), 3)
    0.868
    """
    a, r = _curve(orders, values)
    return float(np.min(each_epsilon(a, r, checked.share("delta", delta)), initial=math.inf))


def each_epsilon(orders: Array, values: Array, delta: float) -> Array:
    """The tight conversion at every order, cut at 0 and rounded up."""
    finite = np.isfinite(orders)
    if delta == 0:
        return np.where(finite, math.inf, values)
    a = np.where(finite, orders, 2.0)
    epsilons = values + (np.log(a - 1) - np.log(a)) - (math.log(delta) + np.log(a)) / (a - 1)
    rounding = 1e-14 * (1 - math.log(delta)) / (a - 1) + 1e-14
    return np.where(finite, np.maximum(0.0, epsilons * _UP + rounding), values)


def each_log_delta(orders: Array, values: Array, epsilon: float) -> Array:
    """log δ at every order, rounded up and not cut at 0; at order ∞ nothing is left once ε covers the pure loss."""
    finite = np.isfinite(orders)
    a = np.where(finite, orders, 2.0)
    loss = np.where(np.isfinite(values), values, 0.0)
    log_deltas = (a - 1) * (loss - epsilon + (np.log(a - 1) - np.log(a))) - np.log(a)
    rounding = 1e-14 * ((a - 1) * (np.abs(loss) + epsilon) + 1)
    log_deltas = np.where(np.isfinite(values), log_deltas + rounding, math.inf)
    return np.where(finite, log_deltas, np.where(values <= epsilon, -math.inf, math.inf))


def zcdp_to_epsilon(rho: float, delta: float) -> float:
    """ρ-zCDP is (a, ρ·a)-RDP at every order at once: the tight conversion, minimized over all of them.

    >>> round(zcdp_to_epsilon(0.5, 1e-5), 3)
    4.728
    """
    rho, delta = _rho(rho), checked.share("delta", delta)
    if rho == 0:
        return 0.0
    if delta == 0 or math.isinf(rho):
        return math.inf
    log_delta = math.log(delta)

    def at(x: Array) -> Array:
        above = np.exp(x)  # a − 1
        with np.errstate(**QUIET):  # an infinite divergence is no bound, and is passed over
            return each_epsilon(1 + above, rho * (1 + above), delta)

    classic = (rho + 2 * math.sqrt(-rho * log_delta)) * _UP  # Bun & Steinke 2016, Prop. 1.3
    return min(classic, least(at, 0.5 * (math.log(-log_delta) - math.log(rho)), 8.0))


def zcdp_to_delta(rho: float, epsilon: float) -> float:
    """The least δ that ρ-zCDP proves for ε, over all orders (Canonne, Kamath & Steinke 2020, Prop. 12)."""
    rho, epsilon = _rho(rho), checked.nonnegative("epsilon", epsilon)
    if rho == 0:
        return 0.0
    if math.isinf(2 * rho):
        return 1.0

    def at(x: Array) -> Array:
        above = np.exp(x)
        with np.errstate(**QUIET):
            return each_log_delta(1 + above, rho * (1 + above), epsilon)

    # (a − 1)(aρ − ε) is least at the first term; where ε is no help, log a against a²ρ at the second
    above = max(epsilon - rho, 0.0) / (2 * rho) + 1 / math.sqrt(2 * rho)
    return math.exp(min(0.0, least(at, math.log(above), 8.0)))


def group_privacy(epsilon: float, delta: float, k: int) -> tuple[float, float]:
    """What (ε, δ) for one person means for k together: (kε, δ·(e^(kε) − 1)/(e^ε − 1)), the δ cut at 1.

    One walks from one data set to the other in k steps, and each δ grows by the e^ε of the steps before it
    (Vadhan 2017, Lemma 2.2).

    >>> group_privacy(1.0, 0.0, 3)
    (3.0, 0.0)
    """
    epsilon = checked.nonnegative("epsilon", epsilon)
    checked.count("k", k)
    if not 0 <= delta <= 1:
        raise InvalidInput("delta", f"is {delta}, which is not in [0, 1]")
    together = sum_up(((k, epsilon),))
    if k == 1 or delta == 0:
        return together, delta
    # the sum 1 + e^ε + … + e^((k−1)ε), as a logarithm
    ratio = math.log(k) if epsilon == 0 else _log_expm1(k * epsilon) - _log_expm1(epsilon)
    log_delta = math.log(delta) + max(ratio, math.log(k))
    return together, min(1.0, math.exp(min(log_delta, 0.0)) * (1 + 1e-12))


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x))


def _curve(orders: Sequence[float], values: Sequence[float]) -> tuple[Array, Array]:
    a, r = np.asarray(orders, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if a.shape != r.shape or a.ndim != 1:
        raise InvalidInput("values", f"has shape {r.shape}, where one value for each of {a.shape} orders is wanted")
    if not np.all(a > 1):
        raise InvalidInput("orders", "must all be above 1")
    if not np.all(r >= 0):
        raise InvalidInput("values", "must all be at least 0")
    return a, r


def _rho(rho: float) -> float:
    return rho if rho == math.inf else checked.nonnegative("rho", rho)
