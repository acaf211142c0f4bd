"""From what was drawn to answers: post-processing, which is free."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from privet.core import counted
from privet.data import Category, Number, Outside
from privet.query import moments
from privet.query import questions as measures
from privet.query.answers import RANK, ROWS, Answer, Row
from privet.query.methods import QuestionMethod, ReleasedValues
from privet.query.question_spec import GRAIN, MISSING, QuestionSpec

__all__ = ["answer_of"]

_FINE, _COARSE = 0.5 ** (GRAIN + 1), 0.5 ** (GRAIN // 2 + 1)
"""Numbers are rounded by up to half a step e of their grid, which is finer for a mean."""
_MOMENTS: dict[type, tuple[Callable[[Sequence[float], float], moments.MomentEstimate], float, float, float]] = {
    measures.MeanMeasure: (moments.mean, _FINE, 0.0, 1.0),
    measures.VarianceMeasure: (moments.variance, _COARSE + _COARSE**2, 0.0, 0.25),
    measures.CovarianceMeasure: (moments.covariance, _COARSE + _COARSE**2, -0.25, 0.25),
}
"""The estimate, how far rounding moves it, and its bounds, on the scale of u.

A mean moves by e at most; as deviations are 1/2 at most, a variance by 2·e/2 + e², and a covariance by e/2 + e/2 + e².
"""


def answer_of(
    method: QuestionMethod, drawn: ReleasedValues, counts: Sequence[float] | None, confidence: float
) -> Answer:
    """The answer to one question; `counts` are its counts after they were made to agree with others."""
    spec, measure = method.spec, method.spec.question.measure
    if type(measure) in _MOMENTS:
        rows = _moments(method, drawn, confidence)
    elif isinstance(measure, measures.SumMeasure):
        rows = _sums(method, drawn, confidence)
    elif spec.ranked or (isinstance(measure, measures.TopKMeasure) and not spec.private):
        rows = [Row(group, float(value)) for group, (value,) in zip(drawn.groups, drawn.values, strict=True)]
    else:
        rows = _counts(method, drawn, counts, confidence)
    if isinstance(measure, measures.TopKMeasure) and spec.private:
        best = sorted(rows, key=lambda row: -row.value)[: measure.k]
        rows = [Row(row.group, float(rank)) for rank, row in enumerate(best, start=1)]
    notes = tuple(_notes(method, confidence))
    return Answer(str(spec.question), spec.axes, _called(spec), tuple(rows), confidence, notes)


def _counts(
    method: QuestionMethod, drawn: ReleasedValues, counts: Sequence[float] | None, confidence: float
) -> list[Row]:
    noisy = [float(value) for (value,) in drawn.values]
    values = [max(value, 0.0) for value in noisy] if counts is None else counts
    rows = []
    for group, value, raw in zip(drawn.groups, values, noisy, strict=True):
        low, high = method.ends(raw, confidence)
        # What agreement with other answers has moved out of the interval widens it: it holds the truth no less often.
        rows.append(Row(group, value, min(low, value), max(high, value)))
    return rows


def _sums(method: QuestionMethod, drawn: ReleasedValues, confidence: float) -> list[Row]:
    width, column = method.width(confidence), method.spec.number
    low = 0.0 if column is not None and column.low >= 0 else -math.inf
    high = 0.0 if column is not None and column.high <= 0 else math.inf

    def within(value: float) -> float:
        return min(max(value, low), high)

    rows = []
    for group, (noisy,) in zip(drawn.groups, drawn.values, strict=True):
        value = within(float(noisy))  # the ends reach as far from here as the noise does, also where it was moved
        ends = min(value, float(noisy)) - width, max(value, float(noisy)) + width
        rows.append(Row(group, value, within(ends[0]), within(ends[1])))
    return rows


def _moments(method: QuestionMethod, drawn: ReleasedValues, confidence: float) -> list[Row]:
    measure, width = method.spec.question.measure, method.joint_width(confidence)
    columns = [column for column in map(method.spec.schema.find, measure.columns) if isinstance(column, Number)]
    scale = math.prod(
        column.high - column.low
        for column in (columns * 2 if isinstance(measure, measures.VarianceMeasure) else columns)
    )
    shift = columns[0].low if isinstance(measure, measures.MeanMeasure) else 0.0
    estimate_of, rounding, least, most = _MOMENTS[type(measure)]
    rows = []
    for group, sums in zip(drawn.groups, drawn.values, strict=True):
        estimate = estimate_of(sums.tolist(), width)
        low, high = max(estimate.low - rounding, least), min(estimate.high + rounding, most)
        rows.append(Row(group, *(shift + scale * number for number in (estimate.value, low, high))))
    return rows


def _called(spec: QuestionSpec) -> str:
    match spec.question.measure:
        case measures.TopKMeasure():
            return RANK
        case measures.CountMeasure() | measures.HistogramMeasure():
            return ROWS
        case _:
            return str(spec.question.measure)


def _rows(count: int) -> str:
    return "1 row lies" if count == 1 else f"{count:,} rows lie"


def _order(method: QuestionMethod, confidence: float) -> str:
    """How far the order of the most frequent values can be trusted."""
    off, sure = math.ceil(method.width(confidence)), f"with {100 * confidence:g} % confidence"
    rows = counted(off, "row")
    if not method.spec.private:
        return f"no value left out has over {rows} more, {sure}"
    # How many values there are is private, so that nothing can be said of all of them together.
    least = "" if method.threshold is None else f"; those below {method.threshold:,} with their noise are left out"
    return f"values are ranked by their counts, each off by at most {rows}, {sure}{least}"


def _gone(measure: measures.Measure) -> str:
    return "not counted" if isinstance(measure, measures.TopKMeasure) else f"in the group {MISSING}"


def _notes(method: QuestionMethod, confidence: float) -> list[str]:
    spec, measure = method.spec, method.spec.question.measure
    notes = []
    for name in dict.fromkeys(measure.columns):
        column = spec.schema.find(name)
        if isinstance(column, Number) and not isinstance(measure, measures.HistogramMeasure):
            beyond = "count as the bound" if column.outside is Outside.CLAMP else "count as missing"
            clamping = f"{name} beyond {column.low:g} to {column.high:g} {beyond}: that bias is not in the interval"
            gone = "add nothing" if isinstance(measure, measures.SumMeasure) else "are left out"
            substituted = f"missing ones count as {column.substitute:g}"
            notes.append(f"{clamping}; {f'missing ones {gone}' if math.isnan(column.substitute) else substituted}")
    if spec.ranked:
        rank = math.ceil(method.width(confidence))
        what = f"the {100 * method.quantile:g} % quantile"
        if isinstance(measure, (measures.MinimumMeasure, measures.MaximumMeasure)):
            notes.append(f"this is {what}, since the extreme value itself is one person's")
        notes.append(f"at most {_rows(rank)} between it and {what}, with {100 * confidence:g} % confidence")
    if isinstance(measure, measures.TopKMeasure):
        notes.append(_order(method, confidence))
    if spec.private:
        notes.append("groups are private: only those with enough in them are shown")
        names = [
            name for name in spec.axes if isinstance(column := spec.schema.find(name), Category) and not column.values
        ]
        notes.extend(f"rows without a value of {name} are {_gone(measure)}" for name in names)
    if method.threshold is not None and not isinstance(measure, measures.TopKMeasure):
        released = f"shown are counts that reach {method.threshold:,} with their noise"
        notes.append(f"{released}, so that those near it are overstated; the intervals allow for that")
    if spec.rows > 1:
        notes.append(f"the first {spec.rows} rows of each user are used")
    return notes
