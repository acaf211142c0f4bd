"""What figures are made of. Colours are the names of CSS variables, so that a figure follows its page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privet.report.curves import Curves
from privet.report.words import ACCOUNTANTS

__all__ = ["SERIES", "Figure", "Part", "Row", "axis", "by", "filled", "line", "marks", "pointer"]

Part = dict[str, Any]
Row = tuple[str, ...]
SERIES = (("var(--one)", "solid", "circle"), ("var(--two)", "dash", "square"), ("var(--three)", "dot", "diamond"))
"""Colour, dash and symbol of each line of a figure: none is told apart by its colour alone."""
_MOST_TICKS = 7


@dataclass(frozen=True)
class Figure:
    """One figure: its title, what it says in words, and its numbers as a table."""

    id: str
    title: str
    alternative: str
    """What one would see: the text that stands for the picture."""
    head: Row
    rows: tuple[Row, ...]
    spec: Part | None
    """The picture for plotly.js; None where there is nothing to draw, and `alternative` says why."""


def by(curves: Curves) -> str:
    """Whose proof the curves are, at the end of a clause; empty where they are by the best accountant."""
    return f", by {ACCOUNTANTS[curves.alone]} alone" if curves.alone is not None else ""


def axis(title: str, *, decades: float | None = None) -> Part:
    """An axis; a logarithmic one over that many decades, if they are given."""
    drawn: Part = {
        "title": {"text": title, "standoff": 8},
        "gridcolor": "var(--line)",
        "linecolor": "var(--line)",
        "zeroline": False,
        "automargin": True,
    }
    if decades is not None:
        drawn |= {"type": "log", "dtick": max(1, math.ceil(decades / _MOST_TICKS)), "exponentformat": "power"}
    return drawn


def line(points: Sequence[tuple[float, float]], name: str, series: int = 0) -> Part:
    """A line through the finite points."""
    colour, dash, _ = SERIES[series]
    finite = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [x for x, _ in finite],
        "y": [y for _, y in finite],
        "name": name,
        "line": {"color": colour, "dash": dash, "width": 2.5},
        "hovertemplate": "%{x:.4g}, %{y:.4g}",
    }


def marks(points: Sequence[tuple[float, float]]) -> Part:
    """Points that belong to the run itself."""
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
    """A label beside a point, with a thin line to it; on a logarithmic axis its place is the logarithm."""
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


def filled(colour: str) -> Part:
    """Filled down to the bottom, which is where `tozeroy` ends on a logarithmic axis."""
    return {"fill": "tozeroy", "fillcolor": colour}
