"""A student model: it learns from public rows and released answers, and may be published."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from privet.core import InvalidInput, checked
from privet.ensemble.graph import NeighborGraph
from privet.ensemble.learner import Ensemble, Learner
from privet.ensemble.ridge import KernelRidge, Ridge, RidgeModels
from privet.ensemble.train import train_one
from privet.ensemble.votes import vote_batches

__all__ = ["LabelPropagation", "Student", "StudentTraining", "SupervisedStudent", "VoteRegression"]

_WIDTH = 0.6
"""The kernel width of the default model, in typical distances between rows."""
_PENALTY, _SMOOTHING = 0.3, 3.0
"""Ridge penalties of the default model, on answers and on propagated labels."""


@dataclass(frozen=True, eq=False)
class Student:
    """A trained student. It follows from released answers and public rows, so that it has no further privacy cost."""

    model: Ensemble = field(repr=False)
    """An ensemble of one."""

    def labels(self, rows: Tensor) -> npt.NDArray[np.int64]:
        """Return the predicted class of each row.

        Args:
            rows: [rows, features]: the rows to predict.
        """
        found = [stretch[:, 0] for stretch in vote_batches(self.model, rows)]
        return np.concatenate(found).astype(np.int64) if found else np.zeros(0, np.int64)

    def margins(self, rows: Tensor) -> npt.NDArray[np.float32]:
        """Return the difference of the two largest scores of each row: small where the student is not sure.

        Args:
            rows: [rows, features]: the rows to predict.
        """
        with torch.no_grad():
            best = self.model.scores(rows)[0].topk(2, dim=1).values
        return (best[:, 0] - best[:, 1]).float().numpy()


class StudentTraining(Protocol):
    """A method that trains a student."""

    def student(self, rows: Tensor, asked: npt.NDArray[Any], answers: npt.NDArray[Any], classes: int) -> Student:
        """Train a student on public rows and released answers.

        Args:
            rows: [rows, features]: all public rows.
            asked: The indices of the rows that were answered.
            answers: The answer to each of these queries: a class, or what else the method learns from.
            classes: The number of classes.
        """


@dataclass(frozen=True)
class SupervisedStudent:
    """Supervised training on the answered rows alone: for tables, and where neighbors often have different classes."""

    learner: Learner | None = None
    """The learner; kernel ridge regression by default."""

    def student(self, rows: Tensor, asked: npt.NDArray[Any], answers: npt.NDArray[Any], classes: int) -> Student:
        """Train a student on the answered rows.

        Args:
            rows: [rows, features]: all public rows, at least two.
            asked: The indices of the rows that were answered.
            answers: The class of each of these rows, from 0 to classes - 1.
            classes: The number of classes, at least 2.

        Raises:
            InvalidInput: If the rows are not floating-point features, or the indices or answers are empty or out of
                range.
        """
        at, said = _answered(rows, asked, answers, classes)
        learner = self.learner or _usual(rows, _PENALTY)
        return Student(train_one(learner, rows[torch.from_numpy(at)], said, classes=classes))


@dataclass(frozen=True)
class VoteRegression:
    """Ridge regression on noisy vote counts (`Plan.counts`): for tables, where many teachers disagree.

    A label keeps only which count is the largest; the counts say by how much. Where the noise far exceeds the votes, a
    label is worth 2/π of them.
    """

    penalty: float = 4.0
    """The ridge penalty, added to the diagonal; for rows of unit norm. More noise needs a larger one."""

    def student(self, rows: Tensor, asked: npt.NDArray[Any], counts: Any, classes: int) -> Student:
        """Train a student on noisy vote counts.

        Args:
            rows: [rows, features]: all public rows, at least two.
            asked: The indices of the rows that were queried.
            counts: [queries, classes]: the noisy vote counts of each query, as `Plan.counts` released them.
            classes: The number of classes, at least 2.

        Raises:
            InvalidInput: If the rows are not floating-point features, the indices are empty or out of range, or the
                counts have another shape or are not finite.
        """
        found = np.asarray(counts, dtype=np.float64)
        if found.shape != (len(asked), classes) or not np.isfinite(found).all():
            problem = f"have the shape {found.shape}, where {(len(asked), classes)} is wanted, or hold no numbers"
            raise InvalidInput("counts", problem, "give what `Plan.counts` released")
        at, _ = _answered(rows, asked, found.argmax(1), classes)
        wanted = torch.from_numpy(found - found.mean(1, keepdims=True)).to(rows.dtype)
        weights, offset = Ridge(self.penalty).solved(rows[torch.from_numpy(at)], wanted)
        return Student(RidgeModels(weights[None], offset[None]))


@dataclass(frozen=True)
class LabelPropagation:
    """Label propagation over all public rows: answers spread along a graph, and a model learns the propagated labels.

    For images, whose neighbors mostly share a class. The model smooths the propagated labels: with a penalty it does
    not follow single wrong labels. In every further round the graph is built anew, with the model's scores beside each
    row's features: rows that the model assigns to different classes move apart, and the same answers spread again.
    """

    graph: NeighborGraph = field(default_factory=NeighborGraph)
    learner: Learner | None = None
    """The learner; kernel ridge regression by default, whose memory is quadratic in the number of rows."""
    rounds: int = 3
    """The number of rounds of propagation and training."""
    echo: float = 0.6
    """The weight of the model's scores beside the features, which should have about unit norm."""

    def __post_init__(self) -> None:
        checked.count("rounds", self.rounds)
        checked.positive("echo", self.echo)

    def student(self, rows: Tensor, asked: npt.NDArray[Any], answers: npt.NDArray[Any], classes: int) -> Student:
        """Train a student on all public rows.

        Args:
            rows: [rows, features]: all public rows, at least two.
            asked: The indices of the rows that were answered.
            answers: The class of each of these rows, from 0 to classes - 1.
            classes: The number of classes, at least 2.

        Raises:
            InvalidInput: If the rows are not floating-point features, or the indices or answers are empty or out of
                range.
        """
        at, said = _answered(rows, asked, answers, classes)
        learner = self.learner or _usual(rows, _SMOOTHING)
        found = self._taught(learner, rows, rows, at, said, classes)
        for _ in range(self.rounds - 1):
            with torch.no_grad():
                placed = torch.cat([rows, self.echo * found.scores(rows)[0].to(rows.dtype)], dim=1)
            found = self._taught(learner, rows, placed, at, said, classes)
        return Student(found)

    def _taught(
        self,
        learner: Learner,
        rows: Tensor,
        placed: Tensor,
        at: npt.NDArray[np.int64],
        said: npt.NDArray[np.int64],
        classes: int,
    ) -> Ensemble:
        """Train a model on the labels that spread from the answers over the graph of `placed`."""
        shares = self.graph.labels(placed, at, said, classes)
        kept = np.flatnonzero(shares.any(1))
        return train_one(learner, rows[torch.from_numpy(kept)], shares[kept].argmax(1), classes=classes)


