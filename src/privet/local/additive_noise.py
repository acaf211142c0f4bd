"""Laplace and Gaussian noise added by each respondent, for means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from privet.core import Approximate, InvalidInput, Neighbours, Unit, Whose, checked
from privet.core.random import Rng, discrete_gaussian, discrete_laplace
from privet.local.mean import MeanMechanism
from privet.mechanisms import DiscreteGaussianMechanism, Integers, Reach

__all__ = ["LocalGaussian", "LocalLaplace"]


@dataclass(frozen=True)
class LocalLaplace(MeanMechanism):
    """The number plus discrete Laplace noise whose scale is the whole range over ε (Dwork et al. 2006).

    A replaced number moves by the whole range, and there is nobody else to hide among.

    A single forged report can be as far off as it likes; `Duchi` and `Piecewise` have bounded reports.

    >>> round(LocalLaplace(1.0).variance(0.0), 3)
    8.0
    """

    @property
    def scale(self) -> Fraction:
        """In steps: exactly steps/ε."""
        return self.steps / Fraction(self.epsilon)

    @property
    def noise(self) -> tuple[float, float]:
        rate = float(1 / self.scale)
        return 0.0, self.gain**2 / (2 * math.sinh(rate / 2) ** 2)

    def _draw(self, steps: Integers, rng: Rng) -> Integers:
        """ε-DP for a replaced number: two numbers are at most `steps` apart, and each step costs 1/scale."""
        return steps + discrete_laplace(self.scale, steps.size, rng)


@dataclass(frozen=True)
class LocalGaussian(MeanMechanism):
    """The number plus discrete Gaussian noise, (ε, δ)-DP for a replaced number (Canonne, Kamath & Steinke 2020).

    >>> round(LocalGaussian(1.0, delta=1e-5).sigma / 256, 1)
    3.7
    """

    steps: int = 256
    delta: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        if checked.share("delta", self.delta) <= 0:
            raise InvalidInput("delta", "is 0, and Gaussian noise needs more", "use LocalLaplace, or such as 1e-6")

    @property
    def event(self) -> Approximate:
        """The proven pair (ε, δ)."""
        return Approximate(self.epsilon, self.delta, Neighbours.REPLACE)

    @property
    def sigma(self) -> float:
        """The deviation, in steps: (almost) the least for the whole range and (ε, δ)."""
        return _sigma(self.epsilon, self.delta, self.steps)

    @property
    def noise(self) -> tuple[float, float]:
        # A discrete Gaussian has at most this variance (Canonne, Kamath & Steinke 2020, Cor. 9).
        return 0.0, (self.gain * self.sigma) ** 2

    def _draw(self, steps: Integers, rng: Rng) -> Integers:
        """(ε, δ)-DP for a replaced number, as two numbers are at most `steps` apart."""
        return steps + np.asarray(discrete_gaussian(self.sigma, steps.size, rng))


@lru_cache(maxsize=64)
def _sigma(epsilon: float, delta: float, steps: int) -> float:
    # The pair of laws is that of a sum over one person, whose number is replaced.
    alone = Unit(whose=Whose.USER, neighbours=Neighbours.REPLACE)
    return DiscreteGaussianMechanism.for_epsilon(epsilon, delta, Reach(alone, linf=float(steps), whole=True)).sigma
