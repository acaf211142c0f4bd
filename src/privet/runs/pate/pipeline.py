"""A run from the rows, or from files of votes, to a student: read, price, confirm, charge, vote, release, learn."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from privet.core.atomic_write import write_atomically
from privet.core.disclosure import Typed
from privet.core.errors import InvalidInput
from privet.core.guarantee import Guarantee
from privet.core.random import Rng, SeededRng, default_rng
from privet.core.release import Release
from privet.core.unit import Whose
from privet.data import NAMES, Table, hold_out
from privet.data.split import SPLIT_VERSION
from privet.ensemble import (
    LabelPropagation,
    Student,
    StudentTraining,
    SupervisedStudent,
    VoteRegression,
    most_informative,
    most_typical,
)
from privet.ensemble.ridge import Kernels, RidgeModels
from privet.pate import GNMax, Plan, Votes
from privet.report import Score, Trial, load, trials_of
from privet.runs.directory import RunDirectory, RunIdentity
from privet.runs.inputs import Data
from privet.runs.methods.convex import RADIUS
from privet.runs.pate.inputs import PateInputs, cached_features
from privet.runs.pate.plan import PatePlan, plan_pate
from privet.runs.pate.request import PateRequest, StudentName
from privet.runs.pate.teachers import public_digest, teacher_votes
from privet.runs.pate.vote_file import gather_votes
from privet.runs.payment import Payment, file_digest, public_rows_digest, reserve_payment, rows_digest
from privet.runs.row_sets import HELD, TEST
from privet.runs.scoring import LabeledRows, score_exactly
from privet.training.models import Family, Kernel, Model, ModelDescription, UnitNormLinear

__all__ = ["Answered", "PateResult", "PateRun"]

_SOURCE = "training data"
_PARTS = (0.25, 0.5, 1.0)
"""Of the questions: a student that had asked so many, which costs nothing beyond all of them."""
_LEAST_PENALTY, _PENALTY = 0.1, 6.5
"""Of a student that weighs noisy counts, by public experience (benchmarks/pate)."""


@dataclass(frozen=True)
class Answered:
    """The questions, by their rows in the public file, and the released answers."""

    rows: tuple[int, ...]
    labels: tuple[int | None, ...]
    counts: tuple[tuple[int, ...], ...] | None = None
    """The noisy counts, where a student weighs them; the labels are their largest."""

    @staticmethod
    def of(said: dict[str, Any]) -> Answered:
        """From what was kept."""
        counts = None if said["counts"] is None else tuple(map(tuple, said["counts"]))
        labels = said["labels"] if counts is None else [int(np.argmax(each)) for each in counts]
        return Answered(tuple(said["rows"]), tuple(labels), counts)

    def first(self, questions: int) -> Answered:
        """The first of them."""
        counts = None if self.counts is None else self.counts[:questions]
        return Answered(self.rows[:questions], self.labels[:questions], counts)

    @property
    def known(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The rows that got a label, and the labels."""
        found = [(row, label) for row, label in zip(self.rows, self.labels, strict=True) if label is not None]
        return np.array([row for row, _ in found], np.int64), np.array([label for _, label in found], np.int64)


@dataclass(frozen=True, eq=False)
class PateResult:
    """Everything that a card is made of."""

    wanted: PateRequest
    command: str
    inputs: PateInputs
    bill: PatePlan
    guarantee: Guarantee
    votes: Votes
    answers: Release[Answered]
    apart: bool
    """Whether it was checked that nobody is in two silos."""
    student: Model
    described: ModelDescription
    public: tuple[tuple[int, Release[Score]], ...]
    """On public rows, for students that had asked so many."""
    paid: Release[Score] | None
    limit: Release[Any] | None
    budget: tuple[str, tuple[str, ...], str] | None
    stored: tuple[Typed[Trial], ...]
    """Other runs, to be drawn beside this one."""
    units: int | None = None
    """The number of units in the private data, which may be private itself; None where the data are elsewhere."""


