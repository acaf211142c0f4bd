"""Interfaces of an ensemble and of a learner that trains one."""

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
"""Votes: one row for each queried row, one column for each member."""


@dataclass(frozen=True, eq=False)
class EnsembleTask:
    """A training task: private rows with labels, and the rows that each member may learn from."""

    inputs: Tensor
    """[rows, …]: features, or images for a convolutional network."""
    labels: Tensor
    """int64, from 0 to classes - 1."""
    members: tuple[Tensor, ...]
    """For each member the indices of the rows that it learns from, int64."""
    first: int
    """The number of the first member: a member's random numbers follow from its number."""
    classes: int

    def part(self, start: int, stop: int) -> EnsembleTask:
        """Return the task of some members, with their rows and no others.

        Args:
            start: The position of the first member.
            stop: The position after the last member.
        """
        chosen = self.members[start:stop]
        used = torch.from_numpy(np.unique(torch.cat(chosen).numpy()))
        members = tuple(torch.searchsorted(used, rows) for rows in chosen)
        return EnsembleTask(self.inputs[used], self.labels[used], members, self.first + start, self.classes)


def labeled_rows(inputs: Any, labels: Any) -> tuple[Tensor, Tensor]:
    """Return rows and their labels as tensors.

    Args:
        inputs: Rows, [rows, …].
        labels: One whole number for each row.

    Raises:
        InvalidInput: If there is not one whole number for each row.
    """
    rows, names = torch.as_tensor(inputs), torch.as_tensor(labels)
    if rows.ndim < 1 or names.shape != rows.shape[:1] or names.dtype.is_floating_point:
        raise InvalidInput("labels", "are not one whole number for each row of the inputs")
    return rows, names


class Ensemble(Protocol):
    """Models that were trained together. They are as private as the rows that they were trained on."""

    @property
    def size(self) -> int:
        """The number of members."""

    @property
    def classes(self) -> int:
        """The number of classes."""

    def scores(self, inputs: Tensor) -> Tensor:
        """Return scores [members, rows, classes]; the class with the largest score is the member's vote.

        Args:
            inputs: [rows, …]: the rows to score.
        """


class Learner(Protocol):
    """A training method. Its fields are public, and known before any row is read.

    A member is a function of its own rows, its number and public numbers alone, down to the last bit: otherwise one
    record could change every vote.
    """

    def fit(self, task: EnsembleTask) -> Ensemble:
        """Train all members of the task.

        Args:
            task: The private rows, their labels, and the rows of each member.
        """


@dataclass(frozen=True, eq=False)
class JoinedEnsemble:
    """Ensembles that were trained separately, joined in order."""

    parts: tuple[Ensemble, ...]

    @property
    def size(self) -> int:
        """The number of members in all parts."""
        return sum(part.size for part in self.parts)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return self.parts[0].classes

    def scores(self, inputs: Tensor) -> Tensor:
        """Return the scores of all parts, in their order: [members, rows, classes].

        Args:
            inputs: [rows, …]: the rows to score.
        """
        return torch.cat([part.scores(inputs) for part in self.parts])

    @staticmethod
    def of(parts: Sequence[Ensemble]) -> Ensemble:
        """Return one ensemble made of several.

        Args:
            parts: The ensembles, at least one, in the order of their members.
        """
        return parts[0] if len(parts) == 1 else JoinedEnsemble(tuple(parts))
