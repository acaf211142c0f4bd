"""Figures by epoch: ε for several δ, and each measure that was recorded."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privet.core import Typed, digits_up
from privet.report.figures.drawing import SERIES, Figure, Part, Row, axis, line, marks
from privet.report.origin import escape_markup, format_score, origin
from privet.report.score_intervals import SAMPLING
from privet.report.training_records import Growth, Measure, Series
from privet.report.words import listed, up

__all__ = ["growth_by_epoch", "measure_by_epoch"]

_TITLES = {
    Measure.ACCURACY: "Accuracy from epoch to epoch",
    Measure.LOSS: "Loss from epoch to epoch",
    Measure.CLIPPED: "How many examples were clipped",
}
_CURRENT = (
    " The curve is of the current weights; where a run averages its weights, the released model is their average, "
    "and its score may differ from the end of the curve."
)
_TICKS = 10
_MANY = 25
"""The largest number of rows of a table."""


def growth_by_epoch(growth: Growth) -> Figure:
    """Draw ε against epochs, or queries, for several δ; the run itself is the last one at the δ in the middle."""
    points = [list(zip(growth.epochs, row, strict=True)) for row in growth.by_delta]
    lines = [
        _marked(line(each, f"δ = {digits_up(d)}", i), i)
        for i, (each, d) in enumerate(zip(points, growth.deltas, strict=True))
    ]
    own = min(1, len(points) - 1)
    last, upper = points[own][-1]
    finite = math.isfinite(upper)
    itself = marks([(last, upper)]) | {"name": f"this run: ε ≤ {up(upper)}", "showlegend": True}
    spec: Part = {
        "data": [*lines, *([itself] if finite else [])],
        "layout": {"xaxis": _epochs(last, growth.by), "yaxis": axis("ε") | {"rangemode": "tozero"}},
    }
    after = f" After {last:g} {growth.by}, ε ≤ {up(upper)} at δ = {digits_up(growth.deltas[own])}." if finite else ""
    open_ = [d for d, row in zip(growth.deltas, growth.by_delta, strict=True) if not any(map(math.isfinite, row))]
    drawn = [digits_up(delta) for delta in growth.deltas if delta not in open_]
    if open_:
        after += (
            f" For δ = {listed([digits_up(delta) for delta in open_])} there is no finite ε: a part has a δ above it."
        )
    return Figure(
        "epochs",
        f"How ε grows with the number of {growth.by}",
        f"ε against {growth.by} for δ = {listed(drawn or [digits_up(delta) for delta in growth.deltas])}.{after}",
        (growth.by, *(f"ε at δ = {digits_up(delta)}" for delta in growth.deltas)),
        tuple((f"{e:g}", *(up(row[i]) for row in growth.by_delta)) for i, e in enumerate(growth.epochs)),
        spec if any(each["x"] for each in lines) else None,
    )


def measure_by_epoch(measure: Measure, history: Sequence[Typed[Series]]) -> Figure | None:
    """Draw one measure against epochs, a line for each set of rows; None if it was not recorded."""
    series = [each for each in history if each.value.measure is measure]
    if not series:
        return None
    share = measure is not Measure.LOSS
    lines = []
    for index, each in enumerate(series):
        points = [(x, y) for x, y in zip(each.value.epochs, each.value.values, strict=True) if y is not None]
        name = escape_markup(f"{each.value.on} ({origin(each)})")
        lines.append(_marked(line(points, name, index % len(SERIES)), index))
    text = "; ".join(
        f"on {each.value.on} {_ends(each.value, share)} ({origin(each)}{_margin(each.value)})" for each in series
    )
    epochs = sorted({epoch for each in series for epoch in each.value.epochs})
    return Figure(
        f"followed-{measure.name.lower()}",
        _TITLES[measure],
        f"{measure.value.capitalize()} after each epoch: {text}.{_CURRENT if measure is Measure.ACCURACY else ''}",
        ("epoch", *(f"{each.value.on} ({origin(each)})" for each in series)),
        tuple(_row(epoch, [each.value for each in series], share) for epoch in epochs[:: len(epochs) // _MANY + 1]),
        {
            "data": lines,
            "layout": {
                "xaxis": _epochs(epochs[-1] if epochs else 1.0),
                "yaxis": axis(measure.value) | ({"tickformat": ".2~%"} if share else {}),
                "showlegend": True,
            },
        }
        if any(each["x"] for each in lines)
        else None,
    )


def _epochs(last: float, by: str = "epochs") -> Part:
    """Return an axis of whole epochs, with ten ticks at most."""
    return axis(by) | {"rangemode": "tozero", "dtick": max(1, math.ceil(last / _TICKS))}


def _ends(series: Series, share: bool) -> str:
    first, last = (format_score(series.values[place], share) for place in (0, -1)) if series.values else ("–", "–")
    return f"from {first} to {last}" if len(series.values) > 1 else last


def _margin(series: Series) -> str:
    """Return the margin of a score on a sample of rows; empty for other measures."""
    if series.measure is not Measure.ACCURACY:
        return ""
    if series.margin is None:
        return "; no interval recorded"
    return f"; each ± {format_score(series.margin, True)} at most with 95 % confidence, covers {SAMPLING}"


def _row(epoch: float, series: Sequence[Series], share: bool) -> Row:
    values = (dict(zip(each.epochs, each.values, strict=True)).get(epoch) for each in series)
    return (f"{epoch:g}", *(format_score(value, share) for value in values))


def _marked(drawn: Part, index: int) -> Part:
    return drawn | {"mode": "lines+markers", "marker": {"symbol": SERIES[index % len(SERIES)][2], "size": 7}}
