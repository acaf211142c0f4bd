"""Teachers in closed form: ridge regression to ±1 for each class, with a linear or a Gaussian kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from privet.core import checked
from privet.ensemble.learner import EnsembleTask

__all__ = ["KernelRidge", "Kernels", "Ridge", "RidgeModels"]


class _WithOffsets:
    """Models that add one offset for each member and class to their scores."""

    offsets: Tensor
    """[members, classes]"""

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.offsets)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return self.offsets.shape[1]


@dataclass(frozen=True, eq=False)
class RidgeModels(_WithOffsets):
    """One linear model for each member: scores are x · weights + offset."""

    weights: Tensor = field(repr=False)
    """[members, features, classes]"""
    offsets: Tensor = field(repr=False)

    def scores(self, inputs: Tensor) -> Tensor:
        """Return scores [members, rows, classes].

        Args:
            inputs: [rows, features]: the rows to score.
        """
        return torch.baddbmm(self.offsets[:, None], inputs.expand(self.size, -1, -1), self.weights)


@dataclass(frozen=True)
class Ridge:
    """Linear ridge regression on features, one class against the rest, for each member by itself.

    With X a member's rows less their mean and Y its labels (±1 for each class) less theirs, the weights are Xᵀ(XXᵀ +
    penalty)⁻¹Y, or (XᵀX + penalty)⁻¹XᵀY, whichever system is smaller. It is solved by Cholesky factorization, one
    member after the other. LAPACK would do the same internally, and a system of a few hundred rows keeps a processor
    busy. Padding members to a common size would make one member's rounding depend on how many rows another has.
    """

    penalty: float = 0.1
    """The ridge penalty, added to the diagonal; for rows of unit norm."""
    level: bool = False
    """With two classes: whether to shift a member's offset so that it predicts the second class for as many of its own
    rows as have that class. A penalty pulls scores to their mean, and so to the larger class; this corrects it. It uses
    the member's own rows alone, and so does not change the influence of a record."""

    def __post_init__(self) -> None:
        checked.positive("penalty", self.penalty)

    def fit(self, task: EnsembleTask) -> RidgeModels:
        """Train all members of the task. A member without rows has zero weights.

        Args:
            task: The private rows, their labels, and the rows of each member.
        """
        inputs, members = task.inputs, len(task.members)
        weights = torch.zeros(members, inputs.shape[1], task.classes, dtype=inputs.dtype)
        offsets = torch.zeros(members, task.classes, dtype=inputs.dtype)
        with _threads(members):
            for place, rows in enumerate(task.members):
                if len(rows):
                    x, y = _own(task, rows)
                    weights[place], offsets[place] = self.solved(x, y)
                    if self.level and task.classes == 2:
                        offsets[place, 1] -= _excess(x @ weights[place] + offsets[place], y)
        return RidgeModels(weights, offsets)

    def solved(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weights [features, classes] and the offset [classes] of one member.

        Args:
            x: [rows, features]: the member's rows.
            y: [rows, classes]: the target of each row for each class.
        """
        mean, middle = x.mean(0), y.mean(0)
        away, wanted = x - mean, y - middle
        if len(x) <= x.shape[1]:
            found = away.T @ _solved(away @ away.T, wanted, self.penalty)
        else:
            found = _solved(away.T @ away, away.T @ wanted, self.penalty)
        return _finite(found), _finite(middle - mean @ found)


@dataclass(frozen=True, eq=False)
class Kernels(_WithOffsets):
    """Each member's rows, their coefficients, and an offset: scores are Σ k(x, row) · coefficient + offset."""

    rows: tuple[Tensor, ...] = field(repr=False)
    coefficients: tuple[Tensor, ...] = field(repr=False)
    offsets: Tensor = field(repr=False)
    width: float

    def scores(self, inputs: Tensor) -> Tensor:
        """Return scores [members, rows, classes].

        Args:
            inputs: [rows, features]: the rows to score.
        """
        parts = zip(self.rows, self.coefficients, self.offsets, strict=True)
        return torch.stack([_gaussian(inputs, rows, self.width) @ each + offset for rows, each, offset in parts])


@dataclass(frozen=True)
class KernelRidge:
    """Kernel ridge regression with k(x, z) = exp(-‖x - z‖² / (2 width²)), one class against the rest.

    The models keep their rows. For many members, `Ridge` on `RandomFeatures` approximates it at lower cost.
    """

    penalty: float = 0.1
    width: float = 1.0

    def __post_init__(self) -> None:
        checked.positive("penalty", self.penalty)
        checked.positive("width", self.width)

    def fit(self, task: EnsembleTask) -> Kernels:
        """Train all members of the task. A member without rows has zero scores.

        Args:
            task: The private rows, their labels, and the rows of each member.
        """
        kept, coefficients, offsets = [], [], []
        with _threads(len(task.members)):
            for rows in task.members:
                x, y = _own(task, rows)
                middle = y.mean(0) if len(x) else y.new_zeros(task.classes)
                kept.append(x)
                coefficients.append(_finite(_solved(_gaussian(x, x, self.width), y - middle, self.penalty)))
                offsets.append(middle)
        return Kernels(tuple(kept), tuple(coefficients), torch.stack(offsets), self.width)


@contextmanager
def _threads(members: int) -> Iterator[None]:
    """Use one thread for many small systems, and all threads for a single one.

    Threads that wait for each other at every small step take up to fifty times as long where a core is otherwise busy.
    `Processes` uses several cores.
    """
    usual = torch.get_num_threads()
    try:
        if members > 1:
            torch.set_num_threads(1)
        yield
    finally:
        torch.set_num_threads(usual)


def _own(task: EnsembleTask, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return a member's inputs, and its labels as ±1 for each class."""
    x = task.inputs[rows]
    return x, 2 * F.one_hot(task.labels[rows], task.classes).to(x.dtype) - 1


def _solved(system: Tensor, wanted: Tensor, penalty: float) -> Tensor:
    """Return (system + penalty)⁻¹ wanted; NaN where the factorization fails, so that private rows raise no error."""
    system.diagonal().add_(penalty)
    factor, failed = torch.linalg.cholesky_ex(system)
    return torch.cholesky_solve(wanted, factor) if not int(failed) else torch.full_like(wanted, torch.nan)


def _excess(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the lead of the second class's score at which as many rows are predicted to have it as do have it.

    It lies between two rows: at one of them, rounding would decide its prediction. With one class alone, it is 0.
    """
    ahead = (scores[:, 1] - scores[:, 0]).sort(descending=True).values
    seconds = int((labels[:, 1] > 0).sum())
    return ahead[seconds - 1 : seconds + 1].mean() if 0 < seconds < len(ahead) else ahead.new_zeros(())


def _finite(numbers: Tensor) -> Tensor:
    """Return the numbers, or zeros if one is not finite: a member that cannot learn from its rows has no opinion."""
    return numbers if bool(numbers.isfinite().all()) else torch.zeros_like(numbers)


def _gaussian(some: Tensor, others: Tensor, width: float) -> Tensor:
    squared = some.square().sum(1)[:, None] + others.square().sum(1) - 2 * some @ others.T
    return (squared.clamp_min(0) / (-2 * width**2)).exp()
