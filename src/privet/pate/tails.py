"""Tails of the noise that aggregators draw, as logarithms: of one number, and of the difference of two."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

__all__ = ["Reals", "log_ahead_gaussian", "log_ahead_laplace", "log_at_least"]

Reals: TypeAlias = npt.NDArray[np.float64]
_Whole: TypeAlias = npt.NDArray[np.int64]
_FAR = 37.0
"""e^(-37²/2) is about the least that a float64 holds; further out tails are called 0."""


def log_at_least(least: _Whole, sigma: float) -> Reals:
    """log P(X ≥ least) for discrete Gaussian noise, summed from the far end so that small tails keep their digits.

    >>> round(float(np.exp(log_at_least(np.array([0]), 1.0))[0]), 6)
    0.699471
    """
    reach = math.ceil(_FAR * sigma) + 1
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    masses = np.exp(-x * x / (2 * sigma * sigma))
    beyond = np.cumsum(masses[::-1])[::-1] / masses.sum()
    with np.errstate(divide="ignore"):
        table = np.concatenate(([0.0], np.log(beyond[1:]), [-math.inf]))
    logs: Reals = table[np.clip(least + reach, 0, len(x))]
    return np.minimum(logs, 0.0)


def log_ahead_gaussian(gaps: _Whole, sigma: float) -> Reals:
    """log P(Y - X ≥ gap) for independent discrete Gaussian X and Y of one σ, for gaps of at least 0: exact.

    Σ_x e^(-x²/2σ²)·e^(-(x+k)²/2σ²) = e^(-k²/4σ²)·Σ_x e^(-(x+k/2)²/σ²), where the last sum depends on the parity of k
    alone.
    """
    last = int(np.max(gaps, initial=0)) + math.ceil(12 * sigma) + 40  # what lies beyond is less than rounding
    k = np.arange(last + 1)
    masses = -(k.astype(np.float64) ** 2) / (4 * sigma * sigma) + _parity(sigma)[k % 2]
    table = np.logaddexp.accumulate(masses[::-1])[::-1]
    logs: Reals = table[gaps] * (1 - 1e-12) + 1e-12
    return np.minimum(logs, 0.0)


def log_ahead_laplace(gaps: _Whole, scale: float) -> Reals:
    """log P(Y - X ≥ gap) for independent discrete Laplace X and Y of one scale, for gaps of at least 0: exact.

    With r = e^(-1/scale), P(Y - X = k) = ((1 - r)/(1 + r))²·r^k·(k + (1 + r²)/(1 - r²)); summed over k ≥ g this is
    r^g·(g·(1 - r) + r + (1 + r²)/(1 + r))/(1 + r)².
    """
    r = math.exp(-1 / scale)
    g = np.asarray(gaps, dtype=np.float64)
    logs: Reals = -g / scale + np.log(g * (1 - r) + r + (1 + r * r) / (1 + r)) - 2 * math.log1p(r)
    return np.minimum(logs, 0.0)


def _parity(sigma: float) -> Reals:
    """log of Σ_x e^(-(x+s)²/σ²)/Z² for s = 0 and s = 1/2, with Z = Σ_x e^(-x²/2σ²)."""
    reach = math.ceil(_FAR * sigma) + 1
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    z = float(logsumexp(-x * x / (2 * sigma * sigma)))
    even, odd = (float(logsumexp(-((x + s) ** 2) / (sigma * sigma))) for s in (0.0, 0.5))
    return np.array([even - 2 * z, odd - 2 * z])
