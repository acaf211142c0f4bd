"""How good a model is: on public rows for nothing, on private ones through a mechanism."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from privet.core.event import Composed, Event
from privet.core.random import Rng
from privet.core.release import Release
from privet.core.unit import Unit, Whose
from privet.data import Number
from privet.data.split import hashes
from privet.mechanisms import Cells, Count, DiscreteLaplace, Histogram, Laplace, Sum
from privet.report import Score

__all__ = ["Rows", "Scoring", "auc", "each_alone", "measured", "outputs_of"]

_AT_ONCE = 1 << 14
_PLACES = 256
_CONFIDENCE = 0.95
_ERROR = "mean absolute error"


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that a model is tried on."""

    x: Tensor
    y: Tensor
    label: Number | None
    """The target of a regression."""
    users: npt.NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.x)


class _Model(Protocol):
    """A model."""

    def __call__(self, rows: Tensor) -> Tensor:
        """One number for each class, or the predicted number."""


@torch.no_grad()
def outputs_of(model: nn.Module | _Model, x: Tensor) -> Tensor:
    """What a model says of rows, some at a time."""
    parts = [model(some) for some in torch.split(x, _AT_ONCE)] if len(x) else []
    return torch.cat(parts) if parts else torch.zeros(0)


@torch.no_grad()
def each_alone(model: nn.Module, x: Tensor) -> Tensor:
    """What a model says of each row, as a function of the model and of that row alone, to the last bit.

    How a product of matrices rounds a row depends on how many rows there are and on the row's place among them, in
    float64 as in float32; so one row more could turn another's near-tie round, and a count would move by more than the
    new row. Here every batch has as many rows, and a row's place in it follows from its own bytes. Of rows that are the
    same, one is looked at; rows of the same place go to different batches; places that are free hold zeros. Whatever
    rows come or go, a row stays at its place in a batch of the same shape, where kernels do the same operations with it
    in the same order: which ones these are depends on shapes, on strides and on the alignment of memory (torch aligns
    what it allocates), and never on values. That the model itself looks at each row of a batch alone is assumed. A copy
    of it looks, and is thrown away: nothing of the rows stays in the model that leaves.
    """
    if not len(x):
        return torch.zeros(0)
    rows = np.ascontiguousarray(x.numpy()).reshape(len(x), -1)
    digests = hashes([rows], "privet score")
    order = np.argsort(digests, kind="stable")
    letters = rows.view(np.uint8)
    new = np.ones(len(x), dtype=np.bool_)
    for start in range(1, len(x), _AT_ONCE):
        some = order[start - 1 : start + _AT_ONCE]
        new[start : start + _AT_ONCE] = (letters[some[1:]] != letters[some[:-1]]).any(1)
    firsts = order[new]
    which = np.empty(len(x), dtype=np.int64)
    which[order] = np.cumsum(new) - 1
    places = (digests[firsts] % np.uint64(_PLACES)).astype(np.int64)
    found = None
    looking = copy.deepcopy(model).eval()
    for batch in _batches(places):
        given = torch.zeros(_PLACES, *x.shape[1:], dtype=x.dtype)
        given[places[batch]] = x[firsts[batch]]
        said = looking(given)
        found = torch.empty(len(firsts), *said.shape[1:], dtype=said.dtype) if found is None else found
        found[batch] = said[places[batch]]
    return torch.zeros(0) if found is None else found[which]


