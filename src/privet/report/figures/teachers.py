"""What is drawn of an ensemble of teachers: how far they agree, and how good a student is by how many they are."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privet.core.disclosure import Typed
from privet.core.guarantee import digits_up
from privet.core.scores import Trial
from privet.report.figures.accuracy import error_bars
from privet.report.figures.drawing import SERIES, Figure, Part, axis
from privet.report.origin import interval, origin, plain, rounded
from privet.report.training_records import Consensus
from privet.report.words import up

__all__ = ["accuracy_by_teachers", "consensus"]


def accuracy_by_teachers(trials: Sequence[Typed[Trial]]) -> tuple[Figure, ...]:
    """A score against the number of teachers, a figure for each score of which two numbers of teachers are known."""
    taught = [each for each in trials if each.value.teachers is not None and each.value.score.value is not None]
    found = []
    for number, name in enumerate(dict.fromkeys(each.value.score.name for each in taught)):
        same = [each for each in taught if each.value.score.name == name]
        # Of each run its last: all that were asked, at its own δ.
        runs = list({(each.value.run, each.value.teachers): each for each in same}.values())
        if len({each.value.teachers for each in runs}) > 1:
            found.append(_by_teachers(number, name, runs))
    return tuple(found)


def _by_teachers(number: int, name: str, runs: Sequence[Typed[Trial]]) -> Figure:
    share = runs[0].value.score.share
    title = f"{name[:1].upper()}{name[1:]} against the number of teachers"
    return Figure(
        f"teachers-{number}",
        title,
        f"{title}, for {len(runs)} runs, each with its own ε, δ and interval.",
        ("run", "teachers", "ε at most", "δ", name, "interval", "origin"),
        tuple(
            (
                each.value.run,
                f"{each.value.teachers:,}",
                up(each.value.epsilon),
                digits_up(each.value.delta),
                rounded(each.value.score.value, share),
                interval(each.value.score),
                origin(each),
            )
            for each in runs
        ),
        {
            "data": [_points(runs)],
            "layout": {
                "xaxis": axis("teachers, logarithmic", decades=2),
                "yaxis": axis(plain(name)) | ({"tickformat": ".2~%"} if share else {}),
            },
        },
    )


def _points(runs: Sequence[Typed[Trial]]) -> Part:
    colour, _, symbol = SERIES[0]
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [each.value.teachers for each in runs],
        "y": [each.value.score.value for each in runs],
        "error_y": error_bars([each.value.score for each in runs], colour),
        "text": [plain(f"ε ≤ {up(each.value.epsilon)}") for each in runs],
        "textposition": "bottom center",
        "cliponaxis": False,
        "marker": {"color": colour, "symbol": symbol, "size": 11},
        "hovertemplate": "%{x} teachers, %{y:.4g}",
    }


def consensus(found: Typed[Consensus] | None) -> tuple[Figure, ...]:
    """How many questions have which consensus, and what one costs these data by its consensus."""
    if found is None:
        return ()
    seen = found.value
    names = [f"{100 * low:.0f}–{100 * high:.0f} %" for low, high in zip(seen.shares[:-1], seen.shares[1:], strict=True)]
    total = sum(seen.questions)
    most = max(range(len(names)), key=lambda place: seen.questions[place])
    agreed = Figure(
        "consensus",
        "How far the teachers agree",
        f"Of {total:,} questions, by the part of the teachers that is behind the commonest label. Most, "
        f"{seen.questions[most]:,}, have {names[most]} ({origin(found)}).",
        ("consensus", "questions"),
        tuple((name, f"{count:,}") for name, count in zip(names, seen.questions, strict=True)),
        {
            "data": [_bars(names, list(seen.questions), "%{x}: %{y} questions", 0)],
            "layout": {"xaxis": axis("teachers behind the commonest label"), "yaxis": axis("questions")},
        },
    )
    known = [(name, cost) for name, cost in zip(names, seen.costs, strict=True) if cost is not None]
    cost = Figure(
        "consensus-cost",
        "What a question costs these data",
        f"The Rényi divergence of order {seen.order:g} that one question adds, on average, by how far teachers agree; "
        f"whatever the votes are it is at most {seen.whatever:.3g} ({origin(found)}).",
        ("consensus", "cost of one question"),
        tuple((name, f"{each:.3g}") for name, each in known),
        {
            "data": [_bars([name for name, _ in known], [each for _, each in known], "%{x}: %{y:.3g}", 1)],
            "layout": {
                "xaxis": axis("teachers behind the commonest label"),
                "yaxis": _scale([*(each for _, each in known), seen.whatever]),
                "shapes": [
                    {
                        "type": "line",
                        "xref": "paper",
                        "x0": 0,
                        "x1": 1,
                        "y0": seen.whatever,
                        "y1": seen.whatever,
                        "line": {"color": "var(--soft)", "width": 1.5, "dash": "dot"},
                    }
                ],
            },
        }
        if known
        else None,
    )
    return (agreed, cost) if known else (agreed,)


def _scale(costs: Sequence[float]) -> Part:
    """A logarithmic axis from below the least of them to above the largest."""
    places = [math.log10(each) for each in costs if each > 0]
    low, high = math.floor(min(places)) - 0.5, max(places) + 0.3
    return axis("cost, logarithmic", decades=high - low) | {"range": [low, high]}


def _bars(names: list[str], heights: Sequence[float], hover: str, series: int) -> Part:
    return {
        "type": "bar",
        "x": names,
        "y": list(heights),
        "marker": {"color": SERIES[series][0]},
        "hovertemplate": hover,
        "showlegend": False,
    }
