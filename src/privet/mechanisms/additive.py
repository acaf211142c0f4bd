"""Adding exact integer noise to an answer on a grid, and what such noise does to the answer."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from privet.accounting import price
from privet.core import Bounded, Event, InvalidInput, Release, Unit, checked
from privet.core.random import Rng
from privet.mechanisms.grid import Integers, NoiseGrid
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.reach import ForReach, Reach

__all__ = [
    "AdditiveNoise",
    "NoiseLaw",
    "add_noise",
    "checked_confidence",
    "gaussian_error",
    "gaussian_width",
    "laplace_error",
    "laplace_width",
    "settled_scale",
    "usable_scale",
]

_LARGEST = 2.0**50
_SMALL_SIGMA = 50.0


@dataclass(frozen=True)
class NoiseLaw:
    """One kind of integer noise, by its scale in steps."""

    draw: Callable[[float, int, Rng], Integers]
    error: Callable[[float], float]
    """E|noise|."""
    width: Callable[[float, float], int]
    """The least number of steps that |noise| exceeds with at most the given probability."""


class AdditiveNoise(ForReach, ABC):
    """Integer noise of one scale on every coordinate of an answer: what Laplace and Gaussian noise share."""

    law: ClassVar[NoiseLaw]
    whole: ClassVar[bool] = False
    """Whether the noisy answers are returned as integers; if not, as float64."""

    @staticmethod
    def grid_of(reach: Reach) -> NoiseGrid:
        """Return the grid that the noise is drawn on: the whole numbers, unless a subclass has a finer one."""
        return NoiseGrid.whole(reach)

    @property
    @abstractmethod
    def event(self) -> Event:
        """The noise, in steps of the grid."""

    @property
    @abstractmethod
    def steps(self) -> float:
        """The scale of the noise, in steps of the grid."""

    def draw(self, size: int, rng: Rng) -> Integers:
        """Draw the noise of `size` coordinates, in steps of the grid."""
        return self.law.draw(self.steps, size, rng)

    @cached_property
    def grid(self) -> NoiseGrid:
        """The grid that the noise is drawn on."""
        return self.grid_of(self.reach)

    @property
    def expected_error(self) -> float:
        """E|noise| of one coordinate; rounding to the grid adds less than half a step."""
        return self.law.error(self.steps) * self.grid.step

    def interval(self, confidence: float) -> float:
        """Return the half-width for one coordinate, rounding to the grid included.

        Args:
            confidence: The confidence, between 0 and 1.
        """
        width = self.law.width(self.steps, checked_confidence(confidence))
        return (width + (0.0 if self.grid.exact else 0.5)) * self.grid.step

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[Any]:
        """Return the answer with its noise.

        Args:
            query: An answer of the clipper that the mechanism was made for.
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.

        Raises:
            InvalidInput: The answer could move further than the mechanism was made for.

        Guarantee: as `event`, for the unit and neighbors of the reach; the class says by which theorem. The support
        is all multiples of the grid's step, whatever the data. No assumption on floating-point numbers.
        """
        return add_noise(query, self.event, self.grid, self.draw, whole=self.whole, rng=rng, source=source)


def add_noise(
    query: Bounded[Any],
    event: Event,
    grid: NoiseGrid,
    draw: Callable[[int, Rng], Integers],
    *,
    whole: bool,
    rng: Rng,
    source: str,
) -> Release[Any]:
    """Return the answer on the grid plus one integer for each coordinate, in the shape that it came in.

    Guarantee: what `event` is priced at for the unit of the grid's reach, provided that `draw` has the event's law.
    """
    grid.reach.require(query)
    steps = grid.steps(query.value)
    total = steps.reshape(-1) + draw(steps.size, rng)
    answer: Any = total if whole else grid.back(total)
    value: Any = answer.reshape(steps.shape) if steps.ndim else (int(answer[0]) if whole else float(answer[0]))
    return Release.of(value, event, unit=query.unit, source=source, randomness=rng.kind)


def settled_scale(build: Callable[[float], Event], scale: float, epsilon: float, unit: Unit) -> float:
    """Return the scale, or one a few units in the last place above it, whose published price at δ = 0 is at most ε."""
    while price.epsilon(build(scale), 0.0, unit=unit).epsilon.upper > epsilon:
        scale *= 1 + 2.0**-52
    return scale


def usable_scale(argument: str, scale: float, grid: NoiseGrid) -> float:
    """Return a scale in steps of the grid, if integers of that size can be drawn."""
    steps = checked.positive(argument, scale) / grid.step
    if not 0 < steps <= _LARGEST:
        problem = f"is {scale}, which is {steps:.3g} steps of {grid.step}"
        raise InvalidInput(argument, problem, "use noise within 2^40 times the distance that one unit moves the answer")
    return steps


def checked_confidence(confidence: float) -> float:
    """Return the chance to miss that belongs to a confidence."""
    return 1.0 - checked.confidence("confidence", confidence)


def laplace_error(scale: float) -> float:
    """E|X| = 1/sinh(1/scale) for P(x) ∝ e^(-|x|/scale)."""
    rate = 1 / scale
    return 1 / math.sinh(rate) if rate < 700 else 0.0


def laplace_width(scale: float, miss: float) -> int:
    """Return the least k with P(|X| > k) ≤ miss: P(|X| > k) = 2·e^(-(k+1)/scale)/(1 + e^(-1/scale))."""
    least = scale * (math.log(2) - math.log1p(math.exp(-1 / scale)) - math.log(miss)) - 1
    return max(0, math.ceil(least))


def gaussian_error(sigma: float) -> float:
    """E|X| for P(x) ∝ e^(-x²/2σ²): summed for small σ, and by Euler and Maclaurin to 8 digits for others."""
    if sigma >= _SMALL_SIGMA:
        return math.sqrt(2 / math.pi) * (sigma - 1 / (12 * sigma))
    x, weights = _weights(sigma)
    return float((x * weights).sum() / (weights.sum() - weights[0] / 2))


def gaussian_width(sigma: float, miss: float) -> int:
    """Return the least k with P(|X| > k) ≤ miss.

    For large σ by P(X ≥ m) ≤ P(σZ ≥ m - 1) (Canonne et al. 2020, Prop. 25).
    """
    if sigma >= _SMALL_SIGMA:
        return max(0, math.ceil(-sigma * float(ndtri(miss / 2))))
    _, weights = _weights(sigma)
    whole = 2 * weights.sum() - weights[0]
    beyond = 2 * (weights[::-1].cumsum()[::-1] - weights) / whole  # P(|X| > k)
    return int(np.argmax(beyond <= miss))


def _weights(sigma: float) -> tuple[Any, Any]:
    x = np.arange(math.ceil(40 * sigma) + 2, dtype=np.float64)
    return x, np.exp(-x * x / (2 * sigma * sigma))