@dataclass
class PateRun:
    """One run. What it tells on its way is public."""

    wanted: PateRequest
    place: RunDirectory[PateRequest]
    command: str
    resuming: bool
    confirm: Callable[[PateRequest, PateInputs, PatePlan, Guarantee], None]
    tell: Callable[[str], None]
    apart: bool = False

    def done(self) -> PateResult:
        """Do all of it; an interruption leaves a folder from which it goes on."""
        wanted = self.wanted
        rng: Rng = default_rng() if wanted.seed is None else SeededRng(wanted.seed)
        self.tell(f"Reading {wanted.title} …")
        inputs = PateInputs.of(wanted)
        stored = tuple(each for folder in wanted.beside for each in trials_of(Path(folder).name, load(Path(folder))))
        held: Data | None = None
        cast = self._gathered(inputs)
        teachers = wanted.teachers if cast is None else cast.shape[1]
        bill = plan_pate(wanted, inputs, teachers)
        units = _units(inputs)
        if bill.scoring is not None and inputs.private is not None:
            train, held = _split(inputs.private, wanted.hold_out)
            inputs = replace(inputs, private=train)
        guarantee = bill.guarantee
        begun = self.place.found() if self.resuming else None
        now = _stated(wanted, inputs, bill, None if begun is None else begun.stated.key)
        if begun is None:
            self.confirm(wanted, inputs, bill, guarantee)
        with reserve_payment(wanted, self.place, self.command, bill, now, begun) as charges:
            front = inputs.front()
            self.tell("Choosing questions …")
            public = cached_features(front, inputs.public, self._cache)
            votes, asked = self._votes(inputs, bill, front, public, cast)
            answers = self._answers(bill, votes, asked, charges, rng, weighs=self._weighs(inputs))
            limit = self._limit(bill, votes, charges, rng)
            students = self._students(inputs, public, answers, bill.plan)
            model, described = _model(inputs, front, students[-1][1])
            scores = tuple(self._scores(inputs, front, answers, students))
            paid = self._paid(bill, inputs, model, held, answers, charges, rng)
            charges.commit()
        budget = None if wanted.budget is None else (wanted.budget, charges.entries, charges.head or "")
        return PateResult(
            wanted,
            self.command,
            inputs,
            bill,
            guarantee,
            votes,
            answers,
            self.apart,
            model,
            described,
            scores,
            paid,
            limit,
            budget,
            stored,
            units,
        )

    def _weighs(self, inputs: PateInputs) -> bool:
        return self.wanted.taught(pictures=inputs.shape is not None) is StudentName.WEIGHED

    @property
    def _cache(self) -> Path:
        return Path(self.wanted.cache) if self.wanted.cache is not None else self.place.hidden / "features"

    def _gathered(self, inputs: PateInputs) -> npt.NDArray[np.int32] | None:
        if not self.wanted.votes:
            return None
        found, self.apart = gather_votes(
            [Path(each) for each in self.wanted.votes],
            inputs.classes,
            public_digest(inputs.public, inputs.classes),
            len(inputs.public),
            None if inputs.unit.whose is Whose.EXAMPLE or inputs.schema is None else inputs.schema.user,
        )
        return found

    def _votes(
        self,
        inputs: PateInputs,
        bill: PatePlan,
        front: torch.nn.Module,
        public: Tensor,
        cast: npt.NDArray[np.int32] | None,
    ) -> tuple[Votes, npt.NDArray[np.int64]]:
        """The counts of all questions, and these; those of a run that was stopped are kept, and not counted again."""
        kept, plan = self.place.hidden / "votes.json", bill.plan
        if kept.exists():
            said = json.loads(kept.read_text(encoding="utf-8"))
            return Votes(said["counts"], teachers=plan.teachers), np.array(said["asked"], dtype=np.int64)
        asked = (most_informative if self._weighs(inputs) else most_typical)(public, plan.questions)
        if cast is not None:
            ballots = cast[asked]
        else:
            if inputs.private is None:
                raise InvalidInput("data", "was not read")
            self.tell(f"Training {plan.teachers:,} teachers …")
            questions = public[torch.from_numpy(asked)]
            ballots = teacher_votes(self.wanted, inputs.private, front, questions, plan.labels, self._cache)
        votes = Votes.cast(ballots, labels=plan.labels)
        said = {"asked": asked.tolist(), "counts": votes.counts.tolist()}
        write_atomically(kept, json.dumps(said), "out", private=True)
        return votes, asked

    def _answers(
        self, bill: PatePlan, votes: Votes, asked: npt.NDArray[np.int64], charges: Payment, rng: Rng, *, weighs: bool
    ) -> Release[Answered]:
        found = self.place.kept("answers")
        if found is None:
            self.tell(f"Asking {bill.plan.questions:,} questions …")
            charges.draw()
            rows = asked.tolist()
            if weighs:
                counts = bill.plan.counts(votes, rng=rng, source=_SOURCE)
                found = counts.map(lambda each: {"rows": rows, "labels": None, "counts": list(map(list, each))})
            else:
                labels = bill.plan.release(votes, rng=rng, source=_SOURCE)
                found = labels.map(lambda each: {"rows": rows, "labels": list(each), "counts": None})
            self.place.keep("answers", found)
        return found.map(Answered.of)

    def _limit(self, bill: PatePlan, votes: Votes, charges: Payment, rng: Rng) -> Release[Any] | None:
        if bill.ceiling is None:
            return None
        found = self.place.kept("limit")
        if found is None:
            charges.draw()
            released = bill.ceiling.release(votes, rng=rng, source=_SOURCE)
            found = released.map(lambda each: {"epsilon": each.epsilon, "failure": each.failure})
            self.place.keep("limit", found)
        return found

    def _students(
        self, inputs: PateInputs, public: Tensor, answers: Release[Answered], plan: Plan
    ) -> list[tuple[int, Student]]:
        """Students after some of the questions, and after all: post-processing of what was released."""
        word, classes = self.wanted.taught(pictures=inputs.shape is not None), len(inputs.classes)
        teaching: StudentTraining = LabelPropagation() if word is StudentName.PROPAGATED else SupervisedStudent()
        counts = sorted({max(round(part * plan.questions), 1) for part in _PARTS}) if inputs.test is not None else []
        found = []
        for questions in dict.fromkeys([*counts, plan.questions]):
            first = answers.value.first(questions)
            rows, labels = first.known
            if not len(rows):
                continue
            self.tell(f"A student learns from {len(rows):,} answers …")
            if first.counts is not None:
                found.append((questions, _weighing(plan).student(public, rows, first.counts, classes)))
            else:
                found.append((questions, teaching.student(public, rows, labels, classes)))
        if not found:
            problem = "let no question be answered, which is paid for"
            raise InvalidInput("threshold", problem, "ask again with a lower one, or with less noise")
        return found

    def _scores(
        self,
        inputs: PateInputs,
        front: torch.nn.Module,
        answers: Release[Answered],
        students: list[tuple[int, Student]],
    ) -> Iterator[tuple[int, Release[Score]]]:
        if inputs.test is None:
            return
        answers_of, digest_of = (
            torch.from_numpy(np.asarray(inputs.test.y)),
            public_rows_digest(inputs.test, inputs.classes),
        )
        features, by_user = cached_features(front, inputs.test.x, self._cache), inputs.unit.whose is Whose.USER
        rows = LabeledRows(features, answers_of, None, digest=digest_of, by_user=by_user)
        for questions, student in students:
            for score in score_exactly(_head(student), rows, len(inputs.classes), TEST):
                yield questions, answers.map(lambda _, score=score: score)  # type: ignore[misc]

    def _paid(
        self,
        bill: PatePlan,
        inputs: PateInputs,
        model: Model,
        held: Data | None,
        answers: Release[Answered],
        charges: Payment,
        rng: Rng,
    ) -> Release[Score] | None:
        if bill.scoring is None or held is None:
            return None
        found = self.place.kept("score")
        if found is None:
            charges.draw()
            users = held.users if isinstance(held, Table) else None
            features = cached_features(model.front, held.x, self._cache)
            rows = LabeledRows(features, torch.from_numpy(np.asarray(held.y)), None, users)
            score = bill.scoring.release(model.head, rows, rng=rng, source=_SOURCE, on=HELD)
            found = Release.join(answers, score).map(lambda both: both[1].to_json())
            self.place.keep("score", found)
        return found.map(Score.from_json)


