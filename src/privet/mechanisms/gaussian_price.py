"""What discrete Gaussian noise on a grid costs, and how much of it a price needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privet.accounting import analytic_gaussian_sigma, calibrate, price
from privet.core import checked, event
from privet.mechanisms.grid import NoiseGrid, ceiling

__all__ = ["GaussianPrice"]

_STEP = 1.0005
_TIE_SQUARED = 1.08
"""How much longer than l2 the coordinates may be together: loss distributions save more than that."""


@dataclass(frozen=True)
class GaussianPrice:
    """Discrete Gaussian noise of one σ, in steps, on everything that one unit moves.

    There are two ways to say what it costs. *Coordinate by coordinate*: a unit moves at most l0 coordinates by at most
    l∞ each, and their noises are independent, so that the pair of outputs is dominated by l0 runs of the
    one-dimensional mechanism. Loss distributions price that, and it is exact for counts and histograms. *Together*: the
    vector moves by l2 in all, for which Rényi divergences are proven (Canonne, Kamath & Steinke 2020, Thm 4 and
    independence). The first is used unless its Σ of squares is larger.
    """

    grid: NoiseGrid

    @property
    def coordinatewise(self) -> bool:
        """Whether l0 runs of one dimension say it best."""
        one = ceiling(self.grid.contribution("linf"))
        return self.runs * one**2 <= float(self.grid.contribution("l2")) ** 2 * _TIE_SQUARED

    @property
    def runs(self) -> int:
        """How many coordinates one unit can move."""
        return math.ceil(self.grid.reach.distance("l0"))

    def event(self, sigma: float) -> event.Event:
        """Return the event of noise of deviation `sigma`, in steps."""
        if self.coordinatewise:
            one = event.DiscreteGaussian(sigma, ceiling(self.grid.contribution("linf")))
            return one if self.runs == 1 else event.Repeated(one, self.runs)
        bound = float(self.grid.contribution("l2")) * (1 + 2.0**-50)
        # The coordinates that one unit cannot move do not count, however many there are.
        return event.DiscreteGaussian(sigma, bound, max(2, min(self.runs, self.grid.reach.dimension)))

    @property
    def length(self) -> float:
        """How far one contribution moves everything, in steps and in L2, as the event has it."""
        if self.coordinatewise:
            return math.sqrt(self.runs) * ceiling(self.grid.contribution("linf"))
        return float(self.grid.contribution("l2")) * (1 + 2.0**-50)

    def sigma(self, epsilon: float, delta: float) -> float:
        """Return the σ, in steps, that costs at most (ε, δ); 0.1 % less would cost more, or nearly so."""
        unit, moved = self.grid.reach.unit, self.length * self.grid.reach.span
        if not self.coordinatewise:
            multiplier = calibrate.least(
                lambda noise: self.event(noise * moved), epsilon=epsilon, delta=delta, unit=unit
            )
            return multiplier * moved
        # Where noise is worth the name, discrete noise costs what continuous noise costs, to a part in millions.
        sigma = analytic_gaussian_sigma(checked.positive("epsilon", epsilon), delta) * moved
        while price.epsilon(self.event(sigma), delta, unit=unit).epsilon.upper > epsilon:
            sigma *= _STEP
        return sigma

    def sigma_for_rho(self, rho: float) -> float:
        """Return the σ, in steps, that is ρ-zCDP."""
        moved = self.length * self.grid.reach.span
        return moved / math.sqrt(2 * checked.positive("rho", rho)) * (1 + 2.0**-48)
