"""A question's part of the budget, and the mechanisms that it buys."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

from privet.mechanisms import GaussianMechanism, LaplaceMechanism, Reach
from privet.mechanisms.grid import NoiseGrid, ceiling

__all__ = ["BudgetShare", "NoiseKind"]


class NoiseKind(Enum):
    """The noise on sums and counts."""

    LAPLACE = "Laplace"
    GAUSSIAN = "Gaussian"


@dataclass(frozen=True)
class BudgetShare:
    """So much ε for Laplace noise, or so much ρ (zCDP) for Gaussian noise; and a δ for private groups."""

    noise: NoiseKind
    amount: float
    delta: float = 0.0

    @property
    def pure(self) -> float:
        """The ε of something of which nothing more is known; ε-DP is ε²/2-zCDP (Bun & Steinke 2016, Prop. 1.4)."""
        return self.amount if self.noise is NoiseKind.LAPLACE else math.sqrt(2 * self.amount)

    @property
    def choice(self) -> float:
        """The ε of a choice by score, whose loss has a bounded range: ε²/8-zCDP (Durfee & Rogers 2019)."""
        return self.amount if self.noise is NoiseKind.LAPLACE else math.sqrt(8 * self.amount)

    def part(self, fraction: float) -> BudgetShare:
        """A part of it: both ε and ρ add up. The δ stays whole."""
        return replace(self, amount=self.amount * fraction)

    def additive(self, reach: Reach) -> LaplaceMechanism | GaussianMechanism:
        """Noise for sums of this reach."""
        if self.noise is NoiseKind.GAUSSIAN:
            return GaussianMechanism.for_rho(self.amount, reach)
        grid = NoiseGrid.for_noise(reach, "l1")
        return LaplaceMechanism(reach.span * ceiling(grid.contribution("l1")) * grid.step / self.amount, reach)
