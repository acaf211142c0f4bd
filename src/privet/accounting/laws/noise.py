"""Losses of additive noise: Gaussian, Laplace, and their discrete twins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privet.accounting.laws.atoms import Atoms
from privet.accounting.laws.law import Array, FiniteLoss, between, normal_cells

__all__ = ["MOST_ATOMS", "GaussianLoss", "LaplaceLoss", "discrete_gaussian", "discrete_laplace"]

MOST_ATOMS = 2_000_000
"""A discrete law with more atoms than this is left to Rényi."""


@dataclass(frozen=True)
class GaussianLoss(FiniteLoss):
    """N(μ, 1) against N(0, 1): L is N(μ²/2, μ²) under P and N(−μ²/2, μ²) under Q."""

    mu: float

    def cells(self, bounds: Array) -> tuple[Array, Array]:
        """Normal masses."""
        z = bounds / self.mu
        return normal_cells(z - self.mu / 2), normal_cells(z + self.mu / 2)


@dataclass(frozen=True)
class LaplaceLoss(FiniteLoss):
    """Laplace noise of scale b against itself moved by 1: L = (|x − 1| − |x|) / b with x from P = Laplace(0, b)."""

    scale: float

    @property
    def support(self) -> tuple[float, float]:
        """[−1/b, 1/b], both ends with atoms."""
        return -1 / self.scale, 1 / self.scale

    def cells(self, bounds: Array) -> tuple[Array, Array]:
        """P(L ≥ l) = P(x ≤ (1 − b·l)/2), where x below 0 and x above 1 are the two atoms."""
        end = 1 / self.scale
        clipped = np.clip(bounds, -end, end)
        p_above = np.where(
            bounds > end, 0.0, np.where(bounds <= -end, 1.0, -np.expm1((clipped - end) / 2 - math.log(2)))
        )
        p_below = np.where(bounds > end, 1.0, np.where(bounds <= -end, 0.0, np.exp((clipped - end) / 2) / 2))
        q_above = np.where(bounds > end, 0.0, np.where(bounds <= -end, 1.0, np.exp(-(clipped + end) / 2) / 2))
        q_below = np.where(
            bounds > end, 1.0, np.where(bounds <= -end, 0.0, -np.expm1(-(clipped + end) / 2 - math.log(2)))
        )
        return between(p_below, p_above), between(q_below, q_above)


def discrete_laplace(scale: float, distance: int) -> Atoms | None:
    """Two-sided geometric noise against itself moved by `distance` grid steps; None where it has too many atoms."""
    if distance > MOST_ATOMS:
        return None
    rate = 1 / scale
    x = np.arange(0, distance + 1, dtype=np.float64)
    mass = math.tanh(rate / 2) * np.exp(-rate * x)
    mass[0] = 1 / (1 + math.exp(-rate))  # all x ≤ 0 share the largest loss
    mass[-1] = math.exp(-rate * distance) / (1 + math.exp(-rate))  # all x ≥ distance share the least
    return Atoms(rate * (distance - 2 * x), mass, mass[::-1].copy())


@lru_cache(maxsize=16)
def discrete_gaussian(sigma: float, distance: int) -> Atoms | None:
    """Discrete Gaussian noise against itself moved by `distance` grid steps; None where it has too many atoms."""
    if max(sigma, distance) > MOST_ATOMS:
        return None
    half = math.ceil(39 * sigma) + 2  # beyond 39σ a double is 0
    if 2 * half + distance > MOST_ATOMS:
        return None
    x = np.arange(-half, half + distance + 1, dtype=np.float64)
    inverse = 1 / (2 * sigma * sigma)
    norm = math.fsum(np.exp(-inverse * np.arange(-half, half + 1, dtype=np.float64) ** 2))
    p, q = np.exp(-inverse * x * x) / norm, np.exp(-inverse * (x - distance) ** 2) / norm
    return Atoms(inverse * distance * (distance - 2 * x), p, q, unbounded=True)
