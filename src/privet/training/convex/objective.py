"""Objective perturbation: noise inside of the objective, and a solver that need not be exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy.typing as npt

from privet.accounting import analytic_gaussian_sigma
from privet.accounting import epsilon as price
from privet.core import Approximate, Composed, Event, Gaussian, InvalidInput, Release
from privet.core.random import Rng
from privet.training.convex.linear import LinearModel, within
from privet.training.convex.method import ConvexMethod
from privet.training.convex.minimum import approach, tolerance

__all__ = ["ObjectivePerturbation"]

_HIDING: Final = 200.0
"""Noise multiplier of what hides where the solver stopped: it costs next to nothing."""
_SHARE: Final = 0.98
"""How much of δ the noise in the objective gets; the rest is for that."""


@dataclass(frozen=True)
class ObjectivePerturbation(ConvexMethod):
    """A linear model at the minimum of an objective that was tilted at random.

    Guarantee: (ε, δ) for one example that comes or goes, or is blanked: `event` is an (ε₁, δ₁) block for the exact
    minimum θ of J = Σ ℓ + Λ/2 |θ|² + b·θ with b ~ N(0, σ²I), and a Gaussian for the distance to it (approximate minima
    perturbation, Iyengar et al. 2019: the solver stops within γ/Λ of θ, so given θ its outputs on neighboring data are
    at most 2γ/Λ apart).

    The block: b = -(Σ ∇ℓ + Λθ) maps b to θ one to one, so θ has a density, and an example z with input x (|x| ≤ 1)
    changes it in two ways.
    (1) The determinant of the map grows by det(I + H⁻¹∇²ℓ_z), where H ≥ Λ. Its logarithm is at least 0 and at most
    c = r·log(1 + trace/(rΛ)) with r the rank of ∇²ℓ_z (the logarithm is concave).
    (2) b moves by g = ∇ℓ_z(θ), |g| ≤ L: the logarithm of the normal densities' ratio is at most (±b·g)/σ² + |g|²/(2σ²).
    For the softmax, b·g = Σ_j p_j v_j - v_y ≤ max_j (v_j - v_y), where v = bx is normal and each v_j - v_y has a
    deviation of at most √2σ = Lσ; for the other losses, b·g is at most L times the size of one normal of deviation σ.

    So the privacy loss is at most c + μ²/2 + μ·max(0, Z_1, …, Z_k) with μ = L/σ and k = `loss.tails` standard normals,
    whatever their dependence, and δ₁(ε₁) = E(1 - exp(ε₁ - loss))⁺ ≤ k·δ_μ(ε₁ - c) by the union bound, where δ_μ is that
    of the Gaussian mechanism, while ε₁ - c ≥ μ²/2. (Kifer et al. 2012 and Redberg et al. 2023 have such bounds.)

    The smaller the regularization, the more of ε goes to the determinant. The noise in the objective is continuous
    (floating-point) noise; that on the output is exact.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._determinant() >= self._first.epsilon:
            least = self.loss.trace / self._first.epsilon
            advice = f"give more than about {2 * least:.3g}, or a larger epsilon"
            raise InvalidInput("regularization", f"is {self.regularization}, which takes all of epsilon", advice)

    @cached_property
    def _first(self) -> Approximate:
        """The block of the exact minimum: the largest ε₁ with which all comes to ε at most."""
        delta = self.delta * _SHARE
        low, high = 0.0, self.epsilon
        for _ in range(40):
            middle = 0.5 * (low + high)
            block = Approximate(middle, delta, self.unit.neighbours)
            whole = price(Composed((block, Gaussian(_HIDING))), self.delta, unit=self.unit).epsilon.upper
            low, high = (middle, high) if whole <= self.epsilon else (low, middle)
        return Approximate(low, delta, self.unit.neighbours)

    @property
    def event(self) -> Event:
        """Privacy event of a fit, known before any data is read."""
        return Composed((self._first, Gaussian(_HIDING)))

    @property
    def noise(self) -> float:
        """σ: the standard deviation of each coordinate of b."""
        first = self._first
        left = (first.epsilon - self._determinant()) * (1.0 - 1e-12)
        multiplier = analytic_gaussian_sigma(left, first.delta / self.loss.tails)
        # The bound asks for μ²/2 ≤ ε₁ - c.
        return self.loss.lipschitz * max(multiplier, 1.0 / math.sqrt(2.0 * left)) * (1.0 + 1e-12)

    def _determinant(self) -> float:
        rank = self.loss.rank
        return rank * math.log1p(self.loss.trace / (rank * self.regularization)) * (1.0 + 1e-12)

    def fit(self, x: npt.NDArray[Any], y: npt.NDArray[Any], *, source: str, rng: Rng) -> Release[LinearModel]:
        """Minimize the perturbed objective and release the model.

        Args:
            x: Rows of inputs, (rows, features).
            y: Target of each row: a class number, or a number for regression.
            source: Name of the data in the release.
            rng: Source of randomness.

        Returns:
            The linear model near the minimum of the perturbed objective.

        Guarantee: that of `event`, for `unit`.
        """
        rows = within(x, self.radius)
        shape = (self.loss.outputs, rows.shape[1])
        tilt = rng.normal(shape) * self.noise
        gamma = tolerance(self.loss)
        near = approach(self.loss, rows, y, self.regularization, tilt, gamma)
        clip = 2.0 * gamma / self.regularization * (1.0 + 1e-12)
        return self._noisy(near, _HIDING, clip, source, rng)
