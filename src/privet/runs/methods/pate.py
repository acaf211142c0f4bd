"""PATE (Papernot et al. 2018): teachers learn from private rows and vote on public ones, and a student learns from the
noisy answers. Teachers may be elsewhere: then their votes come as files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from privet.core import checked
from privet.core.errors import InvalidInput
from privet.runs.methods.protocol import (
    CardSections,
    FitSession,
    Method,
    MethodBudget,
    MethodOptions,
    MethodPlan,
    PartialRun,
)

if TYPE_CHECKING:
    from torch import nn

    from privet.core.release import Release
    from privet.runs.facts import PublicFacts
    from privet.runs.pipeline import RunResult
    from privet.runs.request import TrainRequest
    from privet.runs.row_sets import LabeledRows
    from privet.training.models import Model, ModelDescription

__all__ = ["PATE", "PateOptions", "StudentName", "TeacherName", "pate_options"]


class TeacherName(StrEnum):
    """What a teacher is."""

    RIDGE = "ridge"
    KERNEL = "kernel"
    NETWORK = "network"
    FOREST = "forest"


class StudentName(StrEnum):
    """How a student learns."""

    AUTO = "auto"
    PROPAGATED = "propagated"
    SUPERVISED = "supervised"
    WEIGHED = "weighed"


@dataclass(frozen=True)
class PateOptions(MethodOptions):
    """The options of PATE alone."""

    teachers: int = 250
    teacher: TeacherName = TeacherName.RIDGE
    student: StudentName = StudentName.AUTO
    questions: int | None = None
    answers: int | None = None
    noise: float | None = None
    threshold: int | None = None
    threshold_noise: float | None = None
    sanitise: bool = False
    """Whether to release what the answers cost these data, with noise."""
    any_cost: bool = False
    """Whether questions and noise, both of which are given, may cost more than ε."""
    beside: tuple[str, ...] = ()
    """Other runs, to be drawn beside this one."""
    jobs: int = 1
    ray: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "teacher", checked.member("teacher", self.teacher, TeacherName))
        object.__setattr__(self, "student", checked.member("student", self.student, StudentName))
        for name in ("teachers", "questions", "answers", "threshold", "jobs"):
            if getattr(self, name) is not None:
                checked.count(name, getattr(self, name))
        for name in ("noise", "threshold_noise"):
            if getattr(self, name) is not None:
                checked.positive(name, getattr(self, name))
        for name in ("answers", "threshold_noise"):
            if self.threshold is None and getattr(self, name) is not None:
                raise InvalidInput(name, "is given without --threshold", "without one every question is answered")
        if self.student is StudentName.WEIGHED and (self.threshold is not None or self.sanitise):
            option = "sanitise" if self.sanitise else "threshold"
            problem = "is given, and the student is weighed: it learns from noisy counts of all questions"
            raise InvalidInput(option, problem, "leave one of them out")

    def student_for(self, facts: PublicFacts) -> StudentName:
        """Return how the student learns, with `auto` decided by public facts."""
        if self.student is not StudentName.AUTO:
            return self.student
        if facts.shape is not None:
            return StudentName.PROPAGATED
        needs_labels = self.threshold is not None or self.sanitise
        return StudentName.SUPERVISED if needs_labels else StudentName.WEIGHED


def pate_options(request: TrainRequest) -> PateOptions:
    """Return the options of PATE in a request.

    Raises:
        InvalidInput: The request is for another method.
    """
    if not isinstance(request.options, PateOptions):
        raise InvalidInput("method", f"is {request.method}", "use pate")
    return request.options


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
    name="pate",
    title="PATE",
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
