"""Figures of an ensemble of teachers: how far they agree, and the student's score by the number of teachers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privet.core import Trial, Typed
from privet.report.card_tables import trial_cells
from privet.report.figures.accuracy import intervals_of
from privet.report.figures.drawing import SERIES, Figure, Part, axis, bars, capitalize, rule
from privet.report.origin import escape_markup, origin
from privet.report.training_records import Consensus
from privet.report.words import up

__all__ = ["accuracy_by_teachers", "consensus"]


def accuracy_by_teachers(trials: Sequence[Typed[Trial]]) -> tuple[Figure, ...]:
    """Draw each score against the number of teachers, if it is known for two numbers of teachers."""
    scored = [each for each in trials if each.value.teachers is not None and each.value.score.value is not None]
    figures = []
    for number, name in enumerate(dict.fromkeys(each.value.score.name for each in scored)):
        same = [each for each in scored if each.value.score.name == name]
        # The last trial of each run: all its queries, at its own δ.
        runs = list({(each.value.run, each.value.teachers): each for each in same}.values())
        if len({each.value.teachers for each in runs}) > 1:
            figures.append(_by_teachers(number, name, runs))
    return tuple(figures)


def _by_teachers(number: int, name: str, runs: Sequence[Typed[Trial]]) -> Figure:
    share = runs[0].value.score.share
    title = f"{capitalize(name)} against the number of teachers"
    return Figure(
        f"teachers-{number}",
        title,
        f"{title}, for {len(runs)} runs, each with its own ε, δ and interval.",
        ("run", "teachers", "ε at most", "δ", name, "interval", "on", "origin"),
        tuple((each.value.run, f"{each.value.teachers:,}", *trial_cells(each)[2:]) for each in runs),
        {
            "data": [_points(runs)],
            "layout": {
                "xaxis": axis("teachers, logarithmic", decades=2),
                "yaxis": axis(escape_markup(name)) | ({"tickformat": ".2~%"} if share else {}),
            },
        },
    )


def _points(runs: Sequence[Typed[Trial]]) -> Part:
    color, _, symbol = SERIES[0]
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [each.value.teachers for each in runs],
        "y": [each.value.score.value for each in runs],
        "error_y": intervals_of([each.value.score for each in runs], color),
        "text": [escape_markup(f"ε ≤ {up(each.value.epsilon)}") for each in runs],
        "textposition": "bottom center",
        "cliponaxis": False,
        "marker": {"color": color, "symbol": symbol, "size": 11},
        "hovertemplate": "%{x} teachers, %{y:.4g}",
    }


def consensus(given: Typed[Consensus] | None) -> tuple[Figure, ...]:
    """Draw how many queries have which consensus, and the privacy cost of one for these data by its consensus."""
    if given is None:
        return ()
    votes = given.value
    names = [
        f"{100 * low:.0f}–{100 * high:.0f} %" for low, high in zip(votes.shares[:-1], votes.shares[1:], strict=True)
    ]
    total = sum(votes.questions)
    most = max(range(len(names)), key=lambda place: votes.questions[place])
    agreed = Figure(
        "consensus",
        "How far the teachers agree",
        f"{total:,} queries, by the share of teachers that voted for the most frequent label. Most, "
        f"{votes.questions[most]:,}, have {names[most]} ({origin(given)}).",
        ("consensus", "queries"),
        tuple((name, f"{count:,}") for name, count in zip(names, votes.questions, strict=True)),
        {
            "data": [bars(names, votes.questions, SERIES[0][0], "%{x}: %{y} queries")],
            "layout": {"xaxis": axis("share of teachers with the most frequent label"), "yaxis": axis("queries")},
        },
    )
    known = {name: cost for name, cost in zip(names, votes.costs, strict=True) if cost is not None}
    cost = Figure(
        "consensus-cost",
        "The privacy cost of a query for these data",
        f"The Rényi divergence of order {votes.order:g} that one query adds, on average, by how far teachers agree; "
        f"whatever the votes are it is at most {votes.whatever:.3g} ({origin(given)}).",
        ("consensus", "cost of one query"),
        tuple((name, f"{each:.3g}") for name, each in known.items()),
        {
            "data": [bars(list(known), list(known.values()), SERIES[1][0], "%{x}: %{y:.3g}")],
            "layout": {
                "xaxis": axis("share of teachers with the most frequent label"),
                "yaxis": _scale([*known.values(), votes.whatever]),
                "shapes": [rule("y", votes.whatever, {"color": "var(--soft)", "width": 1.5, "dash": "dot"})],
            },
        }
        if known
        else None,
    )
    return (agreed, cost) if known else (agreed,)


def _scale(costs: Sequence[float]) -> Part:
    """Return a logarithmic axis from below the least cost to above the largest."""
    places = [math.log10(each) for each in costs if each > 0]
    low, high = math.floor(min(places)) - 0.5, max(places) + 0.3
    return axis("cost, logarithmic", decades=high - low) | {"range": [low, high]}
