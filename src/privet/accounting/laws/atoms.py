"""Losses with finitely many values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privet.accounting.laws.law import Array

__all__ = ["Atoms", "block", "randomized_response"]


@dataclass(frozen=True, eq=False)
class Atoms:
    """Atoms at given losses with their P- and Q-masses; `infinite` is the P-mass at +∞, `minus` the Q-mass at −∞.

    `unbounded` says that atoms of masses below the smallest double go on for ever, so that no ε holds at δ = 0.
    """

    losses: Array
    p: Array
    q: Array
    infinite: float = 0.0
    minus: float = 0.0
    unbounded: bool = False

    @property
    def support(self) -> tuple[float, float]:
        """From the least to the largest atom, or the whole line."""
        if self.unbounded:
            return -math.inf, math.inf
        return float(self.losses.min()), float(self.losses.max())

    def cells(self, bounds: Array) -> tuple[Array, Array]:
        """Each atom falls into the cell whose left end it has reached."""
        where = np.searchsorted(bounds, self.losses, side="right")
        size = len(bounds) + 1
        p = np.bincount(where, weights=self.p, minlength=size).astype(np.float64)
        q = np.bincount(where, weights=self.q, minlength=size).astype(np.float64)
        q[0] += self.minus
        return p, q


def randomized_response(epsilon: float, categories: int = 2) -> Atoms:
    """K-ary randomized response for two different true answers; with K = 2 it dominates every ε-DP mechanism.

    Kairouz, Oh & Viswanath 2015, Thm 3.1.
    """
    others = categories - 1
    keep = 1 / (1 + others * math.exp(-epsilon))
    flip = math.exp(-epsilon) / (1 + others * math.exp(-epsilon))
    rest = (categories - 2) * flip
    return Atoms(np.array([epsilon, 0.0, -epsilon]), np.array([keep, rest, flip]), np.array([flip, rest, keep]))


def block(epsilon: float, delta: float) -> Atoms:
    """The pair that dominates every (ε, δ)-DP mechanism: randomized response, revealed outright with probability δ."""
    two = randomized_response(epsilon)
    return Atoms(two.losses, two.p * (1 - delta), two.q * (1 - delta), infinite=delta, minus=delta)
