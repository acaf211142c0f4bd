"""Gaussian noise, drawn exactly on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from privet.core import event
from privet.core.bounded import Bounded
from privet.core.random import Rng, discrete_gaussian
from privet.core.release import Release
from privet.mechanisms import additive
from privet.mechanisms.gaussian_price import GaussianPrice
from privet.mechanisms.grid import FINE, Grid
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.reach import COUNT, Of, Reach, reach_of

__all__ = ["Gaussian"]

_FINE_VECTOR = 2**20
"""Steps a contribution for vectors that only Rényi prices: nothing is gained by counting atoms, so the grid is fine."""


def _grid(reach: Reach) -> Grid:
    plain = Grid.for_noise(reach, "linf", fine=FINE)
    if GaussianPrice(plain).coordinatewise:
        return plain
    return Grid.for_noise(reach, "l2", fine=max(FINE, _FINE_VECTOR // math.ceil(reach.distance("l0"))))


@dataclass(frozen=True)
class Gaussian:
    """Normal noise of one deviation on a number or on every coordinate of a vector.

    It is discrete (Canonne, Kamath & Steinke 2020), on a grid of a power of two that has at least 128 steps in a
    contribution, or on the whole numbers where the answers are whole; the event is that of the noise actually drawn.

    >>> from privet.mechanisms.count import Count
    >>> gaussian = Gaussian.for_epsilon(1.0, 1e-5, Count())
    >>> round(gaussian.sigma, 1), gaussian.event.bound
    (3.7, 1.0)
    """

    sigma: float
    """In the units of the answer."""
    of: Of = COUNT

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", reach_of(self.of))
        additive.usable_scale("sigma", self.sigma, self.grid)

    @staticmethod
    def for_epsilon(epsilon: float, delta: float, of: Of = COUNT) -> Gaussian:
        """With (almost) the least noise that the accountant prices at (ε, δ) for the unit (Balle & Wang 2018)."""
        grid = _grid(reach_of(of))
        return Gaussian(GaussianPrice(grid).sigma(epsilon, delta) * grid.step, of)

    @staticmethod
    def for_rho(rho: float, of: Of = COUNT) -> Gaussian:
        """With the least noise that is ρ-zCDP for the unit."""
        grid = _grid(reach_of(of))
        return Gaussian(GaussianPrice(grid).sigma_for_rho(rho) * grid.step, of)

    @property
    def reach(self) -> Reach:
        """What the mechanism was made for."""
        return reach_of(self.of)

    @cached_property
    def grid(self) -> Grid:
        """Where the noise lives."""
        return _grid(self.reach)

    @cached_property
    def event(self) -> event.Event:
        """The discrete noise, in steps: once for each coordinate that a unit moves, or by their joint length."""
        return GaussianPrice(self.grid).event(self.sigma / self.grid.step)

    @property
    def expected_error(self) -> float:
        """E|noise| of one coordinate; rounding to the grid adds less than half a step."""
        return additive.gaussian_error(self.sigma / self.grid.step) * self.grid.step

    def interval(self, confidence: float) -> float:
        """The half-width for one coordinate, rounding to the grid included."""
        width = additive.gaussian_width(self.sigma / self.grid.step, additive.checked_confidence(confidence))
        return (width + (0.0 if self.grid.exact else 0.5)) * self.grid.step

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[Any]:
        """The answer with its noise, as float64.

        Guarantee: `DiscreteGaussian` in steps of the grid, for the unit and neighbours of the reach (Canonne, Kamath &
        Steinke 2020, Thms 4 and 7; the grid is covered in `grid`). The support is all multiples of the step, whatever
        the data. No assumption on floating-point numbers.
        """
        sigma, grid = self.sigma / self.grid.step, self.grid
        return additive.noisy(
            query, self.event, grid, lambda n: discrete_gaussian(sigma, n, rng), whole=False, rng=rng, source=source
        )
