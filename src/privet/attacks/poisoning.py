"""Poisoning: rows inserted into the training data to make the model misbehave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from privet.attacks.outcome import ConfidenceInterval
from privet.attacks.target import Target
from privet.core import InvalidInput, checked
from privet.ensemble import generator, labeled_rows

__all__ = [
    "ColumnTrigger",
    "PatchTrigger",
    "PoisonedData",
    "Trigger",
    "backdoor",
    "backdoor_success",
    "error_rate",
    "flip_labels",
]

Trigger = Callable[[Tensor], Tensor]
"""Function that returns a copy of rows with a mark on them."""


@dataclass(frozen=True)
class PatchTrigger:
    """Square of constant brightness in the lower right corner of an image.

    >>> PatchTrigger(size=1, value=9.0)(torch.zeros(1, 2, 2)).tolist()
    [[[0.0, 0.0], [0.0, 9.0]]]
    """

    size: int = 3
    value: float = 1.0

    def __call__(self, rows: Tensor) -> Tensor:
        """Return copies of the images with the square.

        Args:
            rows: [rows, …, height, width].

        Raises:
            InvalidInput: If the rows are not images, or are smaller than the square.
        """
        checked.count("size", self.size)
        if rows.ndim < 3 or min(rows.shape[-2:]) < self.size:
            problem = f"have the shape {tuple(rows.shape)}, in which no square of {self.size} fits"
            raise InvalidInput("inputs", problem, "give pictures [rows, …, height, width], or mark Columns of a table")
        marked = rows.clone()
        marked[..., -self.size :, -self.size :] = self.value
        return marked


@dataclass(frozen=True)
class ColumnTrigger:
    """Columns of a table that are set to fixed values.

    >>> ColumnTrigger({1: 7.0})(torch.zeros(1, 3)).tolist()
    [[0.0, 7.0, 0.0]]
    """

    values: Mapping[int, float]

    def __call__(self, rows: Tensor) -> Tensor:
        """Return copies of the rows with these values.

        Args:
            rows: [rows, columns].

        Raises:
            InvalidInput: If the rows are not those of a table that has all of these columns, or no column is named.
        """
        if rows.ndim != 2 or not self.values or not all(0 <= at < rows.shape[1] for at in self.values):
            problem = f"have the shape {tuple(rows.shape)}, without some of the columns {sorted(self.values)}"
            raise InvalidInput("inputs", problem, "give rows of a table, and name columns from 0 on")
        marked = rows.clone()
        for at, value in self.values.items():
            marked[:, at] = value
        return marked


@dataclass(frozen=True, eq=False)
class PoisonedData:
    """Poisoned copy of a data set, and which of its rows were changed."""

    inputs: Tensor = field(repr=False)
    labels: Tensor = field(repr=False)
    rows: Tensor
    """Indices of the changed rows, in order. As each row was replaced, the neighboring relation is `replace`."""


def backdoor(inputs: Any, labels: Any, trigger: Trigger, *, to: int, count: int, key: str = "privet") -> PoisonedData:
    """Mark some rows of other classes and label them `to` (Gu, Dolan-Gavitt & Garg 2017).

    A model trained on them assigns marked inputs to the class `to`, and is as accurate as any other on unmarked ones.

    Args:
        inputs: The rows, as an array or tensor, which is not changed.
        labels: One class for each row.
        trigger: The mark: `PatchTrigger`, `ColumnTrigger`, or a function of your own.
        to: The class that the attacker wants.
        count: How many rows are poisoned.
        key: Seed of the choice of rows.

    Raises:
        InvalidInput: If there is not one whole number for each row, `count` is below 1 or above the number of rows of
            other classes, or the trigger changes the shape of the rows.
    """
    given, named = labeled_rows(inputs, labels)
    rows = _drawn(torch.nonzero(named != to)[:, 0], count, key, "backdoor")
    found, called = given.clone(), named.clone()
    marked = trigger(given[rows])
    if marked.shape != given[rows].shape:
        problem = f"makes rows of the shape {tuple(marked.shape[1:])} out of {tuple(given.shape[1:])}"
        raise InvalidInput("trigger", problem, "it may change values only")
    found[rows], called[rows] = marked.to(found.dtype), to
    return PoisonedData(found, called, rows)


def flip_labels(inputs: Any, labels: Any, *, source: int, to: int, count: int, key: str = "privet") -> PoisonedData:
    """Change the labels of some rows of the class `source` to `to` (Biggio, Nelson & Laskov 2012).

    Args:
        inputs: The rows, as an array or tensor, which is not changed.
        labels: One class for each row.
        source: The class whose rows are relabeled.
        to: Their new class.
        count: How many rows are poisoned.
        key: Seed of the choice of rows.

    Raises:
        InvalidInput: If there is not one whole number for each row, `source` equals `to`, or `count` is below 1 or
            above the number of rows of the class `source`.

    >>> found = flip_labels(torch.zeros(4, 1), torch.tensor([0, 1, 0, 0]), source=1, to=0, count=1)
    >>> found.labels.tolist(), found.rows.tolist()
    ([0, 0, 0, 0], [1])
    """
    given, named = labeled_rows(inputs, labels)
    if source == to:
        raise InvalidInput("to", f"is {to}, as source is", "name another class")
    rows = _drawn(torch.nonzero(named == source)[:, 0], count, key, "flip_labels")
    called = named.clone()
    called[rows] = to
    return PoisonedData(given.clone(), called, rows)


def backdoor_success(
    of: Target, inputs: Any, labels: Any, trigger: Trigger, *, to: int, confidence: float = 0.95
) -> ConfidenceInterval:
    """Return how often the model assigns a marked row of another class to `to`, for held-out rows.

    The interval (Clopper & Pearson 1934) is for other rows and this model. What a guarantee limits is the probability
    over *training*: for that, train several models, and count in how many the attack succeeds (see `certified_rows`).

    Args:
        of: The attacked model.
        inputs: Rows that the model was not trained on.
        labels: The true class of each row.
        trigger: The mark that was used for poisoning.
        to: The class that the attacker wants.
        confidence: The coverage of the interval.

    Raises:
        InvalidInput: If there is not one whole number for each row, no row is of another class, or `confidence` is not
            between 0 and 1.
    """
    given, named = labeled_rows(inputs, labels)
    others = given[named != to]
    return _share(of.labels(trigger(others)) == to, confidence)


def error_rate(
    of: Target, inputs: Any, labels: Any, *, source: int | None = None, confidence: float = 0.95
) -> ConfidenceInterval:
    """Return how often the model predicts a wrong class.

    Args:
        of: The model.
        inputs: Rows that the model was not trained on.
        labels: The true class of each row.
        source: The class whose rows are tried; all rows if omitted.
        confidence: The coverage of the interval.

    Raises:
        InvalidInput: If there is not one whole number for each row, there is no row to try, or `confidence` is not
            between 0 and 1.
    """
    given, named = labeled_rows(inputs, labels)
    chosen = torch.ones_like(named, dtype=torch.bool) if source is None else named == source
    return _share(of.labels(given[chosen]) != named[chosen], confidence)


def _drawn(rows: Tensor, count: int, key: str, name: str) -> Tensor:
    if checked.count("count", count) > len(rows):
        raise InvalidInput("count", f"is {count}, of {len(rows)} rows that can be poisoned", "poison fewer")
    order = torch.rand(len(rows), generator=generator(key, name)).argsort()
    return rows[order[:count]].sort().values


def _share(right: Tensor, confidence: float) -> ConfidenceInterval:
    if not len(right):
        raise InvalidInput("inputs", "hold no row to try this on", "give rows of the other classes")
    return ConfidenceInterval.of_share(int(right.sum()), len(right), confidence)
