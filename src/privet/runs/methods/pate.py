"""PATE (Papernot et al. 2018): teachers learn from private rows and vote on public ones, and a student learns from the
noisy answers. Teachers may be elsewhere: then their votes come as files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from privet.runs.methods.protocol import (
    CardSections,
    FitSession,
    Method,
    MethodBudget,
    MethodPlan,
    PartialRun,
)
from privet.runs.pate.options import NAME, TITLE, PateOptions, pate_options

if TYPE_CHECKING:
    from torch import nn

    from privet.core import Release
    from privet.runs.facts import PublicFacts
    from privet.runs.pipeline import RunResult
    from privet.runs.request import TrainRequest
    from privet.runs.row_sets import LabeledRows
    from privet.training.models import Model, ModelDescription

__all__ = ["PATE"]


def _plan(request: TrainRequest, facts: PublicFacts, share: MethodBudget, model: Model | None) -> MethodPlan:
    from privet.runs.pate.card_sections import other_trials
    from privet.runs.pate.plan import plan_pate

    other_trials(pate_options(request))  # says what is wrong with one, before anything is charged
    return plan_pate(request, facts, share)


def _prepare(plan: MethodPlan, rows: LabeledRows, session: FitSession, request: TrainRequest) -> None:
    from privet.runs.pate.teachers import store_votes

    store_votes(plan, rows, session, pate_options(request))


def _fit(plan: MethodPlan, rows: LabeledRows, session: FitSession) -> Release[nn.Module]:
    """Add noise to the stored votes, and train the student. Guarantee: that of the plan's event and further events."""
    from privet.runs.pate.student import release_student

    return release_student(plan, session)


def _describe(described: ModelDescription, plan: MethodPlan, head: nn.Module) -> ModelDescription:
    from privet.runs.methods.convex import RADIUS
    from privet.training.models import Kernel

    if isinstance(head, Kernel):
        return replace(described, family="kernel", support=len(head.rows))
    return replace(described, family="convex", radius=RADIUS)


def _growth(plan: MethodPlan) -> PartialRun:
    from privet.runs.pate.plan import first_questions, voting_plan

    voting = voting_plan(plan)
    return PartialRun(voting.questions, lambda count: first_questions(voting, count).event, "questions")


def _card_sections(result: RunResult) -> CardSections:
    from privet.runs.pate.card_sections import card_sections

    return card_sections(result)


def _files(result: RunResult) -> Mapping[str, str]:
    from privet.runs.pate.card_sections import answers_csv

    return {"answers.csv": answers_csv(result)}


PATE = Method(
    name=NAME,
    title=TITLE,
    plan=_plan,
    fit=_fit,
    describe=_describe,
    protects_users=True,
    fits_rows=False,
    asks_public_rows=True,
    hold_out=0.1,
    score_line="the student's score on held-out rows",
    options=PateOptions,
    prepare=_prepare,
    growth=_growth,
    card_sections=_card_sections,
    files=_files,
)
