"""Rényi divergences of sampled leaves at whole orders: binomial sums, in logarithms, all orders at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from privet.accounting.search import Array

__all__ = ["MOST", "fixed_size_bound", "interpolated", "poisson_sum"]

MOST = 4096
"""Whole orders above this are left to other bounds: a sum has as many terms as its order."""
_UP = 1 + 1e-10  # the logarithms of the binomials are good to 1e-11 up to order 4096


@dataclass(frozen=True)
class _Terms:
    """For orders a₁, a₂, … the terms k = 2..a₁, then k = 2..a₂, …, end to end."""

    orders: Array
    starts: npt.NDArray[np.int64]
    order: Array
    power: Array
    log_ways: Array

    def log_sums(self, logs: Array) -> Array:
        """log Σ_k e^(logs), one for each order."""
        top = np.maximum.reduceat(logs, self.starts)
        top = np.where(np.isfinite(top), top, 0.0)
        lengths = np.diff(np.append(self.starts, len(logs)))
        with np.errstate(divide="ignore"):  # a sum of nothing is 0, and its logarithm −∞
            log_sums: Array = top + np.log(np.add.reduceat(np.exp(logs - np.repeat(top, lengths)), self.starts))
        return log_sums


@lru_cache(maxsize=32)
def _terms(orders: tuple[int, ...]) -> _Terms:
    lengths = np.array(orders, dtype=np.int64) - 1
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1])).astype(np.int64)
    order = np.repeat(np.array(orders, dtype=np.float64), lengths)
    power = np.concatenate([np.arange(2, a + 1, dtype=np.float64) for a in orders])
    ways = gammaln(order + 1) - gammaln(power + 1) - gammaln(order - power + 1)
    return _Terms(np.array(orders, dtype=np.float64), starts, order, power, ways)


def poisson_sum(orders: tuple[int, ...], rate: float, log_moments: Callable[[Array], Array]) -> Array:
    """D_a((1 − q)Q + qP ‖ Q) = log(Σ_k C(a, k)·(1 − q)^(a−k)·q^k·E_Q[(P/Q)^k])/(a − 1).

    Mironov, Talwar & Zhang 2019, §3.3. The other direction is no larger for pairs that a reflection exchanges (their
    Thm 5). The binomial weights sum to 1 and the moments of order 0 and 1 are 1, so only (moment − 1) is added up, from
    k = 2: small rates lose no digits.
    """
    terms = _terms(orders)
    moments = log_moments(terms.power)
    with np.errstate(divide="ignore"):
        excess = moments + np.log(-np.expm1(-moments))
    weights = terms.log_ways + terms.power * math.log(rate) + (terms.order - terms.power) * math.log1p(-rate)
    return np.asarray(np.logaddexp(0.0, terms.log_sums(weights + excess)) / (terms.orders - 1) * _UP)


def fixed_size_bound(orders: tuple[int, ...], rate: float, log_moments: Callable[[Array], Array]) -> Array:
    """Sampling without replacement, replace-one neighbors: Wang, Balle & Kasiviswanathan 2019, Thm 9."""
    terms = _terms(orders)
    moments = log_moments(terms.power)
    with np.errstate(divide="ignore"):
        factor = math.log(2) + moments
        second = math.log(4) + moments + np.log(-np.expm1(-moments))
    factor = np.where(terms.power == 2, np.minimum(factor, second), factor)
    sums = terms.log_sums(terms.log_ways + terms.power * math.log(rate) + factor)
    return np.asarray(np.logaddexp(0.0, sums) / (terms.orders - 1) * _UP)


def interpolated(orders: Array, at_whole: Callable[[tuple[int, ...]], Array]) -> Array:
    """A bound at any order from bounds at the whole orders on either side, infinite above the largest of them.

    (a − 1)·D_a = log E_P[(P/Q)^(a−1)] is convex in a and 0 at a = 1, so it lies below its chords.
    """
    bounds = np.full_like(orders, math.inf)
    within = orders <= MOST
    if not np.any(within):
        return bounds
    low = np.maximum(np.floor(orders[within]).astype(np.int64), 1)
    high = np.maximum(np.ceil(orders[within]).astype(np.int64), 2)
    whole = tuple(int(a) for a in np.union1d(low[low >= 2], high))
    places = np.array((1, *whole), dtype=np.float64)
    heights = np.concatenate(([0.0], (np.array(whole) - 1) * at_whole(whole)))
    bounds[within] = np.interp(orders[within], places, heights) / (orders[within] - 1)
    return bounds
