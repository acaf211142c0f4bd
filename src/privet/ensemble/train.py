"""One function that trains every kind of ensemble in every place."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from privet.core import InvalidInput, checked
from privet.ensemble.learner import Ensemble, EnsembleTask, JoinedEnsemble, Learner, labeled_rows
from privet.ensemble.placement import InProcess, Placement
from privet.ensemble.shards import Rows, Shards

__all__ = ["train", "train_one"]


def train(
    learner: Learner,
    inputs: Tensor | npt.NDArray[Any],
    labels: Tensor | npt.NDArray[Any],
    members: Shards | Sequence[Rows],
    *,
    classes: int,
    where: Placement = InProcess(),  # noqa: B008 (a frozen record without fields)
) -> Ensemble:
    """Train one model for each member.

    The ensemble is private, and so are its scores and votes.

    Args:
        learner: The training method: `Ridge`, `KernelRidge`, `Stacked`, `Estimator`, or any other object with their
            `fit`.
        inputs: [rows, …]: features or images, of floating-point numbers.
        labels: Whole numbers from 0 to classes - 1.
        members: `shards(…)` for teachers, which share no row; or for each member the rows that it learns from, which
            may overlap, as those of shadow models do.
        classes: The number of classes, at least 2, from public knowledge and not from the rows.
        where: Where to train: in this process, in several, or on a cluster.

    Raises:
        InvalidInput: If the inputs are not rows of floating-point numbers, there is not one label from 0 to classes - 1
            for each row, or members name rows that do not exist.
    """
    checked.count("classes", classes, least=2)
    given, named = labeled_rows(inputs, labels)
    if not given.dtype.is_floating_point or given.ndim < 2:
        raise InvalidInput("inputs", "are not rows of floating-point numbers", "make features of them first")
    if len(named) and not 0 <= int(named.min()) <= int(named.max()) < classes:
        raise InvalidInput("labels", f"are not all from 0 to {classes - 1}", "check `classes`")
    own = _members(members, len(named))
    task = EnsembleTask(given, named.long(), own, 0, classes)
    count = min(where.parts, len(own))
    edges = [len(own) * part // count for part in range(count + 1)]
    if count == 1:
        return JoinedEnsemble.of(where.fit(learner, [task]))
    # Check public arguments here: errors do not come back unchanged from other processes.
    learner.fit(EnsembleTask(given[:0], task.labels[:0], (task.labels[:0],), 0, classes))
    return JoinedEnsemble.of(where.fit(learner, [task.part(*ends) for ends in pairwise(edges)]))


def train_one(learner: Learner, inputs: Tensor, labels: Tensor | npt.NDArray[Any], *, classes: int) -> Ensemble:
    """Train one model on all rows, and return it as an ensemble of one.

    Args:
        learner: The training method, such as `Ridge`, `KernelRidge`, `Stacked` or `Estimator`.
        inputs: [rows, …]: features or images, of floating-point numbers.
        labels: Whole numbers from 0 to classes - 1.
        classes: The number of classes, at least 2, from public knowledge and not from the rows.

    Raises:
        InvalidInput: If the inputs are not rows of floating-point numbers, or there is not one label from 0 to classes
            - 1 for each row.
    """
    return train(learner, inputs, labels, [np.arange(len(labels))], classes=classes)


def _members(members: Shards | Sequence[Rows], rows: int) -> tuple[Tensor, ...]:
    if isinstance(members, Shards):
        if len(members.of) != rows:
            raise InvalidInput("members", f"divide {len(members.of)} rows, and there are {rows}", "divide these rows")
        return tuple(torch.from_numpy(each) for each in members.members)
    if not len(members):
        raise InvalidInput("members", "are none", "give the rows of one member at least")
    found = []
    for each in members:
        own = np.asarray(each)
        whole = own.ndim == 1 and (own.dtype.kind in "iu" or not len(own))
        if not whole or (len(own) and not 0 <= own.min() <= own.max() < rows):
            raise InvalidInput("members", "name rows that are not there", f"use whole numbers from 0 to {rows - 1}")
        found.append(torch.from_numpy(own.astype(np.int64)))
    return tuple(found)
