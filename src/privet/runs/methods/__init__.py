"""Methods of training: one file each, listed in `METHODS`."""

from __future__ import annotations

from privet.runs.methods.protocol import FitSession, Method, MethodBudget, MethodOptions, MethodPlan, PartialRun
from privet.runs.methods.table import METHODS

__all__ = ["METHODS", "FitSession", "Method", "MethodBudget", "MethodOptions", "MethodPlan", "PartialRun"]
