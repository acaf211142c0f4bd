"""δ and ε of a single run, straight from its law, without a grid."""

from __future__ import annotations

import math

import numpy as np

from privet.accounting.laws import Law

__all__ = ["delta_of_one", "epsilon_of_one"]

_ROUNDING = 1e-14
_LEAST = 1e-316
"""What a Q-mass may be that underflowed to 0, atom by atom."""


def delta_of_one(law: Law, epsilon: float, side: int) -> float:
    """δ(ε) = P(L ≥ ε) − e^ε·Q(L ≥ ε), rounded up for side = 1 and down for side = −1."""
    p, q = law.cells(np.array([epsilon]))
    above, below = float(p[1]), float(q[1]) if side > 0 else max(float(q[1]), _LEAST)
    scaled = math.exp(min(epsilon + math.log(below), 700.0)) if below > 0 else 0.0
    # a tail of mass m comes from an exponent of |log m|, whose own rounding error is relative to that
    slack = _ROUNDING * (1 - math.log(max(above, _LEAST))) * (above + scaled)
    exact = law.infinite + above - scaled + side * slack
    if math.isnan(exact):
        return 1.0 if side > 0 else 0.0
    found = min(1.0, max(0.0, exact))
    return max(found, 5e-324) if side > 0 and epsilon < law.support[1] else found


def epsilon_of_one(law: Law, delta: float, side: int) -> float:
    """The least ε with δ(ε) ≤ delta, bracketed by bisection; the outer end for the asked side."""
    if delta_of_one(law, 0.0, side) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_of_one(law, high, side) > delta:
        low, high = high, 2 * high
        if high > 1e15:
            return math.inf if side > 0 else low
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high or high - low <= 1e-13 * high:
            break
        low, high = (middle, high) if delta_of_one(law, middle, side) > delta else (low, middle)
    return high if side > 0 else low