def _units(inputs: PateInputs) -> int | None:
    data = inputs.private
    if data is None:
        return None
    users = data.users if isinstance(data, Table) and inputs.unit.whose is Whose.USER else None
    return len(data) if users is None else len(np.unique(users))


def _split(data: Data, share: float) -> tuple[Data, Data]:
    if isinstance(data, Table):
        return hold_out(data, share, key="privet pate")
    return hold_out(data, share, key="privet pate")


def _weighing(plan: Plan) -> VoteRegression:
    """The penalty is the noise's variance over that of the votes, which is about a third of the teachers, squared."""
    sigma = plan.aggregator.sigma if isinstance(plan.aggregator, GNMax) else 0.0
    return VoteRegression(_LEAST_PENALTY + _PENALTY * (sigma / plan.teachers) ** 2)


def _head(student: Student) -> Kernel | UnitNormLinear:
    found = student.model
    if isinstance(found, RidgeModels):
        # Features have a length of 1 at most, so that with the offset's 1 nothing is shortened at this radius.
        head = UnitNormLinear(found.weights.shape[1], found.classes, RADIUS)
        head.weight.copy_(RADIUS * torch.cat([found.weights[0].T, found.offsets[0][:, None]], 1))
        return head
    if not isinstance(found, Kernels):
        raise InvalidInput("student", f"is a {type(found).__name__}, which cannot be stored")
    return Kernel.of(found.rows[0], found.coefficients[0], found.offsets[0], found.width)


