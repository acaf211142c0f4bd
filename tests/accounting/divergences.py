"""Rényi divergences from their definition, and the units that the tests of this room share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.special import logsumexp

from privet.accounting import renyi
from privet.accounting.canonical import CountedEvent
from privet.accounting.conversions import each_log_delta
from privet.accounting.search import Array
from privet.core.event import Leaf, Sampling
from privet.core.unit import Neighbours, Unit

__all__ = [
    "ADD",
    "ORDERS",
    "REPLACE",
    "ZERO",
    "LogDensity",
    "integrated",
    "laplace",
    "mixed",
    "normal",
    "rdp_to_delta",
    "rdp_to_epsilon_classic",
    "summed",
    "value",
]

ADD, ZERO = Unit(), Unit(neighbours=Neighbours.ZERO_OUT)
REPLACE = Unit(neighbours=Neighbours.REPLACE)
ORDERS = (1.05, 1.5, 2.0, 2.5, 3.7, 8.0, 21.0, 40.0)
LogDensity = Callable[[float], float]


def value(leaf: Leaf, unit: Unit, order: float, sampling: Sampling | None = None, count: int = 1) -> float:
    """One value of our curve."""
    return renyi.curve(CountedEvent(leaf, sampling, count), unit, (order,)).values[0]


def integrated(p: LogDensity, q: LogDensity, order: float, low: float, high: float, breaks: list[float]) -> float:
    """D_a(p‖q) from its definition; the integrand is scaled by its own maximum so that nothing overflows."""
    grid = np.linspace(low, high, 4001)
    exponent = [order * p(x) + (1 - order) * q(x) for x in grid]
    top, at = max(exponent), float(grid[int(np.argmax(exponent))])
    ends = sorted({low, high, at, *[b for b in breaks if low < b < high]})
    total = 0.0
    for left, right in pairwise(ends):
        total += quad(lambda x: math.exp(order * p(x) + (1 - order) * q(x) - top), left, right, limit=400, epsabs=0)[0]
    return (math.log(total) + top) / (order - 1)


def summed(p: Array, q: Array, order: float) -> float:
    """D_a of two laws on the same atoms, given by their log-masses."""
    return float(logsumexp(order * p + (1 - order) * q)) / (order - 1)


def normal(mean: float, sigma: float) -> LogDensity:
    """log-density of a normal variable."""
    return lambda x: -((x - mean) ** 2) / (2 * sigma * sigma) - math.log(sigma * math.sqrt(2 * math.pi))


def laplace(mean: float, scale: float) -> LogDensity:
    """log-density of a Laplace variable."""
    return lambda x: -abs(x - mean) / scale - math.log(2 * scale)


def mixed(p: LogDensity, q: LogDensity, rate: float) -> LogDensity:
    """log((1 − q)·Q + q·P)."""
    return lambda x: float(np.logaddexp(math.log(rate) + p(x), math.log1p(-rate) + q(x)))


def rdp_to_epsilon_classic(orders: Sequence[float], values: Sequence[float], delta: float) -> float:
    """The least ε over all orders by the looser conversion of older papers (Mironov 2017, Prop. 3)."""
    return min(r - math.log(delta) / (a - 1) for a, r in zip(orders, values, strict=True))


def rdp_to_delta(orders: Sequence[float], values: Sequence[float], epsilon: float) -> float:
    """The least δ over all orders, by the conversion that the accountant uses."""
    return min(1.0, math.exp(float(np.min(each_log_delta(np.asarray(orders), np.asarray(values), epsilon)))))
