"""Accuracy against ε: this run, what it was compared with, and runs that were made before."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privet.core.guarantee import digits_up
from privet.report.card import Typed
from privet.report.figures.drawing import SERIES, Figure, Part, axis
from privet.report.origin import interval, origin, plain, rounded
from privet.report.training_records import Score, Trial
from privet.report.words import counted, up

__all__ = ["accuracy_by_epsilon"]

_Trials = Sequence[Typed[Trial]]


def accuracy_by_epsilon(trials: _Trials) -> tuple[Figure, ...]:
    """A figure for each score: accuracy, AUC, …; in the order in which they come."""
    names = dict.fromkeys(each.value.score.name for each in trials)
    return tuple(
        _figure(number, name, [each for each in trials if each.value.score.name == name])
        for number, name in enumerate(names)
    )


def _figure(number: int, name: str, same: _Trials) -> Figure:
    """A score against ε, with a mark for each δ; what has no ε is a line across the picture."""
    share = same[0].value.score.share
    known = [each for each in same if each.value.score.value is not None]
    private = [each for each in known if math.isfinite(each.value.epsilon)]
    deltas = sorted({each.value.delta for each in private})
    drawn = [_points([e for e in private if e.value.delta == delta], delta, i) for i, delta in enumerate(deltas)]
    across = [each for each in known if math.isinf(each.value.epsilon)]
    best = max(private, key=lambda each: each.value.score.value or 0.0, default=None)
    told = f" The best has {rounded(best.value.score.value, share)} at ε ≤ {up(best.value.epsilon)}." if best else ""
    return Figure(
        f"accuracy-{number}",
        f"{_capital(name)} against ε",
        f"{_capital(name)} of {counted(len(same), 'model')}, each with its own ε and δ.{told}",
        ("run", "method", "ε at most", "δ", name, "interval", "on", "origin"),
        tuple(
            (
                each.value.run,
                each.value.method.value,
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
            "data": drawn,
            "layout": {
                "xaxis": axis("ε") | {"rangemode": "tozero"},
                "yaxis": axis(plain(name)) | ({"tickformat": ".2~%", "range": _range(known)} if share else {}),
                "shapes": [_line(each.value.score) for each in across],
                "annotations": [_label(each) for each in across],
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


def _points(trials: _Trials, delta: float, index: int) -> Part:
    colour, _, symbol = SERIES[index % len(SERIES)]
    values = [each.value.score for each in trials]
    several = len({each.value.method for each in trials}) > 1

    def reach(end: str, score: Score) -> float:
        edge = getattr(score, end)
        return abs(edge - score.value) if edge is not None and score.value is not None else 0.0

    return {
        "type": "scatter",
        "mode": "markers+text" if several else "markers",
        "x": [each.value.epsilon for each in trials],
        "y": [score.value for score in values],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [reach("upper", score) for score in values],
            "arrayminus": [reach("lower", score) for score in values],
            "color": colour,
        },
        "text": [plain(each.value.method.value) for each in trials],
        "textposition": _beside(trials),
        "cliponaxis": False,
        "marker": {"color": colour, "symbol": symbol, "size": 11},
        "name": f"δ = {digits_up(delta)}",
        "hovertemplate": "ε ≤ %{x:.4g}, %{y:.4g}",
    }


def _beside(trials: _Trials) -> list[str]:
    """Where each point's name stands: on its inner side, and neighbours in height by turns above and below."""
    widest = max((each.value.epsilon for each in trials), default=0.0)
    falling = sorted(range(len(trials)), key=lambda place: trials[place].value.score.value or 0.0)
    found = [""] * len(trials)
    for rank, place in enumerate(falling):
        side = "left" if 2 * trials[place].value.epsilon > widest else "right"
        found[place] = f"{'top' if rank % 2 else 'bottom'} {side}"
    return found


def _line(score: Score) -> Part:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": score.value,
        "y1": score.value,
        "line": {"color": "var(--soft)", "width": 1.5, "dash": "dot"},
    }


def _label(trial: Typed[Trial]) -> Part:
    return {
        "xref": "paper",
        "x": 1,
        "xanchor": "right",
        "y": trial.value.score.value,
        "yanchor": "bottom",
        "showarrow": False,
        "text": plain(f"{trial.value.run}: no privacy ({origin(trial)})"),
    }
