"""Rényi bounds for a mechanism whose likeliest outcome is all but certain: Papernot et al. 2017 and 2018.

Both are for one direction, D_a(M(D)‖M(D')), where D has an outcome that M(D) misses with probability at most q. Where a
condition does not hold the bound is infinite, and the data-independent one is all that is left.
"""

from __future__ import annotations

import math

import numpy as np

from privet.pate.tails import Reals

__all__ = ["theorem_3", "theorem_6"]

_UP, _TINY = 1 + 1e-9, 1e-14
"""More than rounding can take away, of large bounds and of small ones."""


def theorem_6(log_q: Reals, rho: float, order: float) -> Reals:
    """For a mechanism with D_m ≤ ρ·m at every order m (Papernot et al. 2018, Theorem 6; GNMax has ρ = 1/σ²).

    The orders are those of Proposition 10: μ₂ = √(log(1/q)/ρ) and μ₁ = μ₂ + 1, with ε₁ = ρμ₁ and ε₂ = ρμ₂. Outcomes
    other than the likeliest contribute at most q·B^(a-1) with B = e^ε₁/q^(1/(μ₁-1)) (Hölder), and the likeliest one at
    most (1-q)·A^(a-1) with A = (1-q)/(1 - (q·e^ε₂)^(1-1/μ₂)) (probability preservation). Conditions: 1 < μ₂, a ≤ μ₁,
    q·e^ε₂ < 1, and q ≤ e^((μ₂-1)ε₂)/(μ₁/(μ₁-1)·μ₂/(μ₂-1))^μ₂, below which the sum rises with q, so that an upper
    bound on q will do.

    >>> theorem_6(np.array([-20.0, -1.0]), 1 / 40.0**2, 8.0).tolist()[1]
    inf
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mu2 = np.sqrt(-log_q / rho)
        mu1 = mu2 + 1
        e1, e2 = rho * mu1, rho * mu2
        limit = (mu2 - 1) * e2 - mu2 * (np.log(mu1 / (mu1 - 1)) + np.log(mu2 / (mu2 - 1)))
        holds = (mu2 > 1) & (order <= mu1) & (log_q + e2 < 0) & (log_q <= limit)
        stays = _log1mexp(log_q)
        log_a = stays - _log1mexp((log_q + e2) * (1 - 1 / mu2))
        log_b = e1 - log_q / (mu1 - 1)
        total = np.logaddexp(stays + (order - 1) * log_a, log_q + (order - 1) * log_b)
        bound = np.where(np.isneginf(log_q), 0.0, np.where(holds, total / (order - 1), math.inf))
    return np.maximum(bound * _UP + _TINY, 0.0)


def theorem_3(log_q: Reals, epsilon: float, order: float) -> Reals:
    """For an ε-DP mechanism (Papernot et al. 2017, Theorem 3; LNMax has ε = 2/scale).

    The likeliest outcome contributes at most (1-q)·((1-q)/(1-q·e^ε))^(a-1) and the others q·e^(ε(a-1)). Condition:
    q ≤ 1/(e^ε + 1), below which the sum rises with q.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        holds = log_q <= -np.logaddexp(epsilon, 0.0)
        stays = _log1mexp(log_q)
        top = stays + (order - 1) * (stays - _log1mexp(log_q + epsilon))
        total = np.logaddexp(top, log_q + (order - 1) * epsilon)
        bound = np.where(holds, total / (order - 1), math.inf)
    return np.maximum(bound * _UP + _TINY, 0.0)


def _log1mexp(x: Reals) -> Reals:
    """log(1 - e^x) for x < 0."""
    return np.asarray(np.where(x < -1, np.log1p(-np.exp(x)), np.log(-np.expm1(x))))
