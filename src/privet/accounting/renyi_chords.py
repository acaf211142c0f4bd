"""Rényi divergences of a sampled Gaussian at any real order, from above, by chords.

Let w = P/Q be the likelihood ratio of N(s, 1) against N(0, 1) and r = 1 − q + q·w. What is wanted is E_Q[f(r)] for a
convex f with f(1) = f′(1) = 0. On a cell of w the chord lies above f, and its mean needs only the cell's mass under Q
and E_Q[w; cell], which is its mass under P: so the sum over cells is a bound, off by the square of the cell's width.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from privet.accounting.laws.law import normal_cells
from privet.accounting.search import Array

__all__ = ["fixed_size_chords", "poisson_chords"]

_CELLS = 1024
_REACH = 9.0
_LARGEST = 20.0  # of order × shift, so that no power overflows
_LEAST_SHIFT = 1e-6
_ULP = 2.0**-52


def poisson_chords(orders: Array, rate: float, shift: float) -> Array:
    """D_a((1 − q)Q + qP ‖ Q), with f(r) = r^a − 1 − a(r − 1); infinite where the order is out of reach.

    The other direction is no larger (Mironov, Talwar & Zhang 2019, Thm 5).
    """
    return _divergence(orders, rate, shift, symmetric=False)


def fixed_size_chords(orders: Array, rate: float, shift: float) -> Array:
    """The symmetric pair whose profile is q·δ(log(1 + (e^ε − 1)/q)) for ε ≥ 0, both directions alike.

    Balle, Barthe & Gaboardi 2018, Thm 9 bounds every hockey-stick divergence of sampling without replacement by that
    profile for ε ≥ 0, and by symmetry for ε < 0. Rényi divergences are mixtures of hockey-stick divergences:
    E_Q[(P/Q)^a] = 1 + a(a − 1)·∫₀^∞ (e^((a−1)ε)·H(P‖Q) + e^(−aε)·H(Q‖P)) dε, which for this profile is
    1 + E_Q[f(r); r > 1] with f(r) = (r^a − 1 − a(r − 1)) + (r^(1−a) − 1 + (a − 1)(r − 1)).
    """
    return _divergence(orders, rate, shift, symmetric=True)


def _divergence(orders: Array, rate: float, shift: float, *, symmetric: bool) -> Array:
    divergences = np.full_like(orders, math.inf)
    within = orders * shift <= _LARGEST
    if not np.any(within) or not _LEAST_SHIFT <= shift <= _LARGEST / 2:
        return divergences
    a = orders[within][:, None]
    end = max(float(a.max()), 2.0) * shift + _REACH
    z = np.linspace(shift / 2 if symmetric else -_REACH, end, _CELLS + 1)
    excess = np.expm1(z * shift - shift * shift / 2)  # w − 1
    excess[0] = 0.0 if symmetric else excess[0]
    mass, moved = normal_cells(z)[1:-1], normal_cells(z - shift)[1:-1]
    if not symmetric:  # the cell from w = 0
        excess = np.concatenate(([-1.0], excess))
        mass, moved = normal_cells(z)[:-1], normal_cells(z - shift)[:-1]
    # near w = 1 the cells are told apart by w − 1, near w = 0 by w; one that is too narrow for either is a point
    far = excess[1:] < -0.5
    ratio = np.concatenate(([0.0] if not symmetric else [], np.exp(z * shift - shift * shift / 2)))
    width = np.where(far, np.diff(ratio), np.diff(excess))
    rising = np.where(far, moved - ratio[:-1] * mass, (moved - mass) - excess[:-1] * mass)
    right = np.where(width > 0, np.clip(rising, 0.0, None) / np.where(width > 0, width, 1.0), mass)
    falling = np.where(far, ratio[1:] * mass - moved, excess[1:] * mass - (moved - mass))
    left = np.where(width > 0, np.clip(falling, 0.0, None) / np.where(width > 0, width, 1.0), 0.0)
    weights = np.append(left, 0.0) + np.concatenate(([0.0], right))
    heights = _above_tangent(a, rate * excess)
    if symmetric:
        heights = heights + _above_tangent(1 - a, rate * excess)
    # beyond the end f(r) ≤ ½·a(a − 1)·(q·w)²·w^max(a−2, 0), for each of the two terms of f
    b = np.maximum(a[:, 0], 2.0)
    beyond = 0.5 * (1 + symmetric) * a[:, 0] * (a[:, 0] - 1) * rate * rate
    beyond *= np.exp((b * b - b) * shift * shift / 2) * ndtr(b * shift - end)
    cancelled = 64 * _ULP / ((z[1] - z[0]) * min(shift, 1.0))
    total = (heights @ weights + beyond) * (1 + cancelled + 1e-12)
    divergences[within] = np.log1p(total) / (a[:, 0] - 1)
    return divergences


def _above_tangent(power: Array, excess: Array) -> Array:
    """(1 + x)^p − 1 − p·x, which is convex and at least 0 for p ≥ 1 and p ≤ 0, rounded up."""
    with np.errstate(divide="ignore"):
        grown = np.expm1(power * np.log1p(excess))
    straight = power * excess
    return np.asarray(np.maximum(grown - straight, 0.0) + 4 * _ULP * (np.abs(grown) + np.abs(straight)))