def _answered(
    rows: Tensor, asked: npt.NDArray[Any], answers: npt.NDArray[Any], classes: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    checked.count("classes", classes, least=2)
    at, said = np.asarray(asked), np.asarray(answers)
    if not rows.dtype.is_floating_point or rows.ndim != 2 or len(rows) < 2:
        raise InvalidInput("rows", "are not two rows of features or more", "make features of them first")
    if not len(at):
        raise InvalidInput("asked", "is empty", "a student needs an answer: ask more, or with less noise")
    if at.dtype.kind not in "iu" or at.ndim != 1 or not 0 <= at.min() <= at.max() < len(rows):
        raise InvalidInput("asked", f"is not of whole numbers from 0 to {len(rows) - 1}", "number the public rows")
    if said.dtype.kind not in "iu" or said.shape != at.shape or not 0 <= said.min() <= said.max() < classes:
        problem = f"are not one whole number from 0 to {classes - 1} for each row that was asked about"
        raise InvalidInput("answers", problem, "leave out questions without an answer")
    return at.astype(np.int64), said.astype(np.int64)


def _usual(rows: Tensor, penalty: float) -> KernelRidge:
    """Return the default model, with a width relative to the root mean squared distance between the public rows."""
    squared = 2 * float((rows - rows.mean(0)).square().sum(1).mean())
    return KernelRidge(penalty, _WIDTH * sqrt(squared) if squared else 1.0)
