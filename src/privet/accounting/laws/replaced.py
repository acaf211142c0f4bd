"""Losses when a row is replaced by another: Poisson sampling at any rate, 1 included, from the three laws at hand.

With the other rows of the batch given, the output follows M₀ (the row is not drawn), M₁ (it is) or M₂ (its replacement
is): P = (1 − q)M₀ + qM₁ against Q = (1 − q)M₀ + qM₂, and a mixture over the other rows is no easier to tell apart
(joint convexity). Each law below has, at every α, the largest H_α(P‖Q) that its mechanism allows, all by one pair, so
that it dominates, and composes (Zhu, Dong & Wang 2022, Thm 10). For α < 1 use H_α(P‖Q) = 1 − α + α·H_{1/α}(Q‖P).

Gaussian noise, in any dimension, M₁ = N(u, σ²), M₂ = N(v, σ²) around M₀ = N(0, σ²) with ‖u‖, ‖v‖ ≤ 1: worst is v = −u,
‖u‖ = 1. Proof: for α ≥ 1, dividing by the density of M₁, H_α(P‖Q) = E[(q − (1 − q)(α − 1)e^(G₀ − EG₀²/2) −
αq·e^(G₁ − EG₁²/2))₊] with G₀ = −u·z/σ, G₁ = (v − u)·z/σ and z standard normal. This is the mean of a convex function of
a sum of exponentials of Gaussians with weights ≥ 0, which rises with every covariance (Kahane 1985). They are ‖u‖²,
‖u‖² − u·v and ‖u − v‖² over σ², at most 1, 2 and 4 over σ², and v = −u attains all three at once.

One-dimensional noise with a symmetric log-concave density or mass function (Laplace, discrete Laplace, discrete
Gaussian), moved by u and v: again u = 1, v = −1, in units of the bound. Proof: let α ≥ 1 and u ≥ 0, else take the
mirror image. If v ≤ u, then M₀/M₁ and M₂/M₁ fall, so the best test is a half-line {x ≥ t}, which gains as u rises and v
falls. If v > u, reflect v at u, to 2u − v in [−1, u): M₂/M₁ keeps its law under M₁, and both ratios now fall together,
which makes the mean of a convex function of a weighted sum of them the largest (Tchen 1980).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from privet.accounting.laws.atoms import Atoms, block
from privet.accounting.laws.law import Array, FiniteLoss, between, normal_cells
from privet.accounting.laws.noise import MOST_ATOMS

__all__ = [
    "ReplacedGaussian",
    "ReplacedLaplace",
    "replaced_discrete_gaussian",
    "replaced_discrete_laplace",
    "two_steps",
]

_MOST_PURE = 300.0
_UP = 1 + 2e-15


@dataclass(frozen=True)
class ReplacedGaussian(FiniteLoss):
    """(1 − q)N(0, 1) + qN(μ, 1) against (1 − q)N(0, 1) + qN(−μ, 1), for q < 1."""

    mu: float
    rate: float

    def cells(self, bounds: Array) -> tuple[Array, Array]:
        """L ≥ l where μx ≥ l/2 + asinh(((1 − q)/q)·e^(μ²/2)·sinh(l/2)): L is an odd, rising function of x."""
        half = np.abs(bounds) / 2
        log_odds = math.log1p(-self.rate) - math.log(self.rate) + self.mu * self.mu / 2
        with np.errstate(divide="ignore", over="ignore"):
            log_sinh = half + np.log(-np.expm1(-2 * half)) - math.log(2)
            large = log_odds + log_sinh
            arcs = np.where(large > 20, large + math.log(2), np.arcsinh(np.exp(np.minimum(large, 20.0))))
        x = np.copysign(half + arcs, bounds) / self.mu
        still = (1 - self.rate) * normal_cells(x)
        return still + self.rate * normal_cells(x - self.mu), still + self.rate * normal_cells(x + self.mu)


@dataclass(frozen=True)
class ReplacedLaplace(FiniteLoss):
    """(1 − q)Lap(0) + qLap(1) against (1 − q)Lap(0) + qLap(−1), all of scale b."""

    scale: float
    rate: float

    @property
    def support(self) -> tuple[float, float]:
        """Up to the loss of x ≥ 1, an atom, and as far below 0."""
        up, down = _log_mixed(np.array([1 / self.scale, -1 / self.scale]), self.rate).tolist()
        high = (up - down) * _UP
        return -high, high

    def cells(self, bounds: Array) -> tuple[Array, Array]:
        """L is odd, rises from 0 to its end on [0, 1] and stays there: for l > 0, x = b/2·log(1 + (e^l − 1)·odds)."""
        end = self.support[1]
        odds = math.log1p(-self.rate) - math.log(self.rate) + 1 / self.scale if self.rate < 1 else -math.inf
        size = np.minimum(np.abs(bounds), end)
        with np.errstate(divide="ignore"):
            log_expm1 = size + np.log(-np.expm1(-size))
        x = np.minimum(self.scale / 2 * np.logaddexp(0.0, log_expm1 + np.logaddexp(0.0, odds)), 1.0)
        x = np.copysign(x, bounds)
        x = np.where(bounds > end, math.inf, np.where(bounds <= -end, -math.inf, x))
        still = (1 - self.rate) * self._masses(x)
        return still + self.rate * self._masses(x - 1), still + self.rate * self._masses(x + 1)

    def _masses(self, x: Array) -> Array:
        tail = np.exp(-np.abs(x) / self.scale) / 2
        below, above = np.where(x < 0, tail, 1 - tail), np.where(x < 0, 1 - tail, tail)
        return between(below, above)


def replaced_discrete_laplace(scale: float, distance: int, rate: float) -> Atoms | None:
    """Two-sided geometric noise at 0, `distance` and −`distance`; None where it has too many atoms."""
    if 2 * distance > MOST_ATOMS:
        return None
    inverse = 1 / scale
    x = np.arange(-distance, distance + 1, dtype=np.float64)

    def masses(center: int) -> Array:
        mass = math.tanh(inverse / 2) * np.exp(-inverse * np.abs(x - center))
        rest = 1 / (1 + math.exp(-inverse))  # all x ≤ −distance share the least loss, all x ≥ distance the largest
        mass[0] = math.exp(-inverse * (distance + center)) * rest
        mass[-1] = math.exp(-inverse * (distance - center)) * rest
        return np.asarray(mass)

    up = inverse * (np.abs(x) - np.abs(x - distance))
    return _three(masses(0), masses(distance), masses(-distance), up, up[::-1], rate)


def replaced_discrete_gaussian(sigma: float, distance: int, rate: float) -> Atoms | None:
    """Discrete Gaussian noise at 0, `distance` and −`distance`; None where it has too many atoms."""
    if max(sigma, distance) > MOST_ATOMS:
        return None
    half = math.ceil(39 * sigma) + 2  # beyond 39σ a double is 0
    if 2 * (half + distance) > MOST_ATOMS:
        return None
    inverse = 1 / (2 * sigma * sigma)
    norm = math.fsum(np.exp(-inverse * np.arange(-half, half + 1, dtype=np.float64) ** 2))
    x = np.arange(-half - distance, half + distance + 1, dtype=np.float64)
    at = [np.exp(-inverse * (x - center) ** 2) / norm for center in (0, distance, -distance)]
    up = inverse * distance * (2 * x - distance)
    return _three(at[0], at[1], at[2], up, up[::-1], rate, unbounded=True)


def _three(
    still: Array, there: Array, other: Array, up: Array, down: Array, rate: float, *, unbounded: bool = False
) -> Atoms:
    """From masses of M₀, M₁, M₂ and the logarithms of M₁/M₀ and M₂/M₀, which do not underflow as the masses do."""
    losses = _log_mixed(up, rate) - _log_mixed(down, rate)
    p, q = ((1 - rate) * still + rate * moved for moved in (there, other))
    return Atoms(losses, p, q, unbounded=unbounded)


def _log_mixed(log_ratio: Array, rate: float) -> Array:
    """log(1 − q + q·e^x), precise near 0 and without overflow."""
    if rate == 1:
        return log_ratio
    near = np.log1p(rate * np.expm1(np.minimum(log_ratio, 30.0)))
    far = np.logaddexp(math.log1p(-rate), log_ratio + math.log(rate))
    return np.where(log_ratio > 30, far, near)


def two_steps(epsilon: float, delta: float, rate: float) -> Atoms | None:
    """The pair that dominates whatever is (ε, δ)-DP between M₀ and M₁ and between M₀ and M₂; None for a huge ε.

    A test that M₀ passes with probability m, M₁ passes with at most f(m) = min(e^ε·m + δ, 1 − e^−ε(1 − δ − m), 1) and
    M₂ with at least g(m) = 1 − f(1 − m), and P − αQ is largest where the first is large and the second small, whatever
    α ≥ 0. The pair below has exactly the masses (1 − q)m + qf(m) and (1 − q)m + qg(m) on nested sets, and on each piece
    of f and g one loss; the losses fall, so these sets are its best tests.
    """
    if epsilon > _MOST_PURE:
        return None
    corner = (1 - delta) / (1 + math.exp(epsilon))  # f bends; g = 0 up to δ, f = 1 from 1 − δ on; from ½ on, mirrored
    ends = [0.0, *sorted(m for m in {corner, delta, 1 - delta} if 0 < m < 0.5), 0.5]
    losses, p, q, infinite = [], [], [], rate * delta
    for low, high in itertools.pairwise(ends):
        middle = (low + high) / 2
        rises = epsilon if middle < corner else -epsilon if middle < 1 - delta else -math.inf
        falls = -math.inf if middle < delta else -epsilon
        mass, other = ((high - low) * (1 - rate + rate * math.exp(slope)) for slope in (rises, falls))
        if mass == 0 or other == 0:  # an infinite loss, here or in the mirror image
            infinite += mass + other
            continue
        up, down = _log_mixed(np.array([rises, falls]), rate)
        losses.append(float(up - down) * (_UP if rate < 1 else 1.0))
        p.append(mass)
        q.append(other)
    if not losses:
        return block(0.0, 1.0)
    mirrored = [-loss for loss in losses]
    return Atoms(np.array([*losses, *mirrored]), np.array([*p, *q]), np.array([*q, *p]), infinite, infinite)
