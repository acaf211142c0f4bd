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

from privet.cli.teachers.asked import StudentWord, Wanted
from privet.cli.teachers.ballots import gathered
from privet.cli.teachers.inputs import Inputs, features_of
from privet.cli.teachers.planning import Bill, bill_of
from privet.cli.teachers.voting import about, voted
from privet.cli.training.charging import Charges, charged, digest, rows_digest
from privet.cli.training.folder import Stated, Workplace
from privet.cli.training.inputs import Data
from privet.cli.training.parts import HELD, TEST
from privet.cli.training.scores import Rows, measured
from privet.core.errors import InvalidInput
from privet.core.guarantee import Guarantee
from privet.core.random import Rng, SeededRng, default_rng
from privet.core.release import Release
from privet.data import NAMES, Table, hold_out
from privet.ensemble import Propagated, Student, Supervised, Teaching, typical
from privet.ensemble.ridge import Kernels
from privet.pate import Plan, Votes
from privet.report import Score
from privet.report.put import put
from privet.training.models import Described, Family, Kernel, Model

__all__ = ["Answered", "Finished", "Work"]

_SOURCE = "training data"
_PARTS = (0.25, 0.5, 1.0)
"""Of the questions: a student that had asked so many, which costs nothing beyond all of them."""


@dataclass(frozen=True)
class Answered:
    """The questions, by their rows in the public file, and the released answers."""

    rows: tuple[int, ...]
    labels: tuple[int | None, ...]

    def first(self, questions: int) -> Answered:
        """The first of them."""
        return Answered(self.rows[:questions], self.labels[:questions])

    @property
    def known(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The rows that got a label, and the labels."""
        found = [(row, label) for row, label in zip(self.rows, self.labels, strict=True) if label is not None]
        return np.array([row for row, _ in found], np.int64), np.array([label for _, label in found], np.int64)


@dataclass(frozen=True, eq=False)
class Finished:
    """Everything that a card is made of."""

    wanted: Wanted
    command: str
    inputs: Inputs
    bill: Bill
    guarantee: Guarantee
    votes: Votes
    answers: Release[Answered]
    apart: bool
    """Whether it was checked that nobody is in two silos."""
    student: Model
    described: Described
    public: tuple[tuple[int, Release[Score]], ...]
    """On public rows, for students that had asked so many."""
    paid: Release[Score] | None
    limit: Release[Any] | None
    budget: tuple[str, tuple[str, ...], str] | None


@dataclass
class Work:
    """One run. What it tells on its way is public."""

    wanted: Wanted
    place: Workplace[Wanted]
    command: str
    resuming: bool
    confirm: Callable[[Wanted, Inputs, Bill, Guarantee], None]
    tell: Callable[[str], None]
    apart: bool = False

    def done(self) -> Finished:
        """Do all of it; an interruption leaves a folder from which it goes on."""
        wanted = self.wanted
        rng: Rng = default_rng() if wanted.seed is None else SeededRng(wanted.seed)
        self.tell(f"Reading {wanted.title} …")
        inputs = Inputs.of(wanted)
        held: Data | None = None
        cast = self._gathered(inputs)
        teachers = wanted.teachers if cast is None else cast.shape[1]
        bill = bill_of(wanted, inputs, teachers)
        if bill.scoring is not None and inputs.private is not None:
            train, held = _split(inputs.private, wanted.hold_out)
            inputs = replace(inputs, private=train)
        guarantee = bill.guarantee
        begun = self.place.found() if self.resuming else None
        now = _stated(wanted, inputs, bill, None if begun is None else begun.stated.key)
        if begun is None:
            self.confirm(wanted, inputs, bill, guarantee)
        with charged(wanted, self.place, self.command, bill, now, begun) as charges:
            front = inputs.front()
            self.tell("Choosing questions …")
            public = features_of(front, inputs.public, self._cache)
            asked = typical(public, bill.plan.questions)
            votes = self._votes(inputs, bill, front, public, asked, cast)
            answers = self._answers(bill, votes, asked, charges, rng)
            limit = self._limit(bill, votes, charges, rng)
            students = self._students(inputs, public, answers, bill.plan)
            model, described = _model(inputs, front, students[-1][1])
            scores = tuple(self._scores(inputs, front, answers, students))
            paid = self._paid(bill, inputs, model, held, answers, charges, rng)
            charges.commit()
        budget = None if wanted.ledger is None else (wanted.ledger, charges.entries, charges.head or "")
        return Finished(
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
        )

    @property
    def _cache(self) -> Path:
        return Path(self.wanted.cache) if self.wanted.cache is not None else self.place.hidden / "features"

    def _gathered(self, inputs: Inputs) -> npt.NDArray[np.int32] | None:
        if not self.wanted.votes:
            return None
        found, self.apart = gathered(
            [Path(each) for each in self.wanted.votes], inputs.classes, about(inputs.public, inputs.classes)
        )
        return found.cast

    def _votes(
        self,
        inputs: Inputs,
        bill: Bill,
        front: torch.nn.Module,
        public: Tensor,
        asked: npt.NDArray[np.int64],
        cast: npt.NDArray[np.int32] | None,
    ) -> Votes:
        """The counts of all questions; those of a run that was stopped are kept, and are not counted again."""
        kept, plan = self.place.hidden / "votes.json", bill.plan
        if kept.exists():
            return Votes(json.loads(kept.read_text(encoding="utf-8")), teachers=plan.teachers)
        if cast is not None:
            ballots = cast[asked]
        else:
            if inputs.private is None:
                raise InvalidInput("data", "was not read")
            self.tell(f"Training {plan.teachers:,} teachers …")
            questions = public[torch.from_numpy(asked)]
            ballots = voted(self.wanted, inputs.private, front, questions, plan.labels, self._cache)
        votes = Votes.cast(ballots, labels=plan.labels)
        put(kept, json.dumps(votes.counts.tolist()), "out", private=True)
        return votes

    def _answers(
        self, bill: Bill, votes: Votes, asked: npt.NDArray[np.int64], charges: Charges, rng: Rng
    ) -> Release[Answered]:
        found = self.place.kept("answers")
        if found is None:
            self.tell(f"Asking {bill.plan.questions:,} questions …")
            charges.draw()
            labels = bill.plan.release(votes, rng=rng, source=_SOURCE)
            found = labels.map(lambda each: {"rows": asked.tolist(), "labels": list(each)})
            self.place.keep("answers", found)
        return found.map(lambda said: Answered(tuple(said["rows"]), tuple(said["labels"])))

    def _limit(self, bill: Bill, votes: Votes, charges: Charges, rng: Rng) -> Release[Any] | None:
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
        self, inputs: Inputs, public: Tensor, answers: Release[Answered], plan: Plan
    ) -> list[tuple[int, Student]]:
        """Students after some of the questions, and after all: post-processing of what was released."""
        pictures = inputs.shape is not None
        word = self.wanted.student
        spreads = word is StudentWord.PROPAGATED or (word is StudentWord.AUTO and pictures)
        teaching: Teaching = Propagated() if spreads else Supervised()
        counts = sorted({max(round(part * plan.questions), 1) for part in _PARTS}) if inputs.test is not None else []
        found = []
        for questions in dict.fromkeys([*counts, plan.questions]):
            rows, labels = answers.value.first(questions).known
            if not len(rows):
                continue
            self.tell(f"A student learns from {len(rows):,} answers …")
            found.append((questions, teaching.student(public, rows, labels, len(inputs.classes))))
        if not found:
            problem = "let no question be answered, which is paid for"
            raise InvalidInput("threshold", problem, "ask again with a lower one, or with less noise")
        return found

    def _scores(
        self,
        inputs: Inputs,
        front: torch.nn.Module,
        answers: Release[Answered],
        students: list[tuple[int, Student]],
    ) -> Iterator[tuple[int, Release[Score]]]:
        if inputs.test is None:
            return
        rows = Rows(features_of(front, inputs.test.x, self._cache), torch.from_numpy(np.asarray(inputs.test.y)), None)
        for questions, student in students:
            for score in measured(_head(student), rows, len(inputs.classes), TEST):
                yield questions, answers.map(lambda _, score=score: score)  # type: ignore[misc]

    def _paid(
        self,
        bill: Bill,
        inputs: Inputs,
        model: Model,
        held: Data | None,
        answers: Release[Answered],
        charges: Charges,
        rng: Rng,
    ) -> Release[Score] | None:
        if bill.scoring is None or held is None:
            return None
        found = self.place.kept("score")
        if found is None:
            charges.draw()
            users = held.users if isinstance(held, Table) else None
            features = features_of(model.front, held.x, self._cache)
            rows = Rows(features, torch.from_numpy(np.asarray(held.y)), None, users)
            score = bill.scoring.release(model.head, rows, rng=rng, source=_SOURCE, on=HELD)
            found = Release.join(answers, score).map(lambda both: both[1].to_json())
            self.place.keep("score", found)
        return found.map(Score.from_json)


def _split(data: Data, share: float) -> tuple[Data, Data]:
    if isinstance(data, Table):
        return hold_out(data, share, key="privet pate")
    return hold_out(data, share, key="privet pate")


def _head(student: Student) -> Kernel:
    found = student.model
    if not isinstance(found, Kernels):
        raise InvalidInput("student", f"is a {type(found).__name__}, which cannot be stored")
    return Kernel.of(found.rows[0], found.coefficients[0], found.offsets[0], found.width)


def _model(inputs: Inputs, front: torch.nn.Module, student: Student) -> tuple[Model, Described]:
    head = _head(student)
    schema = None if inputs.schema is None else inputs.schema.to_toml()
    described = Described("kernel", inputs.classes, schema, inputs.shape, inputs.peak, support=len(head.rows))
    return Model(front, head, Family.LINEAR), described


def _stated(wanted: Wanted, inputs: Inputs, bill: Bill, key: str | None) -> Stated:
    """What a run is begun with."""
    schema = None if inputs.schema is None else inputs.schema.to_toml()
    asked = about(inputs.public, inputs.classes)
    facts = repr((schema, inputs.classes, inputs.shape, inputs.rows, str(bill.unit), bill.delta, asked, wanted.teacher))
    key = key or secrets.token_hex(16)
    found = hmac.new(bytes.fromhex(key), b"privet files", hashlib.sha256)
    private = [wanted.data] if wanted.data and wanted.data not in NAMES else []
    for path in (*private, *wanted.votes, *([wanted.test] if wanted.test else [])):
        found.update(digest(Path(path)))
    if wanted.data in NAMES:
        found.update(rows_digest(inputs.private) + rows_digest(inputs.test))
    return Stated(bill.event.to_json(), hashlib.sha256(facts.encode()).hexdigest(), found.hexdigest(), key)
