"""From private rows to votes: the same at a silo as where all rows are in one place."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from privet.core.errors import InvalidInput, MissingExtra
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
    shards,
    train,
    votes,
)
from privet.runs.inputs import Data
from privet.runs.pate.inputs import cached_features
from privet.runs.pate.request import PateRequest, TeacherName

__all__ = ["public_digest", "teacher_votes"]

_HIDDEN, _STEPS, _BATCH = 64, 300, 32
_TREES = 50
_PENALTY = 0.2
"""For two classes, by public experience (benchmarks/pate)."""


def public_digest(public: npt.NDArray[Any], classes: tuple[str, ...]) -> str:
    """A hash of what is asked: the public rows, as the schema reads them, and the labels."""
    found = hashlib.sha256(repr((public.shape, public.dtype.str, classes)).encode())
    found.update(np.ascontiguousarray(public).data)
    return found.hexdigest()


def teacher_votes(
    wanted: PateRequest, private: Data, front: nn.Module, asked: Tensor, classes: int, cache: Path
) -> npt.NDArray[np.int32]:
    """What each teacher says of each question; as private as the rows. One teacher learns from all rows."""
    features = cached_features(front, private.x, cache)
    if private.y is None:
        raise InvalidInput("data", "has no labels", "give rows with the target")
    divided = [np.arange(len(private))] if wanted.teachers == 1 else shards(private, wanted.teachers)
    where: Placement = InProcess() if wanted.jobs == 1 else Processes(wanted.jobs)
    if wanted.ray is not None:
        where = Ray(address=None if wanted.ray == "local" else wanted.ray)
    learner = _learner(wanted.teacher, features.shape[1], classes)
    found = train(learner, features, private.y, divided, classes=classes, where=where)
    return votes(found, asked)


def _learner(word: TeacherName, features: int, classes: int) -> Learner:
    if word is TeacherName.RIDGE:
        return Ridge() if classes > 2 else Ridge(_PENALTY, level=True)
    if word is TeacherName.KERNEL:
        return KernelRidge()
    if word is TeacherName.NETWORK:
        network = nn.Sequential(nn.Linear(features, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, classes))
        return Stacked(network, steps=_STEPS, batch_size=_BATCH)
    try:
        from sklearn.ensemble import RandomForestClassifier
    except ImportError:
        raise MissingExtra("scikit-learn", "sklearn") from None
    return Estimator(RandomForestClassifier(_TREES))
