"""What an ensemble and a way of training one must offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from privet.core import InvalidInput

__all__ = ["Ensemble", "EnsembleTask", "JoinedEnsemble", "Labels", "Learner", "labeled_rows"]

Labels: TypeAlias = npt.NDArray[np.int32]
"""Votes: one row for each row that was asked about, one column for each member."""


@dataclass(frozen=True, eq=False)
class EnsembleTask:
    """What is to be learned: private rows, and who may learn from which of them."""

    inputs: Tensor
    """[rows, …]: features, or pictures for a network of convolutions."""
    labels: Tensor
    """int64, from 0 to classes - 1."""
    members: tuple[Tensor, ...]
    """For each member the numbers of the rows that it learns from, int64."""
    first: int
    """The number of the first member: whatever a member draws follows from its number."""
    classes: int

    def part(self, start: int, stop: int) -> EnsembleTask:
        """The task of some members, with their rows and no others."""
        chosen = self.members[start:stop]
        used = torch.from_numpy(np.unique(torch.cat(chosen).numpy()))
        members = tuple(torch.searchsorted(used, rows) for rows in chosen)
        return EnsembleTask(self.inputs[used], self.labels[used], members, self.first + start, self.classes)


def labeled_rows(inputs: Any, labels: Any) -> tuple[Tensor, Tensor]:
    """Return rows and their labels as tensors.

    Args:
        inputs: [rows, …].
        labels: One whole number for each row.

    Raises:
        InvalidInput: If there is not one whole number for each row.
    """
    rows, names = torch.as_tensor(inputs), torch.as_tensor(labels)
    if rows.ndim < 1 or names.shape != rows.shape[:1] or names.dtype.is_floating_point:
        raise InvalidInput("labels", "are not one whole number for each row of the inputs")
    return rows, names


class Ensemble(Protocol):
    """Models that were trained together. They are as private as what they were trained on."""

    @property
    def size(self) -> int:
        """How many members there are."""

    @property
    def classes(self) -> int:
        """How many classes they tell apart."""

    def scores(self, inputs: Tensor) -> Tensor:
        """[members, rows, classes]: what each member says of each row; the largest is its vote."""


class Learner(Protocol):
    """A way of training. Its fields are public, and known before any row is read.

    A member is a function of its own rows, its number and public numbers alone, down to the last bit: were it not, one
    record could change every vote.
    """

    def fit(self, task: EnsembleTask) -> Ensemble:
        """All members of the task."""


@dataclass(frozen=True, eq=False)
class JoinedEnsemble:
    """Ensembles that were trained apart, one after the other."""

    parts: tuple[Ensemble, ...]

    @property
    def size(self) -> int:
        """How many members there are in all."""
        return sum(part.size for part in self.parts)

    @property
    def classes(self) -> int:
        """How many classes they tell apart."""
        return self.parts[0].classes

    def scores(self, inputs: Tensor) -> Tensor:
        """As each part's, in their order."""
        return torch.cat([part.scores(inputs) for part in self.parts])

    @staticmethod
    def of(parts: Sequence[Ensemble]) -> Ensemble:
        """One ensemble from several."""
        return parts[0] if len(parts) == 1 else JoinedEnsemble(tuple(parts))
