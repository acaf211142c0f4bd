"""The parts of figures. Colors are the names of CSS variables, so that a figure follows the theme of its page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privet.report.curves import Curves
from privet.report.words import ACCOUNTANTS

__all__ = [
    "SERIES",
    "Figure",
    "Part",
    "Row",
    "axis",
    "bars",
    "by",
    "capitalize",
    "error_bars",
    "filled",
    "line",
    "marks",
    "pointer",
    "rate_axes",
    "rule",
]

Part = dict[str, Any]
Row = tuple[str, ...]
SERIES = (("var(--one)", "solid", "circle"), ("var(--two)", "dash", "square"), ("var(--three)", "dot", "diamond"))
"""Color, dash and symbol of each line of a figure: no two differ in color alone."""
_MOST_TICKS = 7


@dataclass(frozen=True)
class Figure:
    """One figure: its title, its description in words, and its numbers as a table."""

    id: str
    title: str
    alternative: str
    """The text alternative to the picture."""
    head: Row
    rows: tuple[Row, ...]
    spec: Part | None
    """The picture for plotly.js; None if there is nothing to draw, and `alternative` says why."""


def by(curves: Curves) -> str:
    """Return which accountant proved the curves, for the end of a clause; empty if it is the best one."""
    return f", by {ACCOUNTANTS[curves.alone]} alone" if curves.alone is not None else ""


def axis(title: str, *, decades: float | None = None) -> Part:
    """Return an axis; a logarithmic one over that many decades, if they are given."""
    spec: Part = {
        "title": {"text": title, "standoff": 8},
        "gridcolor": "var(--line)",
        "linecolor": "var(--line)",
        "zeroline": False,
        "automargin": True,
    }
    if decades is not None:
        spec |= {"type": "log", "dtick": max(1, math.ceil(decades / _MOST_TICKS)), "exponentformat": "power"}
    return spec


def rate_axes(curve: str) -> Part:
    """Return the axes of a ROC curve near zero: TPR against FPR, both logarithmic."""
    limits = {"range": [-4, 0.05], "tickformat": ".2~%"}
    return {
        "xaxis": axis("false-positive rate (FPR)", decades=4) | limits,
        "yaxis": axis(f"{curve} (TPR)", decades=4) | limits,
    }


def bars(x: Sequence[object], y: Sequence[object], color: str | list[str], hover: str) -> Part:
    """Return bars; they are vertical unless `orientation` is changed to "h"."""
    return {
        "type": "bar",
        "x": list(x),
        "y": list(y),
        "marker": {"color": color},
        "hovertemplate": hover,
        "showlegend": False,
    }


def error_bars(intervals: Sequence[tuple[float | None, float | None, float | None]], color: str) -> Part:
    """Return the bars of intervals, each given as (lower, value, upper); None where an end is not known."""

    def reach(low: float | None, high: float | None) -> float:
        return max(high - low, 0.0) if low is not None and high is not None else 0.0

    return {
        "type": "data",
        "symmetric": False,
        "array": [reach(value, upper) for _, value, upper in intervals],
        "arrayminus": [reach(lower, value) for lower, value, _ in intervals],
        "color": color,
    }


def rule(along: str, at: float, style: Part) -> Part:
    """Return a straight line across the whole picture, at a place on the axis `along` ("x" or "y")."""
    across = "y" if along == "x" else "x"
    ends = {f"{along}0": at, f"{along}1": at, f"{across}0": 0, f"{across}1": 1, f"{across}ref": "paper"}
    return {"type": "line", "line": style, **ends}


def capitalize(text: str) -> str:
    """Return a text with a capital first letter; the others stay as they are."""
    return text[:1].upper() + text[1:]


def line(points: Sequence[tuple[float, float]], name: str, series: int = 0) -> Part:
    """Return a line through the finite points."""
    color, dash, _ = SERIES[series]
    finite = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [x for x, _ in finite],
        "y": [y for _, y in finite],
        "name": name,
        "line": {"color": color, "dash": dash, "width": 2.5},
        "hovertemplate": "%{x:.4g}, %{y:.4g}",
    }


def marks(points: Sequence[tuple[float, float]]) -> Part:
    """Return points that belong to the run itself."""
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [x for x, _ in points],
        "y": [y for _, y in points],
        "cliponaxis": False,
        "marker": {"color": "var(--mark)", "size": 11, "symbol": "circle"},
        "name": "this run",
        "showlegend": False,
        "hoverinfo": "x+y",
    }


def pointer(x: float, y: float, text: str, *, across: int, above: int) -> Part:
    """Return a label beside a point, with a thin line to it; on a logarithmic axis, give the logarithm."""
    return {
        "x": x,
        "y": y,
        "text": text,
        "ax": across,
        "ay": -above,
        "arrowcolor": "var(--soft)",
        "arrowwidth": 1,
        "arrowhead": 0,
        "standoff": 6,
        "bgcolor": "var(--card)",
    }


def filled(color: str) -> Part:
    """Return a fill down to the bottom, which is where `tozeroy` ends on a logarithmic axis."""
    return {"fill": "tozeroy", "fillcolor": color}
