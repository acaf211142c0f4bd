"""Output perturbation (Chaudhuri, Monteleoni & Sarwate 2011): fit a linear model, then add noise to its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privet.runs.methods.convex import convex_method

if TYPE_CHECKING:
    from privet.training.convex import ConvexLoss, OutputPerturbation

__all__ = ["OUTPUT"]

_SCORE_NOISE = 0.5
"""The standard deviation that the noise may add to a score. It is at most that in the weights, as rows have norm 1."""


def _perturbation() -> type[OutputPerturbation]:
    from privet.training.convex import OutputPerturbation

    return OutputPerturbation


def _penalty(loss: ConvexLoss, epsilon: float, delta: float) -> float:
    from privet.accounting import analytic_gaussian_sigma

    return analytic_gaussian_sigma(epsilon, delta) * loss.lipschitz / _SCORE_NOISE


OUTPUT = convex_method("output", "output perturbation", _perturbation, _penalty)
