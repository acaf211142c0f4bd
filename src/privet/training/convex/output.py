"""Output perturbation: find the minimum, then add noise to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.accounting import analytic_gaussian_sigma
from privet.core import Gaussian, Release, checked
from privet.core.random import Rng
from privet.training.convex.linear import LinearModel, within
from privet.training.convex.method import ConvexMethod
from privet.training.convex.minimum import approach, tolerance

__all__ = ["OutputPerturbation"]


@dataclass(frozen=True)
class OutputPerturbation(ConvexMethod):
    """A linear model with noise on its weights.

    Guarantee: (ε, δ) for one example that comes or goes, or is blanked. The objective Σ ℓ + Λ/2 |θ|² is Λ-strongly
    convex, and one example moves its gradient by at most L, so minima of neighboring data sets are at most L/Λ apart
    (Chaudhuri, Monteleoni & Sarwate 2011, Lemma 7, for a sum and not a mean: no number of rows is used). The solver
    stops at a gradient of norm γ, which is within γ/Λ of the minimum; so the sensitivity is (L + 2γ)/Λ. The noise is
    exact on a grid, whose rounding is counted (`privet.training.lattice`). Holds for every data set: rows are
    shortened to a norm of 1, and rows that are no numbers count as zeros.

    >>> from privet.training.convex import Softmax
    >>> OutputPerturbation(Softmax(2), epsilon=1.0, delta=1e-5, regularization=100.0).event
    Gaussian(noise_multiplier=3.7306316348...)
    """

    @property
    def event(self) -> Gaussian:
        """Privacy event of a fit, known before any data is read."""
        return Gaussian(analytic_gaussian_sigma(self.epsilon, self.delta) * (1.0 + 1e-12))

    def fit(self, x: npt.NDArray[Any], y: npt.NDArray[Any], *, source: str, rng: Rng) -> Release[LinearModel]:
        """Fit the model and release it with noise on its weights.

        Args:
            x: Rows of inputs, (rows, features).
            y: Target of each row: a class number, or a number for regression.
            source: Name of the data in the release.
            rng: Source of randomness.

        Returns:
            The linear model, with noise on its weights.

        Guarantee: that of `event`, for `unit`.
        """
        rows = within(x, self.radius)
        shape = (self.loss.outputs, rows.shape[1])
        gamma = tolerance(self.loss)
        least = approach(self.loss, rows, y, self.regularization, np.zeros(shape), gamma)
        clip = (self.loss.lipschitz + 2.0 * gamma) / self.regularization * (1.0 + 1e-12)
        noise = checked.positive("noise", self.event.noise_multiplier)
        return self._noisy(least, noise, clip, source, rng)
