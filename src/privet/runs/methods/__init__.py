"""Methods of training: one file each, listed in `METHODS`."""

from __future__ import annotations

from privet.runs.methods.protocol import (
    FitSession,
    Method,
    MethodBudget,
    MethodOptions,
    MethodPlan,
    PartialRun,
    StepProgress,
)
from privet.runs.methods.registry import METHODS
from privet.runs.methods.table import METHOD_TABLE

__all__ = [
    "METHODS",
    "METHOD_TABLE",
    "FitSession",
    "Method",
    "MethodBudget",
    "MethodOptions",
    "MethodPlan",
    "PartialRun",
    "StepProgress",
]