def _model(inputs: PateInputs, front: torch.nn.Module, student: Student) -> tuple[Model, ModelDescription]:
    head = _head(student)
    schema = None if inputs.schema is None else inputs.schema.to_toml()
    said = ModelDescription("kernel", inputs.classes, schema, inputs.shape, inputs.peak)
    if isinstance(head, Kernel):
        described = replace(said, support=len(head.rows))
    else:
        described = replace(said, family="convex", radius=RADIUS)
    return Model(front, head, Family.LINEAR), described


def _stated(wanted: PateRequest, inputs: PateInputs, bill: PatePlan, key: str | None) -> RunIdentity:
    """What a run is begun with."""
    schema = None if inputs.schema is None else inputs.schema.without_sources().to_toml()
    asked = public_digest(inputs.public, inputs.classes)
    public = (schema, inputs.classes, inputs.shape, inputs.rows, str(bill.unit), bill.delta, asked, wanted.teacher)
    facts = repr(public if bill.scoring is None else (*public, SPLIT_VERSION))
    key = key or secrets.token_hex(16)
    found = hmac.new(bytes.fromhex(key), b"privet files", hashlib.sha256)
    private = [wanted.data] if wanted.data and wanted.data not in NAMES else []
    for path in (*private, *wanted.votes, *([wanted.test] if wanted.test else [])):
        found.update(file_digest(Path(path)))
    if wanted.data in NAMES:
        found.update(rows_digest(inputs.private) + rows_digest(inputs.test))
    return RunIdentity(bill.event.to_json(), hashlib.sha256(facts.encode()).hexdigest(), found.hexdigest(), key)
