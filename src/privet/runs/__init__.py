"""Runs as library objects: request, read, plan, charge, fit, score, card and pages."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privet.runs.api import train
    from privet.runs.attacks.attack import AttackResult, attack_run
    from privet.runs.attacks.audit import AuditResult, audit_mechanism, audit_run
    from privet.runs.callbacks import PlannedRun, RunCallbacks
    from privet.runs.facts import PublicFacts
    from privet.runs.methods import METHODS, FitSession, Method, MethodBudget, MethodOptions, MethodPlan, PartialRun
    from privet.runs.methods.protocol import StepProgress
    from privet.runs.pate.teachers import vote_at_silo
    from privet.runs.plan import RunPlan
    from privet.runs.request import TrainRequest
    from privet.runs.row_sets import LabeledRows
    from privet.runs.trained_run import TrainedRun, open_run

__all__ = [
    "METHODS",
    "AttackResult",
    "AuditResult",
    "FitSession",
    "LabeledRows",
    "Method",
    "MethodBudget",
    "MethodOptions",
    "MethodPlan",
    "PartialRun",
    "PlannedRun",
    "PublicFacts",
    "RunCallbacks",
    "RunPlan",
    "StepProgress",
    "TrainRequest",
    "TrainedRun",
    "attack_run",
    "audit_mechanism",
    "audit_run",
    "open_run",
    "train",
    "vote_at_silo",
]

_NAMES = {
    "AttackResult": "privet.runs.attacks.attack",
    "AuditResult": "privet.runs.attacks.audit",
    "MethodBudget": "privet.runs.methods",
    "FitSession": "privet.runs.methods",
    "LabeledRows": "privet.runs.row_sets",
    "METHODS": "privet.runs.methods",
    "Method": "privet.runs.methods",
    "MethodOptions": "privet.runs.methods",
    "MethodPlan": "privet.runs.methods",
    "PartialRun": "privet.runs.methods",
    "PlannedRun": "privet.runs.callbacks",
    "PublicFacts": "privet.runs.facts",
    "RunCallbacks": "privet.runs.callbacks",
    "RunPlan": "privet.runs.plan",
    "StepProgress": "privet.runs.methods.protocol",
    "TrainRequest": "privet.runs.request",
    "TrainedRun": "privet.runs.trained_run",
    "attack_run": "privet.runs.attacks.attack",
    "audit_mechanism": "privet.runs.attacks.audit",
    "audit_run": "privet.runs.attacks.audit",
    "open_run": "privet.runs.trained_run",
    "train": "privet.runs.api",
    "vote_at_silo": "privet.runs.pate.teachers",
}


def __getattr__(name: str) -> Any:
    """Load a name when it is first used: the command line needs the table of methods, and not all of PyTorch."""
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'privet.runs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
