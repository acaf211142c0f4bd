"""Audit any method by fitting its plan again and again, with and without one row: an audit of the code."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from privet.accounting import epsilon as price
from privet.audit import audit_draws
from privet.core import InvalidInput, Neighbours, Trust, Whose
from privet.report import TrainingCard
from privet.runs.attacks.epsilon_ladder import LadderResult
from privet.runs.facts import PublicFacts
from privet.runs.methods.protocol import FitSession, MethodPlan, on_features
from privet.runs.methods.registry import METHODS
from privet.runs.plan_file import read_plan
from privet.runs.scoring import LabeledRows
from privet.training.models import Model, restore

__all__ = ["REFITTED", "refit_audit"]

REFITTED = "the same plan, on made-up rows: another run"
_ROWS = 4
"""That both data sets have; the neighbor has one more."""
_LEAST, _MOST, _SECONDS = 64, 2000, 20.0
"""How many fits of each data set, and for how long."""


def refit_audit(run: Path, card: TrainingCard, *, confidence: float) -> LadderResult:
    """Fit a run's plan on two neighboring synthetic data sets, and tell the released models apart.

    The adversary chose both data sets and sees the scores of the released model (`privet.audit.audit_draws`).

    Args:
        run: The folder of the run.
        card: Its card.
        confidence: Of the lower bound on ε.

    Raises:
        InvalidInput: The run was tuned, or its unit is not one row that is added or removed.
    """
    plan = read_plan(run, card)
    unit = plan.unit
    if plan.methods and not METHODS[plan.methods[0].method].fits_rows:
        problem = f"is by {card.method.value}, whose model is not fitted on the private rows"
        raise InvalidInput("run", problem, "attack it instead: privet attack RUN")
    if plan.tuning is not None or (unit.whose, unit.neighbours, unit.trust) != (
        Whose.EXAMPLE,
        Neighbours.ADD_REMOVE,
        Trust.CENTRAL,
    ):
        problem = "has no canaries, and its plan cannot be tried again: it was tuned, or does not protect single rows"
        raise InvalidInput("run", problem, "train it with: privet train … --audit")
    own = plan.plan_of(plan.methods[0].method)
    outputs = _fitted(run, own)
    delta = card.privacy.guarantee.value.delta
    evidence = audit_draws(*outputs, unit=unit, delta=delta, confidence=confidence)
    evidence = replace(evidence, attack="chosen rows, fitted again")
    guarantee = price(own.event, delta, unit=unit)
    return LadderResult(own.event, guarantee, (evidence,), (f"{evidence.attack}: sees the model's scores.",), REFITTED)


def _fitted(run: Path, plan: MethodPlan) -> tuple[Tensor, Tensor]:
    """Scores of models that were fitted with the further row, and without it."""
    described = restore(run)[1]
    fresh, classes = described.build(), described.classes
    facts = PublicFacts("made-up rows", described.table, classes, described.shape, described.peak, None)
    x, y = _rows(fresh, len(classes))
    session = FitSession(facts, on_features(fresh), plan.unit, "made-up rows")
    outputs: tuple[list[Tensor], list[Tensor]] = [], []
    start = time.monotonic()
    while len(outputs[0]) < _MOST and (len(outputs[0]) < _LEAST or time.monotonic() - start < _SECONDS):
        for kept, rows in zip(outputs, (_ROWS + 1, _ROWS), strict=True):
            fitted = METHODS[plan.method].fit(plan, LabeledRows(x[:rows], y[:rows], None), session)
            with torch.no_grad():
                kept.append(fitted.value(x[[0, -1]]).flatten().double())
    present, absent = (torch.stack(scores).nan_to_num(0.0, 1e6, -1e6) for scores in outputs)
    return present, absent


def _rows(model: Model, classes: int) -> tuple[Tensor, Tensor]:
    """Rows of zeros, and then the one of norm 1 that only one of the data sets has."""
    x = torch.zeros(_ROWS + 1, model.features)
    x[-1] = 1 / np.sqrt(model.features)
    y = torch.zeros(_ROWS + 1, dtype=torch.int64 if classes else torch.float32)
    y[-1] = 1
    return x, y
