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
from privet.mechanisms import Cells, Count, DiscreteLaplace, Histogram, Laplace, Sum
from privet.report import Score
from privet.training.models import each_alone

__all__ = ["Rows", "Scoring", "auc", "measured", "outputs_of"]

_AT_ONCE = 1 << 14
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
        outputs = each_alone(copy.deepcopy(model).eval(), rows.x)  # a copy: nothing of the rows stays in what leaves
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
