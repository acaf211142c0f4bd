"""From private rows to votes: the same at a silo as where all rows are in one place."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from privet.core import InvalidInput, MissingExtra, write_atomically
from privet.data import Table
from privet.ensemble import (
    Estimator,
    InProcess,
    KernelRidge,
    Learner,
    Placement,
    Processes,
    Ray,
    Ridge,
    Stacked,
    most_informative,
    most_typical,
    shards,
    train,
    votes,
)
from privet.pate import Votes
from privet.runs.directory import RunDirectory
from privet.runs.inputs import Data, TrainingInputs
from privet.runs.methods.protocol import FitSession, MethodPlan
from privet.runs.pate.options import PateOptions, StudentName, TeacherName, pate_options
from privet.runs.pate.plan import voting_plan
from privet.runs.pate.vote_file import VoteFile, key_hash, people_hashes, public_digest, silo_name
from privet.runs.payment import rows_digest
from privet.runs.plan import describe_model
from privet.runs.request import TrainRequest
from privet.runs.row_sets import features_of
from privet.runs.scoring import LabeledRows

__all__ = ["store_votes", "stored_votes", "teacher_votes", "vote_at_silo"]

_HIDDEN, _STEPS, _BATCH = 64, 300, 32
_TREES = 50
_PENALTY = 0.2
"""For two classes, by public experience (benchmarks/pate)."""
_VOTES = "votes.json"


def store_votes(plan: MethodPlan, rows: LabeledRows, session: FitSession, options: PateOptions) -> None:
    """Choose the questions, let the teachers vote, and store the counts, as private as the rows, unless they are.

    Args:
        plan: What is asked.
        rows: The private rows; none where the votes came from elsewhere.
        session: Has the public rows, and the directory of the run.
        options: What a teacher is, and where teachers are trained.
    """
    directory, sets = session.directory, session.row_sets
    if directory is None or sets is None or sets.public is None:
        raise InvalidInput("method", "is pate, which needs public rows and the directory of a run")
    if (directory.hidden / _VOTES).exists():
        return
    voting = voting_plan(plan)
    session.on_message("Choosing questions …")
    is_weighed = plan.settings["student"] == StudentName.WEIGHED
    asked = (most_informative if is_weighed else most_typical)(sets.public, voting.questions)
    if sets.votes is not None:
        cast = sets.votes[asked]
    else:
        session.on_message(f"Training {voting.teachers:,} teachers …")
        questions = sets.public[torch.from_numpy(asked)]
        cast = teacher_votes(options, sets.data, session.features(rows.x), questions, voting.labels)
    counts = Votes.cast(cast, labels=voting.labels).counts
    text = json.dumps({"asked": asked.tolist(), "counts": counts.tolist()})
    write_atomically(directory.hidden / _VOTES, text, "out", private=True)


def stored_votes(plan: MethodPlan, directory: RunDirectory) -> tuple[Votes, list[int]]:
    """Return the vote counts of all queries, which are private, and the rows of the queries in the public file.

    Args:
        plan: Plan of PATE.
        directory: Run directory.
    """
    stored = json.loads((directory.hidden / _VOTES).read_text(encoding="utf-8"))
    return Votes(stored["counts"], teachers=plan.settings["teachers"]), stored["asked"]


def teacher_votes(
    options: PateOptions, data: Data | None, features: Tensor, questions: Tensor, classes: int
) -> npt.NDArray[np.int32]:
    """Return what each teacher says of each question; as private as the rows. One teacher learns from all rows.

    Args:
        options: How many teachers there are, what they are, and where they are trained.
        data: The private rows, which are divided among the teachers by what is in them, or by whose they are.
        features: Of these rows.
        questions: Features of the public rows that are asked about.
        classes: How many there are.
    """
    if data is None or data.y is None:
        raise InvalidInput("data", "has no labels", "give rows with the target")
    divided = [np.arange(len(data))] if options.teachers == 1 else shards(data, options.teachers)
    where: Placement = InProcess() if options.jobs == 1 else Processes(options.jobs)
    if options.ray is not None:
        where = Ray(address=None if options.ray == "local" else options.ray)
    learner = _learner(options.teacher, features.shape[1], classes)
    return votes(train(learner, features, data.y, divided, classes=classes, where=where), questions)


def vote_at_silo(request: TrainRequest, people_key: bytes | None, path: Path) -> VoteFile:
    """Train a silo's teachers on its rows, and write their votes on all public rows.

    The file holds what single teachers say, without noise: it is as private as the rows.

    Args:
        request: The silo's rows, the public rows, and the options of PATE.
        people_key: A secret that all silos share and the centre does not have, so that people in two are noticed.
        path: Placement to write.

    Raises:
        InvalidInput: Something cannot be read, or a key is given for rows without users.
    """
    inputs = TrainingInputs.of(request)
    data, public, facts, options = inputs.train, inputs.public, inputs.facts, pate_options(request)
    if data is None or public is None:
        raise InvalidInput("data", "was not read")
    people: frozenset[str] = frozenset()
    if people_key is not None:
        if not isinstance(data, Table):
            raise InvalidInput("people_key", "is for tables with users", "leave it out")
        people = people_hashes(data, people_key)
    with tempfile.TemporaryDirectory() as spare:
        front = describe_model(request, facts, 1).build().front
        features, questions = (features_of(front, x, Path(request.cache or spare)) for x in (data.x, public))
        cast = teacher_votes(options, data, features, questions, len(facts.classes))
    file = VoteFile(
        cast,
        facts.classes,
        public_digest(public, facts.classes),
        silo_name(people_key, rows_digest(data)),
        None if facts.schema is None else facts.schema.user,
        people,
        None if people_key is None else key_hash(people_key),
    )
    file.write(path)
    return file


def _learner(name: TeacherName, features: int, classes: int) -> Learner:
    if name is TeacherName.RIDGE:
        return Ridge() if classes > 2 else Ridge(_PENALTY, level=True)
    if name is TeacherName.KERNEL:
        return KernelRidge()
    if name is TeacherName.NETWORK:
        network = nn.Sequential(nn.Linear(features, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, classes))
        return Stacked(network, steps=_STEPS, batch_size=_BATCH)
    try:
        from sklearn.ensemble import RandomForestClassifier
    except ImportError:
        raise MissingExtra("scikit-learn", "sklearn") from None
    return Estimator(RandomForestClassifier(_TREES))
