"""Discrete Gaussian noise on whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privet.core import event
from privet.core.bounded import Bounded
from privet.core.random import Rng, discrete_gaussian
from privet.core.release import Release
from privet.mechanisms import additive
from privet.mechanisms.gaussian_price import GaussianPrice
from privet.mechanisms.grid import Grid
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.reach import COUNT, Of, Reach, reach_of

__all__ = ["DiscreteGaussian"]


@dataclass(frozen=True)
class DiscreteGaussian:
    """P(x) ∝ e^(-x²/2σ²) on whole numbers (Canonne, Kamath & Steinke 2020): whole answers.

    A contribution is rounded up to a whole number, so that a count of replaced rows pays for two steps where one moves
    it; `Gaussian`, which counts in halves there, does not.

    >>> round(DiscreteGaussian.for_epsilon(1.0, 1e-5).sigma, 1)
    3.7
    """

    sigma: float
    of: Of = COUNT

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", reach_of(self.of))
        additive.usable_scale("sigma", self.sigma, self.grid)

    @staticmethod
    def for_epsilon(epsilon: float, delta: float, of: Of = COUNT) -> DiscreteGaussian:
        """With (almost) the least noise that the accountant prices at (ε, δ) for the unit."""
        return DiscreteGaussian(GaussianPrice(Grid.whole(reach_of(of))).sigma(epsilon, delta), of)

    @staticmethod
    def for_rho(rho: float, of: Of = COUNT) -> DiscreteGaussian:
        """With the least noise that is ρ-zCDP for the unit."""
        return DiscreteGaussian(GaussianPrice(Grid.whole(reach_of(of))).sigma_for_rho(rho), of)

    @property
    def reach(self) -> Reach:
        """What the mechanism was made for."""
        return reach_of(self.of)

    @property
    def grid(self) -> Grid:
        """The whole numbers."""
        return Grid.whole(self.reach)

    @property
    def event(self) -> event.Event:
        """The noise: once for each coordinate that a unit moves, or by their joint length."""
        return GaussianPrice(self.grid).event(self.sigma)

    @property
    def expected_error(self) -> float:
        """E|noise| of one coordinate."""
        return additive.gaussian_error(self.sigma)

    def interval(self, confidence: float) -> float:
        """The half-width for one coordinate."""
        return float(additive.gaussian_width(self.sigma, additive.checked_confidence(confidence)))

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[Any]:
        """The answer with its noise, as whole numbers.

        Guarantee: as its event, for the unit and neighbours of the reach: ρ = L2 distance² / 2σ² in zCDP and its exact
        loss in one dimension (Canonne, Kamath & Steinke 2020, Thms 4 and 7). The support is all whole numbers, whatever
        the data.
        """
        sigma = self.sigma
        return additive.noisy(
            query, self.event, self.grid, lambda n: discrete_gaussian(sigma, n, rng), whole=True, rng=rng, source=source
        )
