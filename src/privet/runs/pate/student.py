"""The answers, drawn once and stored; and students, which learn from what was released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from privet.core import InvalidInput, Release
from privet.core.random import default_rng
from privet.ensemble import (
    Kernels,
    LabelPropagation,
    RidgeModels,
    Student,
    StudentTraining,
    SupervisedStudent,
    VoteRegression,
)
from privet.pate import GNMax, Plan
from privet.runs.methods.convex import RADIUS
from privet.runs.methods.protocol import FitSession, MethodPlan
from privet.runs.pate.options import StudentName
from privet.runs.pate.plan import ceiling_of, voting_plan
from privet.runs.pate.teachers import stored_votes
from privet.training.models import Kernel, UnitNormLinear

__all__ = ["Answers", "release_student", "stored_answers", "stored_ceiling", "train_student"]

_LEAST_PENALTY, _PENALTY = 0.1, 6.5
"""Of a student that weighs noisy counts, by public experience (benchmarks/pate)."""
_ANSWERS, _CEILING = "answers", "limit"


@dataclass(frozen=True)
class Answers:
    """The queries, by their rows in the public file, and the released answers."""

    rows: tuple[int, ...]
    labels: tuple[int | None, ...]
    counts: tuple[tuple[int, ...], ...] | None = None
    """The noisy counts, where a student weighs them; the labels are their largest."""

    @staticmethod
    def of(stored: dict[str, Any]) -> Answers:
        """Return the answers from their stored form.

        Args:
            stored: The stored value.
        """
        counts = None if stored["counts"] is None else tuple(map(tuple, stored["counts"]))
        labels = stored["labels"] if counts is None else [int(np.argmax(row)) for row in counts]
        return Answers(tuple(stored["rows"]), tuple(labels), counts)

    def first(self, questions: int) -> Answers:
        """Return the first answers.

        Args:
            questions: Number of queries.
        """
        counts = None if self.counts is None else self.counts[:questions]
        return Answers(self.rows[:questions], self.labels[:questions], counts)

    @property
    def known(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The rows that got a label, and their labels."""
        pairs = [(row, label) for row, label in zip(self.rows, self.labels, strict=True) if label is not None]
        return np.array([row for row, _ in pairs], np.int64), np.array([label for _, label in pairs], np.int64)


def release_student(plan: MethodPlan, session: FitSession) -> Release[nn.Module]:
    """Release the answers of the teachers whose votes are stored, and train a student on them.

    Every draw is stored immediately; a resumed run reads it, and draws nothing a second time.

    Args:
        plan: Plan of PATE.
        session: Session of the run.

    Returns:
        The student.

    Raises:
        InvalidInput: The run has no directory, or no query was answered, which is charged nevertheless.

    Guarantee: that of the plan's event, and of its further events, for the plan's unit (`privet.pate.Plan`). A student
    is post-processing of the answers.
    """
    directory = session.directory
    if directory is None:
        raise InvalidInput("method", "is pate, which needs the directory of a run")
    voting, rng = voting_plan(plan), session.rng or default_rng()
    votes, rows = stored_votes(plan, directory)
    stored = directory.stored_release(_ANSWERS)
    if stored is None:
        session.on_message(f"Asking {voting.questions:,} questions …")
        if plan.settings["student"] == StudentName.WEIGHED:
            counts = voting.counts(votes, rng=rng, source=session.source)
            stored = counts.map(lambda drawn: {"rows": rows, "labels": None, "counts": list(map(list, drawn))})
        else:
            labels = voting.release(votes, rng=rng, source=session.source)
            stored = labels.map(lambda drawn: {"rows": rows, "labels": list(drawn), "counts": None})
        directory.store_release(_ANSWERS, stored)
    ceiling = ceiling_of(plan)
    if ceiling is not None and directory.stored_release(_CEILING) is None:
        limit = ceiling.release(votes, rng=rng, source=session.source)
        stored_limit = limit.map(lambda drawn: {"epsilon": drawn.epsilon, "failure": drawn.failure})
        directory.store_release(_CEILING, stored_limit)
    answers = stored.map(Answers.of)
    head = train_student(plan, session, answers.value)
    if head is None:
        problem = "let no question be answered, which is paid for"
        raise InvalidInput("threshold", problem, "ask again with a lower one, or with less noise")
    return answers.map(lambda _: head)


def stored_answers(session: FitSession) -> Release[Answers]:
    """Return the answers of a run that has drawn them.

    Args:
        session: Session of the run.

    Raises:
        InvalidInput: There are no stored answers.

    Guarantee: that of the release that was stored; nothing is drawn here.
    """
    stored = None if session.directory is None else session.directory.stored_release(_ANSWERS)
    if stored is None:
        raise InvalidInput("run", "has no answers")
    return stored.map(Answers.of)


def stored_ceiling(session: FitSession) -> Release[Any] | None:
    """Return the noisy data-dependent privacy cost of the answers, if the run has drawn it.

    Args:
        session: Session of the run.

    Guarantee: that of the release that was stored; nothing is drawn here.
    """
    return None if session.directory is None else session.directory.stored_release(_CEILING)


def train_student(plan: MethodPlan, session: FitSession, answers: Answers) -> Kernel | UnitNormLinear | None:
    """Return a student of some answers, or None if no query was answered. This is post-processing.

    Args:
        plan: Plan of PATE.
        session: Session of the run.
        answers: The released answers.
    """
    public = None if session.row_sets is None else session.row_sets.public
    rows, labels = answers.known
    if public is None or not len(rows):
        return None
    session.on_message(f"A student learns from {len(rows):,} answers …")
    voting = voting_plan(plan)
    if answers.counts is not None:
        return _head(_weighing(voting).student(public, rows, answers.counts, voting.labels))
    teaching: StudentTraining = (
        LabelPropagation() if plan.settings["student"] == StudentName.PROPAGATED else SupervisedStudent()
    )
    return _head(teaching.student(public, rows, labels, voting.labels))


def _weighing(voting: Plan) -> VoteRegression:
    """The penalty is the noise's variance over that of the votes, which is about a third of the teachers, squared."""
    sigma = voting.aggregator.sigma if isinstance(voting.aggregator, GNMax) else 0.0
    return VoteRegression(_LEAST_PENALTY + _PENALTY * (sigma / voting.teachers) ** 2)


def _head(student: Student) -> Kernel | UnitNormLinear:
    model = student.model
    if isinstance(model, RidgeModels):
        # Features have a norm of 1 at most, so that with the offset's 1 nothing is shortened at this radius.
        head = UnitNormLinear(model.weights.shape[1], model.classes, RADIUS)
        head.weight.copy_(RADIUS * torch.cat([model.weights[0].T, model.offsets[0][:, None]], 1))
        return head
    if not isinstance(model, Kernels):
        raise InvalidInput("student", f"is a {type(model).__name__}, which cannot be stored")
    return Kernel.of(model.rows[0], model.coefficients[0], model.offsets[0], model.width)
