"""How good a model is: on public rows for nothing, on private ones through a mechanism."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, log, sqrt
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import t as student
from torch import Tensor, nn

from privet.attacks import Outcome
from privet.core import Event, InvalidInput, Release, Unit, Whose
from privet.core.random import Rng
from privet.data import Number
from privet.report import (
    CONFIDENCE,
    EXACT,
    NOISE_AND_SAMPLING,
    SAMPLING,
    SAMPLING_INDEPENDENT,
    Choice,
    Score,
    ScoreMechanism,
    format_score,
    share_interval,
    share_of,
)
from privet.training.models import apply_rowwise

__all__ = [
    "LabeledRows",
    "PrivateScoring",
    "accuracy_margin",
    "auc",
    "expected_interval",
    "model_outputs",
    "predictions",
    "score_advice",
    "score_exactly",
]

_AT_ONCE = 1 << 14
_HALF = (1 - CONFIDENCE) / 2
"""The allowed error of one end of an interval."""
_WIDE = 0.1
"""A score says little if the expected half-width of its interval is above this share."""
_MOST_ROWS = 1 << 40
"""No table has more rows, so that no more are looked for."""
_ERROR = "mean absolute error"
_LEAST_OF_CLASS = 2
_NORMAL = ", by a normal approximation"


@dataclass(frozen=True, eq=False)
class LabeledRows:
    """Rows with their targets, in the form that a model takes. Their values are not shown in logs."""

    x: Tensor = field(repr=False)
    y: Tensor = field(repr=False)
    label: Number | None
    """The target of a regression."""
    users: npt.NDArray[Any] | None = field(default=None, repr=False)
    digest: str = ""
    """The SHA-256 of public rows as they were read; empty for private rows."""
    by_user: bool = False
    """Whether one user may have several of them."""

    def __len__(self) -> int:
        return len(self.x)

    def __reduce__(self) -> NoReturn:
        raise InvalidInput("rows", "cannot be pickled", "pass the path of the data instead")


class _Model(Protocol):
    """A model."""

    def __call__(self, rows: Tensor) -> Tensor:
        """One number for each class, or the predicted number."""


@torch.no_grad()
def model_outputs(model: nn.Module | _Model, x: Tensor) -> Tensor:
    """Return the outputs of a model, computed in batches.

    Args:
        model: The model.
        x: The rows.
    """
    parts = [model(some) for some in torch.split(x, _AT_ONCE)] if len(x) else []
    return torch.cat(parts) if parts else torch.zeros(0)


def predictions(outputs: Tensor) -> Tensor:
    """Return the predictions of a regression: its outputs, clamped to the target's range, which is scaled to [-1, 1].

    `privet predict` writes these and every score is of these, so that no error exceeds the range. NaN stays NaN.

    Args:
        outputs: Outputs of the model.
    """
    return outputs.double().clamp(-1.0, 1.0)


def score_exactly(
    model: nn.Module, rows: LabeledRows, classes: int, on: str, *, seen: bool = False
) -> tuple[Score, ...]:
    """Return the scores on some rows without noise: for public rows, or for the internal report.

    Args:
        model: The model to score.
        rows: The rows to score it on.
        classes: Number of classes; 0 for regression.
        on: Name of the rows, in words.
        seen: Whether the model was trained on these rows. Its score is then exact, and not an estimate for new rows.
    """
    scores = tuple(
        replace(score, rows=rows.digest) for score in _measured(model_outputs(model, rows.x), rows, classes, on)
    )
    return tuple(map(_as_seen, scores)) if seen else scores


def _measured(outputs: Tensor, rows: LabeledRows, classes: int, on: str) -> tuple[Score, ...]:
    if not classes:
        return _errors(outputs, rows, on)
    right = _right(outputs, rows.y).double() if len(rows) else torch.zeros(0).double()
    lower, upper = _sampled(right)
    value = float(right.mean()) if len(rows) else float("nan")
    found = [Score("accuracy", value, on, True, lower, upper, CONFIDENCE, _covers(rows))]
    if classes == 2 and len(rows):
        found.append(_area(outputs[:, 1] - outputs[:, 0], rows, on))
    return tuple(found)


def _as_seen(score: Score) -> Score:
    return replace(score, lower=score.value, upper=score.value, confidence=1.0, covers=EXACT)


def _sampled(right: Tensor) -> tuple[float, float]:
    """Interval of a share for the sampling of independent rows."""
    count, good = len(right), float(right.sum())
    return share_interval(good, count - good, 1 - CONFIDENCE) if count else (0.0, 1.0)


def _covers(rows: LabeledRows) -> str:
    """What an interval for the sampling of rows covers: rows of one user may hang together, in ways not known."""
    return SAMPLING_INDEPENDENT if rows.by_user else SAMPLING


def _area(scores: Tensor, rows: LabeledRows, on: str) -> Score:
    value = auc(scores, rows.y)
    first, second = (scores[rows.y == label].double().numpy() for label in (0, 1))
    if min(len(first), len(second)) < _LEAST_OF_CLASS or not np.isfinite(scores.numpy()).all():
        # Nothing is proven of so few rows: every value is possible.
        return Score("AUC", value, on, False, 0.0, 1.0, CONFIDENCE, _covers(rows))
    found = Outcome("AUC", second, first).auc(CONFIDENCE)
    return Score("AUC", value, on, False, found.lower, found.upper, CONFIDENCE, _covers(rows))


def _errors(outputs: Tensor, rows: LabeledRows, on: str) -> tuple[Score, Score]:
    """Return the errors of the clamped predictions, with intervals by a normal approximation."""
    scale = 1.0 if rows.label is None else (rows.label.high - rows.label.low) / 2
    known = rows.y.isfinite()
    errors = (predictions(outputs) - rows.y)[known] * scale
    count, covers = len(errors), f"{_covers(rows)}{_NORMAL}"

    def ends(values: Tensor) -> tuple[float | None, float | None]:
        if count <= 1 or not values.isfinite().all():
            return None, None
        reach = float(student.ppf(1 - _HALF, count - 1)) * float(values.std(correction=0)) / sqrt(count - 1)
        return max(float(values.mean()) - reach, 0.0), float(values.mean()) + reach

    low, high = ends(errors.abs())
    least, most = ends(errors.square())
    root = None if least is None else sqrt(least), None if most is None else sqrt(most)
    return (
        Score(_ERROR, float(errors.abs().mean()), on, False, low, high, CONFIDENCE, covers),
        Score("root mean squared error", float(errors.square().mean().sqrt()), on, False, *root, CONFIDENCE, covers),
    )


def _right(outputs: Tensor, answers: Tensor) -> Tensor:
    """Return which rows are classified correctly; a row whose outputs are not finite is not."""
    return (outputs.argmax(1) == answers) & outputs.isfinite().all(1)


def auc(scores: Tensor, answers: Tensor) -> float:
    """Return the probability that a row of the second class has a higher score than one of the first; ties count half.

    Args:
        scores: Score of each row.
        answers: Class of each row, 0 or 1.
    """
    first, second = scores[answers == 0].double().sort().values, scores[answers == 1].double()
    if not len(first) or not len(second):
        return float("nan")
    below = torch.searchsorted(first, second, right=False) + torch.searchsorted(first, second, right=True)
    return float(below.double().mean() / 2 / len(first))


@dataclass(frozen=True)
class PrivateScoring:
    """Plan for the release of one score of one model on private rows that it was not trained on.

    Guarantee: pure ε for `unit`, by one draw (`ScoreMechanism`): a row scores 1 if it is right and 0 if not, or for
    numbers 1 less its error as a share of the target's range. The model must not depend on the rows but through a
    release that is charged. What it predicts for a row follows from that row (`apply_rowwise`). No row raises: rows on
    which a model gives no number count as wrong, or as the largest error.

    Attributes:
        epsilon: The privacy cost of the score.
        unit: Whose data is protected.
        rows: The largest number of rows that one unit contributes.
        classes: The number of classes; 0 for a regression.
    """

    epsilon: float
    unit: Unit
    rows: int
    classes: int

    @cached_property
    def mechanism(self) -> ScoreMechanism:
        """The mechanism, known before any row is read; for numbers its scores are 1 less the error."""
        return ScoreMechanism(self.epsilon, self.unit, self.rows, is_binary=self.classes > 0)

    @property
    def event(self) -> Event:
        """The event of the score, known before any row is read."""
        return self.mechanism.event

    def release(self, model: nn.Module, rows: LabeledRows, *, rng: Rng, source: str, on: str) -> Release[Score]:
        """Release the score, with an interval that covers the noise and the sampling of the rows.

        Guarantee: that of `event`, for `unit` (see the class). The interval is post-processing of the noisy sums.

        Args:
            model: The model to score.
            rows: The private rows to score it on.
            rng: The source of the noise.
            source: The name of the data, for the release.
            on: Which rows these are, in words.
        """
        outputs = apply_rowwise(copy.deepcopy(model).eval(), rows.x)  # a copy: nothing of the rows stays in what leaves
        users = rows.users if self.unit.whose is Whose.USER else None
        scores = np.zeros(0)
        if len(rows) and self.classes:
            scores = _right(outputs, rows.y).double().numpy()
        elif len(rows):
            errors = ((predictions(outputs) - rows.y) / 2).abs()
            scores = (1 - errors).numpy()
        sums = self.mechanism.release(scores, users, rng=rng, source=source)
        if self.classes:
            return sums.map(lambda both: self._accuracy(*both, on))
        scale = 1.0 if rows.label is None else rows.label.high - rows.label.low
        return sums.map(lambda both: self._error(*both, scale, on))

    def _accuracy(self, right: float, wrong: float, on: str) -> Score:
        value = share_of(right, wrong, otherwise=float("nan"))
        ends = self.mechanism.interval(right, wrong)
        return Score("accuracy", value, on, True, *ends, CONFIDENCE, NOISE_AND_SAMPLING)

    def _error(self, right: float, wrong: float, scale: float, on: str) -> Score:
        value = scale * share_of(wrong, right, otherwise=float("nan"))
        low, high = self.mechanism.interval(right, wrong)
        return Score(_ERROR, value, on, False, scale * (1 - high), scale * (1 - low), CONFIDENCE, NOISE_AND_SAMPLING)


def expected_interval(scoring: PrivateScoring, rows: int | None, share: float, label: object = None) -> Choice:
    """Return the expected half-width of a private score's interval as a line of the plan, before anything is drawn.

    Args:
        scoring: Plan of the score.
        rows: Public or released number of all rows; None if it is private.
        share: Fraction of the rows that is held out.
        label: Target column, where it is public.
    """
    if rows is None:
        value = f"the noise moves a count by ± {scoring.mechanism.reach:,.0f} rows at most"
        return Choice("expected interval of the score", value, "the width depends on a private number of rows")
    held = max(round(rows * share), 1)
    width = scoring.mechanism.half_width(held)
    if scoring.classes:
        value = f"± {format_score(width, share=True)} at most"
    else:
        scale = label.high - label.low if isinstance(label, Number) else None
        value = (
            f"± {format_score(width, share=True)} of the target's range at most"
            if scale is None
            else (f"± {format_score(scale * width, share=False)} at most")
        )
    return Choice("expected interval of the score", value, f"95 %, noise and sampling of about {held:,} rows")


def score_advice(scoring: PrivateScoring, rows: int | None, share: float, *, needed: bool = False) -> str:
    """Return advice where the interval of a private score would be wide; empty where it would not.

    Args:
        scoring: Plan of the score.
        rows: Public number of all rows; None if it is private. Then the advice states for how many rows it holds.
        share: Fraction of the rows that is held out.
        needed: Whether the run needs a score, because it selects by it.
    """
    of = "" if scoring.classes else " of the target's range"
    if rows is None:
        least = _least_rows(scoring)
        wide = f"With fewer than about {ceil(least / share):,} rows, of which {least:,} are held out, the"
        how = f"wider than ± {format_score(_WIDE, share=True)}{of}"
    else:
        width = scoring.mechanism.half_width(max(round(rows * share), 1))
        if width <= _WIDE:
            return ""
        wide, how = "The", f"± {format_score(width, share=True)}{of} at most"
    without = "" if needed else "--score-share 0 leaves it out; "
    said = f"{wide} score on held-out rows would say little: its expected interval is {how}"
    return f"{said}. Advice: {without}--test FILE scores on public rows at no cost."


def _least_rows(scoring: PrivateScoring) -> int:
    """Return the least number of held-out rows whose expected interval is not wide, which follows from the plan."""
    low, high = 0, 1
    while high < _MOST_ROWS and scoring.mechanism.half_width(high) > _WIDE:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if scoring.mechanism.half_width(middle) > _WIDE else (low, middle)
    return high


def accuracy_margin(rows: int) -> float:
    """Return the margin of error of an accuracy on independent rows, with 95 % confidence.

    P(|mean of n - p| ≥ t) ≤ 2 e^(-2 n t²) for any number of rows (Hoeffding 1963, Thm 2).

    Args:
        rows: Number of rows.
    """
    return min(sqrt(log(2 / (1 - CONFIDENCE)) / (2 * rows)), 1.0) if rows else 1.0
