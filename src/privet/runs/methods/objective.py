"""Objective perturbation (Kifer, Smith & Thakurta 2012): add noise to the objective of a linear model, then fit it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privet.runs.methods.convex import convex_method

if TYPE_CHECKING:
    from privet.training.convex import ConvexLoss, ObjectivePerturbation

__all__ = ["OBJECTIVE"]

_DETERMINANT_SHARE = 0.1
"""About how much of ε the determinant of the perturbed objective may take."""


def _perturbation() -> type[ObjectivePerturbation]:
    from privet.training.convex import ObjectivePerturbation

    return ObjectivePerturbation


def _penalty(loss: ConvexLoss, epsilon: float, delta: float) -> float:
    return loss.trace / (_DETERMINANT_SHARE * epsilon)


OBJECTIVE = convex_method("objective", "objective perturbation", _perturbation, _penalty)
