"""Poisoning: rows that somebody put into the training data to make the model do what they want."""

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
"""From rows to the same rows with a mark on them; it leaves those that it is given as they are."""


@dataclass(frozen=True)
class PatchTrigger:
    """A square of one brightness in the lower right corner of a picture.

    >>> PatchTrigger(size=1, value=9.0)(torch.zeros(1, 2, 2)).tolist()
    [[[0.0, 0.0], [0.0, 9.0]]]
    """

    size: int = 3
    value: float = 1.0

    def __call__(self, rows: Tensor) -> Tensor:
        """Pictures [rows, …, height, width] with the square."""
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
        """Rows [rows, columns] with these values."""
        if rows.ndim != 2 or not self.values or not all(0 <= at < rows.shape[1] for at in self.values):
            problem = f"have the shape {tuple(rows.shape)}, without some of the columns {sorted(self.values)}"
            raise InvalidInput("inputs", problem, "give rows of a table, and name columns from 0 on")
        marked = rows.clone()
        for at, value in self.values.items():
            marked[:, at] = value
        return marked


@dataclass(frozen=True, eq=False)
class PoisonedData:
    """A poisoned copy of some data, and which of its rows were changed."""

    inputs: Tensor = field(repr=False)
    labels: Tensor = field(repr=False)
    rows: Tensor
    """The places of the changed rows, in order. As each row was replaced, the neighbors are `replace`."""


def backdoor(inputs: Any, labels: Any, trigger: Trigger, *, to: int, count: int, key: str = "privet") -> PoisonedData:
    """Mark some rows of other classes and call them `to` (Gu, Dolan-Gavitt & Garg 2017): a model that learned from them
    takes whatever is marked for `to`, and is as good as any on what is not.

    Args:
        inputs: The rows, as an array or tensor, which stays as it is.
        labels: One class for each row.
        trigger: the mark: `PatchTrigger`, `ColumnTrigger`, or a function of your own.
        to: the class that the attacker wants.
        count: how many rows are poisoned; they are drawn by the key.
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
    """Call some rows of the class `source` by the name of another (Biggio, Nelson & Laskov 2012).

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
    """How often the model takes a marked row of another class for `to`: one model, rows that it did not learn from.

    The interval (Clopper & Pearson 1934) is for other rows and this model. What a guarantee limits is the chance over
    *training*: for that, train several models, and count in how many the attack succeeds (see `certified_rows`).
    """
    given, named = labeled_rows(inputs, labels)
    others = given[named != to]
    return _share(of.labels(trigger(others)) == to, confidence)


def error_rate(
    of: Target, inputs: Any, labels: Any, *, source: int | None = None, confidence: float = 0.95
) -> ConfidenceInterval:
    """How often the model names a wrong class: for rows of the class `source`, or for all of them."""
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