def _batches(places: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Rows in as few batches as there are rows of one place, no two of a batch at the same one."""
    order = np.argsort(places, kind="stable")
    turn = np.arange(len(places)) - np.searchsorted(places[order], places[order])
    return np.split(order[np.argsort(turn, kind="stable")], np.cumsum(np.bincount(turn))[:-1])


def measured(model: nn.Module, rows: Rows, classes: int, on: str) -> tuple[Score, ...]:
    """The scores on some rows, as they are: for public rows, or for internal eyes."""
    outputs = outputs_of(model, rows.x)
    if not classes:
        scale = 1.0 if rows.label is None else (rows.label.high - rows.label.low) / 2
        errors = (outputs - rows.y)[rows.y.isfinite()].double() * scale
        roughly = Score(_ERROR, float(errors.abs().mean()), on, share=False)
        return roughly, Score("root mean squared error", float(errors.square().mean().sqrt()), on, share=False)
    right = float(_right(outputs, rows.y).double().mean()) if len(rows) else float("nan")
    found = [Score("accuracy", right, on)]
    if classes == 2 and len(rows):
        found.append(Score("AUC", auc(outputs[:, 1] - outputs[:, 0], rows.y), on, share=False))
    return tuple(found)


def _right(outputs: Tensor, answers: Tensor) -> Tensor:
    """Which rows are right; where a model gives no number, none is."""
    return (outputs.argmax(1) == answers) & outputs.isfinite().all(1)


def auc(scores: Tensor, answers: Tensor) -> float:
    """The chance that a row of the second class has a higher score than one of the first; ties count half."""
    first, second = scores[answers == 0].double().sort().values, scores[answers == 1].double()
    if not len(first) or not len(second):
        return float("nan")
    below = torch.searchsorted(first, second, right=False) + torch.searchsorted(first, second, right=True)
    return float(below.double().mean() / 2 / len(first))


@dataclass(frozen=True)
class Scoring:
    """A plan to release one score of one model on private rows that it was not trained on.

    Guarantee: pure ε for `unit`: for classes, one discrete Laplace draw for how many rows are right and how many are
    wrong (a histogram of two bins: a unit's rows move it by `rows` in L1); for numbers, half of ε each for the sum of
    the clamped errors and for the count. The model must not depend on the rows but through a release that is paid for.
    What it says of a row follows from that row (`each_alone`). No row raises: rows on which a model gives no number
    count as wrong, or as the largest error.
    """

    epsilon: float
    unit: Unit
    rows: int
    """Of one unit, at most."""
    classes: int

    @property
    def event(self) -> Event:
        """Known before any row is read."""
        events = tuple(mechanism.event for mechanism in self._mechanisms)
        return events[0] if len(events) == 1 else Composed(events)

    @property
    def _mechanisms(self) -> tuple[DiscreteLaplace | Laplace, ...]:
        if self.classes:
            return (DiscreteLaplace.for_epsilon(self.epsilon, self._answers),)
        half = self.epsilon / 2
        return Laplace.for_epsilon(half, self._errors), DiscreteLaplace.for_epsilon(half, self._count)

    @property
    def _answers(self) -> Histogram:
        return Histogram(Cells(0.0, 1.0, 2), self.unit, self.rows)

    @property
    def _errors(self) -> Sum:
        return Sum(0.0, 1.0, self.unit, self.rows, missing=1.0)

    @property
    def _count(self) -> Count:
        return Count(self.unit, self.rows)

    def release(self, model: nn.Module, rows: Rows, *, rng: Rng, source: str, on: str) -> Release[Score]:
        """The score, with an interval that covers the noise.

        Guarantee: that of `event`, for `unit` (see the class).
        """
        outputs = each_alone(model, rows.x)
        users = rows.users if self.unit.whose is Whose.USER else None
        if self.classes:
            right = _right(outputs, rows.y).double().numpy() if len(rows) else np.zeros(0)
            (mechanism,) = self._mechanisms
            drawn = mechanism.release(self._answers(right, users), rng=rng, source=source)
            reach = mechanism.interval((1 + _CONFIDENCE) / 2)
            return drawn.map(lambda counts: _accuracy(float(counts[0]), float(counts[1]), reach, on))
        errors = ((outputs - rows.y).double() / 2).abs().numpy() if len(rows) else np.zeros(0)
        scale = 1.0 if rows.label is None else rows.label.high - rows.label.low
        first, second = self._mechanisms
        total = first.release(self._errors(errors, users), rng=rng, source=source)
        count = second.release(self._count(np.ones(len(rows), dtype=np.bool_), users), rng=rng, source=source)
        reaches = first.interval((1 + _CONFIDENCE) / 2), second.interval((1 + _CONFIDENCE) / 2)
        return Release.join(total, count).map(lambda both: _error(float(both[0]), float(both[1]), reaches, scale, on))


def _accuracy(wrong: float, right: float, reach: float, on: str) -> Score:
    """The share that is right, and between which bounds it lies if neither count is off by more than `reach`."""

    def share(good: float, bad: float) -> float:
        good, bad = max(good, 0.0), max(bad, 0.0)
        return good / (good + bad) if good + bad else float("nan")

    return Score(
        "accuracy",
        share(right, wrong),
        on,
        lower=share(right - reach, wrong + reach),
        upper=share(right + reach, wrong - reach),
        confidence=_CONFIDENCE,
        covers="the noise",
    )


def _error(total: float, count: float, reaches: tuple[float, float], scale: float, on: str) -> Score:
    def mean(sum_: float, rows: float) -> float:
        return scale * min(max(sum_, 0.0) / rows, 1.0) if rows > 0 else float("nan")

    low, high = mean(total - reaches[0], count + reaches[1]), mean(total + reaches[0], count - reaches[1])
    return Score(
        _ERROR, mean(total, count), on, share=False, lower=low, upper=high, confidence=_CONFIDENCE, covers="the noise"
    )
