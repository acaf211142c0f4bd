"""Gaussian noise, drawn exactly on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from privet.core import event
from privet.core.random import discrete_gaussian
from privet.mechanisms import additive
from privet.mechanisms.gaussian_price import GaussianPrice
from privet.mechanisms.grid import FINE, NoiseGrid
from privet.mechanisms.reach import COUNT, Of, Reach, reach_of

__all__ = ["GaussianMechanism", "GaussianNoise"]

_FINE_VECTOR = 2**20
"""Steps a contribution for vectors that only Rényi prices: nothing is gained by counting atoms, so the grid is fine."""


@dataclass(frozen=True)
class GaussianNoise(additive.AdditiveNoise):
    """P(x) ∝ e^(-x²/2σ²) on the steps of a grid: what `GaussianMechanism` and `DiscreteGaussian` share."""

    law = additive.NoiseLaw(discrete_gaussian, additive.gaussian_error, additive.gaussian_width)
    sigma: float
    """In the units of the answer."""
    of: Of = COUNT

    def __post_init__(self) -> None:
        super().__post_init__()
        additive.usable_scale("sigma", self.sigma, self.grid)

    @classmethod
    def for_epsilon(cls, epsilon: float, delta: float, of: Of = COUNT) -> Self:
        """Return the mechanism with (almost) the least noise that costs (ε, δ) for the unit (Balle & Wang 2018).

        Args:
            epsilon: The privacy cost of one release at `delta`, for the unit of the clipper.
            delta: The δ at which ε is stated.
            of: The clipper whose answers are to be released, or its reach.

        Raises:
            InvalidInput: If ε or δ is out of range, or needs noise beyond the range of the grid.
        """
        grid = cls.grid_of(reach_of(of))
        return cls(GaussianPrice(grid).sigma(epsilon, delta) * grid.step, of)

    @classmethod
    def for_rho(cls, rho: float, of: Of = COUNT) -> Self:
        """Return the mechanism with the least noise that is ρ-zCDP for the unit.

        Args:
            rho: The ρ of zero-concentrated differential privacy.
            of: The clipper whose answers are to be released, or its reach.

        Raises:
            InvalidInput: If ρ is not a positive number, or needs noise beyond the range of the grid.
        """
        grid = cls.grid_of(reach_of(of))
        return cls(GaussianPrice(grid).sigma_for_rho(rho) * grid.step, of)

    @cached_property
    def event(self) -> event.Event:
        """The discrete noise, in steps: once for each coordinate that a unit moves, or by their joint length."""
        return GaussianPrice(self.grid).event(self.steps)

    @property
    def steps(self) -> float:
        return self.sigma / self.grid.step


@dataclass(frozen=True)
class GaussianMechanism(GaussianNoise):
    """Normal noise of one deviation on a number or on every coordinate of a vector.

    It is discrete (Canonne, Kamath & Steinke 2020), on a grid of a power of two that has at least 128 steps in a
    contribution, or on the whole numbers where the answers are whole; the event is that of the noise actually drawn.
    Answers are float64.

    Guarantee: `DiscreteGaussian` in steps of the grid, for the unit and neighbors of the reach (Canonne, Kamath &
    Steinke 2020, Thms 4 and 7; the grid is covered in `grid`). The support is all multiples of the step, whatever
    the data. No assumption on floating-point numbers.

    >>> from privet.mechanisms.count import Count
    >>> gaussian = GaussianMechanism.for_epsilon(1.0, 1e-5, Count())
    >>> round(gaussian.sigma, 1), gaussian.event.bound
    (3.7, 1.0)
    """

    @staticmethod
    def grid_of(reach: Reach) -> NoiseGrid:
        """Return a grid of a power of two; the whole numbers where the answers are whole.

        Args:
            reach: How far one unit moves the answers.
        """
        plain = NoiseGrid.for_noise(reach, "linf", fine=FINE)
        if GaussianPrice(plain).coordinatewise:
            return plain
        return NoiseGrid.for_noise(reach, "l2", fine=max(FINE, _FINE_VECTOR // math.ceil(reach.distance("l0"))))
