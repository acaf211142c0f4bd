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
        """[members, rows, classes]"""
        return torch.baddbmm(self.offsets[:, None], inputs.expand(self.size, -1, -1), self.weights)


@dataclass(frozen=True)
class Ridge:
    """Linear ridge regression on features, one class against the rest, for each member by itself.

    With X a member's rows less their mean and Y its labels (±1 for each class) less theirs, the weights are
    Xᵀ(XXᵀ + penalty)⁻¹Y, or (XᵀX + penalty)⁻¹XᵀY, whichever system is smaller. It is solved by Cholesky's
    factorization, one member after the other: LAPACK would not do it otherwise, a system of a few hundred rows keeps a
    processor busy, and no member's rounding can depend on how many rows another has, as it would if they were padded
    to a common size.
    """

    penalty: float = 0.1
    """Added to the diagonal; for rows of length 1."""
    level: bool = False
    """Of two classes: whether a member says "the second" of as large a part of its own rows as are of that class. A
    penalty pulls scores to their mean, and so to the larger class; this takes that back. It is done with the member's
    own rows, and so changes nothing of what a record can do."""

    def __post_init__(self) -> None:
        checked.positive("penalty", self.penalty)

    def fit(self, task: EnsembleTask) -> RidgeModels:
        """All members of the task."""
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
        """Weights and offset for one member: rows, and what is wanted of them for each class."""
        mean, middle = x.mean(0), y.mean(0)
        away, wanted = x - mean, y - middle
        if len(x) <= x.shape[1]:
            found = away.T @ _solved(away @ away.T, wanted, self.penalty)
        else:
            found = _solved(away.T @ away, away.T @ wanted, self.penalty)
        return _finite(found), _finite(middle - mean @ found)


@dataclass(frozen=True, eq=False)
class Kernels(_WithOffsets):
    """For each member its rows, their coefficients, and an offset: scores are Σ k(x, row) · coefficient + offset."""

    rows: tuple[Tensor, ...] = field(repr=False)
    coefficients: tuple[Tensor, ...] = field(repr=False)
    offsets: Tensor = field(repr=False)
    width: float

    def scores(self, inputs: Tensor) -> Tensor:
        """[members, rows, classes]"""
        parts = zip(self.rows, self.coefficients, self.offsets, strict=True)
        return torch.stack([_gaussian(inputs, rows, self.width) @ each + offset for rows, each, offset in parts])


@dataclass(frozen=True)
class KernelRidge:
    """Kernel ridge regression with k(x, z) = exp(-‖x - z‖² / (2 width²)), one class against the rest.

    The models keep their rows. For large numbers of members, `Ridge` on `RandomFeatures` is the same at less cost.
    """

    penalty: float = 0.1
    width: float = 1.0

    def __post_init__(self) -> None:
        checked.positive("penalty", self.penalty)
        checked.positive("width", self.width)

    def fit(self, task: EnsembleTask) -> Kernels:
        """All members of the task."""
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
    """One thread for many small systems, as many as there were for one.

    Threads that wait for each other at every small step take up to fifty times as long where a core is busy otherwise.
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
    """A member's inputs, and its labels as ±1 for each class."""
    x = task.inputs[rows]
    return x, 2 * F.one_hot(task.labels[rows], task.classes).to(x.dtype) - 1


def _solved(system: Tensor, wanted: Tensor, penalty: float) -> Tensor:
    """(system + penalty)⁻¹ wanted; NaN where the system has no factor, which raises nothing that rows decide."""
    system.diagonal().add_(penalty)
    factor, failed = torch.linalg.cholesky_ex(system)
    return torch.cholesky_solve(wanted, factor) if not int(failed) else torch.full_like(wanted, torch.nan)


def _excess(scores: Tensor, labels: Tensor) -> Tensor:
    """How far the second class's score is ahead of the first's where its part of the rows ends: between two of them.

    At one of them, rounding would decide what is said of it. Of one class alone there is no such place, and no excess.
    """
    ahead = (scores[:, 1] - scores[:, 0]).sort(descending=True).values
    seconds = int((labels[:, 1] > 0).sum())
    return ahead[seconds - 1 : seconds + 1].mean() if 0 < seconds < len(ahead) else ahead.new_zeros(())


def _finite(numbers: Tensor) -> Tensor:
    """The numbers, or zeros if one of them is none: rows that cannot be learned from give a member without opinion."""
    return numbers if bool(numbers.isfinite().all()) else torch.zeros_like(numbers)


def _gaussian(some: Tensor, others: Tensor, width: float) -> Tensor:
    squared = some.square().sum(1)[:, None] + others.square().sum(1) - 2 * some @ others.T
    return (squared.clamp_min(0) / (-2 * width**2)).exp()
