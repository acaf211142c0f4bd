"""Convex models made private at the end, or inside of their objective: one solver, one draw of noise."""

from __future__ import annotations

from privet.training.convex.linear import LinearModel
from privet.training.convex.losses import LogCosh, Loss, Softmax
from privet.training.convex.objective import ObjectivePerturbation
from privet.training.convex.output import OutputPerturbation

__all__ = ["LinearModel", "LogCosh", "Loss", "ObjectivePerturbation", "OutputPerturbation", "Softmax"]
