"""Scores against ε: this run, what it was compared with, and earlier runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from privet.core import Score, Trial, Typed, digits_up
from privet.report.card_tables import trial_cells
from privet.report.figures.drawing import SERIES, Figure, Part, axis, capitalize, error_bars, line
from privet.report.origin import escape_markup, origin
from privet.report.words import counted

__all__ = ["accuracy_by_epsilon", "intervals_of"]

_Trials = Sequence[Typed[Trial]]
_Group = tuple[str, float]
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "triangle-down")
"""More than there are colors, and a number that shares no factor with theirs: no two of the first 21 are alike."""


def accuracy_by_epsilon(trials: _Trials) -> tuple[Figure, ...]:
    """Draw a figure for each metric (accuracy, AUC, …), in the order in which they come."""
    names = dict.fromkeys(each.value.score.name for each in trials)
    return tuple(
        _figure(number, name, [each for each in trials if each.value.score.name == name])
        for number, name in enumerate(names)
    )


def _figure(number: int, name: str, same: _Trials) -> Figure:
    """Draw a score against ε, with a mark for each method and δ; a run without a finite ε is a line across the picture.

    All names are in the legend, where they cannot cover a point.
    """
    share = same[0].value.score.share
    known = [each for each in same if each.value.score.value is not None]
    private = [each for each in known if math.isfinite(each.value.epsilon)]
    groups = dict.fromkeys((each.value.method, each.value.delta) for each in private)
    drawn = [
        _points([e for e in private if (e.value.method, e.value.delta) == group], _name(group, groups), place)
        for place, group in enumerate(groups)
    ]
    widest = max((each.value.epsilon for each in private), default=0.0)
    across = [_line(each, widest) for each in known if math.isinf(each.value.epsilon)]
    return Figure(
        f"accuracy-{number}",
        f"{capitalize(name)} against ε",
        f"{capitalize(name)} of {counted(len(same), 'model')}, each with its own ε, δ and interval.",
        ("run", "method", "ε at most", "δ", name, "interval", "on", "origin"),
        tuple(map(trial_cells, same)),
        {
            "data": drawn + across,
            "layout": {
                "xaxis": axis("ε") | {"rangemode": "tozero"},
                "yaxis": axis(escape_markup(name)) | ({"tickformat": ".2~%", "range": _range(known)} if share else {}),
                "showlegend": True,
            },
        }
        if drawn
        else None,
    )


def _range(trials: _Trials) -> list[float]:
    """Return a range from a little below the lowest share to a little above the highest, and hardly beyond [0, 1]."""
    scores = [each.value.score for each in trials]
    ends = [end for score in scores for end in (score.lower, score.value, score.upper) if end is not None]
    room = max(0.01, (max(ends) - min(ends)) / 8)
    return [max(min(ends) - room, -0.02), min(max(ends) + room, 1.02)]


def _name(group: _Group, groups: Collection[_Group]) -> str:
    """Return the name of a mark: as much of it as differs."""
    method, delta = group
    at_delta = f"δ = {digits_up(delta)}"
    if len({method for method, _ in groups}) == 1:
        return at_delta
    return method if len({delta for _, delta in groups}) == 1 else f"{method}, {at_delta}"


def intervals_of(scores: Sequence[Score], color: str) -> Part:
    """Return the intervals of scores as error bars; none for a score without one."""
    return error_bars([(score.lower, score.value, score.upper) for score in scores], color)


def _points(trials: _Trials, name: str, place: int) -> Part:
    color = SERIES[place % len(SERIES)][0]
    values = [each.value.score for each in trials]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [each.value.epsilon for each in trials],
        "y": [score.value for score in values],
        "error_y": intervals_of(values, color),
        "text": [escape_markup(each.value.run) for each in trials],
        "cliponaxis": False,
        "marker": {"color": color, "symbol": _SYMBOLS[place % len(_SYMBOLS)], "size": 11},
        "name": escape_markup(name),
        "hovertemplate": "%{text}: ε ≤ %{x:.4g}, %{y:.4g}",
    }


def _line(trial: Typed[Trial], widest: float) -> Part:
    value = trial.value.score.value or 0.0
    name = f"{trial.value.run} (ε = ∞, {origin(trial)})"
    return line([(0.0, value), (widest, value)], escape_markup(name)) | {
        "line": {"color": "var(--soft)", "width": 1.5, "dash": "dot"},
        "hovertemplate": "%{y:.4g}",
    }
