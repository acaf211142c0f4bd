"""Convex models made private at the end, inside of their objective, or by noise on every record."""

from __future__ import annotations

from privet.training.convex.input import AdditiveModel, InputPerturbation, Randomized
from privet.training.convex.linear import LinearModel
from privet.training.convex.linear import within as within
from privet.training.convex.losses import ConvexLoss, LogCosh, Softmax
from privet.training.convex.minimum import approach as approach
from privet.training.convex.minimum import tolerance as tolerance
from privet.training.convex.objective import ObjectivePerturbation
from privet.training.convex.output import OutputPerturbation

__all__ = [
    "AdditiveModel",
    "ConvexLoss",
    "InputPerturbation",
    "LinearModel",
    "LogCosh",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Randomized",
    "Softmax",
]
