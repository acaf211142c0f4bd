"""Runs as library objects: request, read, plan, charge, fit, score, card and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privet.core import lazy_attributes as _lazy_attributes

if TYPE_CHECKING:
    from privet.runs.api import train
    from privet.runs.attacks.attack import AttackResult, attack_run
    from privet.runs.attacks.audit import AuditResult, audit_mechanism, audit_run
    from privet.runs.attacks.linkage_files import LinkageFiles as LinkageFiles
    from privet.runs.attacks.linkage_files import columns_of as columns_of
    from privet.runs.attacks.linkage_files import renamed as renamed
    from privet.runs.attacks.linkage_files import told as told
    from privet.runs.attacks.outcomes import nonmembers_needed as nonmembers_needed
    from privet.runs.callbacks import PlannedRun, RunCallbacks
    from privet.runs.directory import RunDirectory as RunDirectory
    from privet.runs.directory import default_directory as default_directory
    from privet.runs.facts import PublicFacts
    from privet.runs.methods import (
        METHODS,
        FitSession,
        Method,
        MethodBudget,
        MethodOptions,
        MethodPlan,
        PartialRun,
        StepProgress,
    )
    from privet.runs.outputs import write_outputs as write_outputs
    from privet.runs.pate.teachers import vote_at_silo
    from privet.runs.pipeline import TrainingRun as TrainingRun
    from privet.runs.plan import RunPlan
    from privet.runs.predictions import predict_rows as predict_rows
    from privet.runs.request import TrainRequest
    from privet.runs.row_sets import LabeledRows
    from privet.runs.scoring import score_advice as score_advice
    from privet.runs.start import hold_directory as hold_directory
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

# The command line needs the table of methods, and not all of PyTorch.
__getattr__ = _lazy_attributes(
    __name__,
    {
        "api": ("train",),
        "attacks.attack": ("AttackResult", "attack_run"),
        "attacks.audit": ("AuditResult", "audit_mechanism", "audit_run"),
        "attacks.linkage_files": ("LinkageFiles", "columns_of", "renamed", "told"),
        "attacks.outcomes": ("nonmembers_needed",),
        "callbacks": ("PlannedRun", "RunCallbacks"),
        "directory": ("RunDirectory", "default_directory"),
        "facts": ("PublicFacts",),
        "methods": (
            "METHODS",
            "FitSession",
            "Method",
            "MethodBudget",
            "MethodOptions",
            "MethodPlan",
            "PartialRun",
            "StepProgress",
        ),
        "outputs": ("write_outputs",),
        "pate.teachers": ("vote_at_silo",),
        "pipeline": ("TrainingRun",),
        "plan": ("RunPlan",),
        "predictions": ("predict_rows",),
        "request": ("TrainRequest",),
        "row_sets": ("LabeledRows",),
        "scoring": ("score_advice",),
        "start": ("hold_directory",),
        "trained_run": ("TrainedRun", "open_run"),
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)
