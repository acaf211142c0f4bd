"""Adding exact integer noise to an answer on a grid, and what such noise does to the answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtri

from privet.accounting import price
from privet.core import checked
from privet.core.bounded import Bounded
from privet.core.errors import InvalidInput
from privet.core.event import Event
from privet.core.random import Rng
from privet.core.release import Release
from privet.core.unit import Unit
from privet.mechanisms.grid import Grid, Integers

__all__ = [
    "checked_confidence",
    "gaussian_error",
    "gaussian_width",
    "laplace_error",
    "laplace_width",
    "noisy",
    "settled",
    "usable_scale",
]

_LARGEST = 2.0**50
_SMALL_SIGMA = 50.0


def noisy(
    query: Bounded[Any],
    event: Event,
    grid: Grid,
    draw: Callable[[int], Integers],
    *,
    whole: bool,
    rng: Rng,
    source: str,
) -> Release[Any]:
    """The answer on the grid plus one integer for each coordinate, in the shape that it came in.

    Guarantee: what `event` is priced at for the unit of the grid's reach, provided that `draw` has the event's law.
    """
    grid.reach.require(query)
    steps = grid.steps(query.value)
    total = steps.reshape(-1) + draw(steps.size)
    found: Any = total if whole else grid.back(total)
    value: Any = found.reshape(steps.shape) if steps.ndim else (int(found[0]) if whole else float(found[0]))
    return Release.of(value, event, unit=query.unit, source=source, randomness=rng.kind)


def settled(build: Callable[[float], Event], scale: float, epsilon: float, unit: Unit) -> float:
    """The scale, or one a few units in the last place above it, whose published price at δ = 0 is at most ε."""
    while price.epsilon(build(scale), 0.0, unit=unit).epsilon.upper > epsilon:
        scale *= 1 + 2.0**-52
    return scale


def usable_scale(argument: str, scale: float, grid: Grid) -> float:
    """A scale in steps of the grid, if integers of that size can be drawn."""
    steps = checked.positive(argument, scale) / grid.step
    if not 0 < steps <= _LARGEST:
        problem = f"is {scale}, which is {steps:.3g} steps of {grid.step}"
        raise InvalidInput(argument, problem, "use noise within 2^40 times the distance that one unit moves the answer")
    return steps


def checked_confidence(confidence: float) -> float:
    """A confidence as the chance to miss."""
    return 1.0 - checked.confidence("confidence", confidence)


def laplace_error(scale: float) -> float:
    """E|X| = 1/sinh(1/scale) for P(x) ∝ e^(-|x|/scale)."""
    rate = 1 / scale
    return 1 / math.sinh(rate) if rate < 700 else 0.0


def laplace_width(scale: float, miss: float) -> int:
    """The least k with P(|X| > k) ≤ miss: P(|X| > k) = 2·e^(-(k+1)/scale)/(1 + e^(-1/scale))."""
    least = scale * (math.log(2) - math.log1p(math.exp(-1 / scale)) - math.log(miss)) - 1
    return max(0, math.ceil(least))


def gaussian_error(sigma: float) -> float:
    """E|X| for P(x) ∝ e^(-x²/2σ²): summed for small σ, and by Euler and Maclaurin to 8 digits for others."""
    if sigma >= _SMALL_SIGMA:
        return math.sqrt(2 / math.pi) * (sigma - 1 / (12 * sigma))
    x, weights = _weights(sigma)
    return float((x * weights).sum() / (weights.sum() - weights[0] / 2))


def gaussian_width(sigma: float, miss: float) -> int:
    """The least k with P(|X| > k) ≤ miss; for large σ by P(X ≥ m) ≤ P(σZ ≥ m - 1) (Canonne et al. 2020, Prop. 25)."""
    if sigma >= _SMALL_SIGMA:
        return max(0, math.ceil(-sigma * float(ndtri(miss / 2))))
    _, weights = _weights(sigma)
    whole = 2 * weights.sum() - weights[0]
    beyond = 2 * (weights[::-1].cumsum()[::-1] - weights) / whole  # P(|X| > k)
    return int(np.argmax(beyond <= miss))


def _weights(sigma: float) -> tuple[Any, Any]:
    x = np.arange(math.ceil(40 * sigma) + 2, dtype=np.float64)
    return x, np.exp(-x * x / (2 * sigma * sigma))
