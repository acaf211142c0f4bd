"""Accuracy against ε: this run, what it was compared with, and runs that were made before."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from privet.core.disclosure import Typed
from privet.core.guarantee import digits_up
from privet.core.scores import Score, Trial
from privet.report.figures.drawing import SERIES, Figure, Part, axis, line
from privet.report.origin import interval, origin, plain, rounded
from privet.report.words import counted, up

__all__ = ["accuracy_by_epsilon", "error_bars"]

_Trials = Sequence[Typed[Trial]]
_Group = tuple[str, float]
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "triangle-down")
"""More than there are colours, and a number that shares no factor with theirs: no two of the first 21 are alike."""


def accuracy_by_epsilon(trials: _Trials) -> tuple[Figure, ...]:
    """A figure for each score: accuracy, AUC, …; in the order in which they come."""
    names = dict.fromkeys(each.value.score.name for each in trials)
    return tuple(
        _figure(number, name, [each for each in trials if each.value.score.name == name])
        for number, name in enumerate(names)
    )


def _figure(number: int, name: str, same: _Trials) -> Figure:
    """A score against ε, with a mark for each method and δ; what has no ε is a line across the picture.

    All names stand in the legend, where they can lie over no point.
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
        f"{_capital(name)} against ε",
        f"{_capital(name)} of {counted(len(same), 'model')}, each with its own ε, δ and interval.",
        ("run", "method", "ε at most", "δ", name, "interval", "on", "origin"),
        tuple(
            (
                each.value.run,
                each.value.method,
                up(each.value.epsilon),
                digits_up(each.value.delta),
                rounded(each.value.score.value, share),
                interval(each.value.score),
                each.value.score.on,
                origin(each),
            )
            for each in same
        ),
        {
            "data": drawn + across,
            "layout": {
                "xaxis": axis("ε") | {"rangemode": "tozero"},
                "yaxis": axis(plain(name)) | ({"tickformat": ".2~%", "range": _range(known)} if share else {}),
                "showlegend": True,
            },
        }
        if drawn
        else None,
    )


def _range(trials: _Trials) -> list[float]:
    """From a little below the lowest share to a little above the highest, and hardly beyond what a share can be."""
    scores = [each.value.score for each in trials]
    ends = [end for score in scores for end in (score.lower, score.value, score.upper) if end is not None]
    room = max(0.01, (max(ends) - min(ends)) / 8)
    return [max(min(ends) - room, -0.02), min(max(ends) + room, 1.02)]


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def _name(group: _Group, groups: Collection[_Group]) -> str:
    """What a mark stands for: as much of it as differs."""
    method, delta = group
    shown = f"δ = {digits_up(delta)}"
    if len({method for method, _ in groups}) == 1:
        return shown
    return method if len({delta for _, delta in groups}) == 1 else f"{method}, {shown}"


def error_bars(scores: Sequence[Score], colour: str) -> Part:
    """The intervals of scores as Plotly draws them; none for a score without one."""

    def reach(end: float | None, score: Score) -> float:
        return abs(end - score.value) if end is not None and score.value is not None else 0.0

    return {
        "type": "data",
        "symmetric": False,
        "array": [reach(score.upper, score) for score in scores],
        "arrayminus": [reach(score.lower, score) for score in scores],
        "color": colour,
    }


def _points(trials: _Trials, name: str, place: int) -> Part:
    colour = SERIES[place % len(SERIES)][0]
    values = [each.value.score for each in trials]

    return {
        "type": "scatter",
        "mode": "markers",
        "x": [each.value.epsilon for each in trials],
        "y": [score.value for score in values],
        "error_y": error_bars(values, colour),
        "text": [plain(each.value.run) for each in trials],
        "cliponaxis": False,
        "marker": {"color": colour, "symbol": _SYMBOLS[place % len(_SYMBOLS)], "size": 11},
        "name": plain(name),
        "hovertemplate": "%{text}: ε ≤ %{x:.4g}, %{y:.4g}",
    }


def _line(trial: Typed[Trial], widest: float) -> Part:
    found = trial.value
    name = f"{found.run} (ε = ∞, {origin(trial)})"
    return line([(0.0, found.score.value or 0.0), (widest, found.score.value or 0.0)], plain(name)) | {
        "line": {"color": "var(--soft)", "width": 1.5, "dash": "dot"},
        "hovertemplate": "%{y:.4g}",
    }
