"""A student: learns from public rows and the answers that were released, and may be published."""

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
"""Of the usual model's kernel, in typical distances between rows."""
_PENALTY, _SMOOTHING = 0.3, 3.0
"""Of the usual model, on answers and on labels that spread."""


@dataclass(frozen=True, eq=False)
class Student:
    """What was learned. It follows from released answers and public rows, so that it costs nothing beyond them."""

    model: Ensemble = field(repr=False)
    """An ensemble of one."""

    def labels(self, rows: Tensor) -> npt.NDArray[np.int64]:
        """A class for each row."""
        found = [stretch[:, 0] for stretch in vote_batches(self.model, rows)]
        return np.concatenate(found).astype(np.int64) if found else np.zeros(0, np.int64)

    def margins(self, rows: Tensor) -> npt.NDArray[np.float32]:
        """For each row, how far the best score is above the second: little where the student is not sure."""
        with torch.no_grad():
            best = self.model.scores(rows)[0].topk(2, dim=1).values
        return (best[:, 0] - best[:, 1]).float().numpy()


class StudentTraining(Protocol):
    """A way of making a student."""

    def student(self, rows: Tensor, asked: npt.NDArray[Any], answers: npt.NDArray[Any], classes: int) -> Student:
        """From public rows, the numbers of those that were answered, and the answers."""


@dataclass(frozen=True)
class SupervisedStudent:
    """From the answered rows alone: for tables, and wherever neighbors are often of different classes."""

    learner: Learner | None = None
    """Kernel ridge regression, unless another is given."""

    def student(self, rows: Tensor, asked: npt.NDArray[Any], answers: npt.NDArray[Any], classes: int) -> Student:
        """From public rows, the numbers of those that were answered, and the answers."""
        at, said = _answered(rows, asked, answers, classes)
        learner = self.learner or _usual(rows, _PENALTY)
        return Student(train_one(learner, rows[torch.from_numpy(at)], said, classes=classes))


@dataclass(frozen=True)
class VoteRegression:
    """From noisy counts of votes (`Plan.counts`), by ridge regression: for tables, where many teachers disagree.

    A label keeps only which count is the largest; the counts say by how much. Where the noise is far above the votes,
    a label is worth 2/π of them.
    """

    penalty: float = 4.0
    """Added to the diagonal; for rows of length 1. More noise asks for more of it."""

    def student(self, rows: Tensor, asked: npt.NDArray[Any], counts: Any, classes: int) -> Student:
        """From public rows, the numbers of those that were asked about, and a noisy count for each label."""
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
    """From all public rows: answers spread along a graph, and a model learns the labels that they get.

    For pictures, whose neighbors are mostly of one class. The model smooths what the graph says: with a penalty it
    does not follow single wrong labels. In every further round the graph is drawn anew, with the model's scores beside
    each row's features: rows that the model takes for different classes move apart, and the same answers spread again.
    """

    graph: NeighborGraph = field(default_factory=NeighborGraph)
    learner: Learner | None = None
    """Kernel ridge regression, unless another is given; it needs memory for the square of the number of rows."""
    rounds: int = 3
    """How often labels spread and a model learns them."""
    echo: float = 0.6
    """The weight of the model's scores beside the features, which should have a length of about 1."""

    def __post_init__(self) -> None:
        checked.count("rounds", self.rounds)
        checked.positive("echo", self.echo)

    def student(self, rows: Tensor, asked: npt.NDArray[Any], answers: npt.NDArray[Any], classes: int) -> Student:
        """From public rows, the numbers of those that were answered, and the answers."""
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
        """A model of the rows, by the labels that the answers give where the rows are placed."""
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
    """Rows are public, and so is how far they are from each other: on average, twice their variance, squared."""
    squared = 2 * float((rows - rows.mean(0)).square().sum(1).mean())
    return KernelRidge(penalty, _WIDTH * sqrt(squared) if squared else 1.0)
