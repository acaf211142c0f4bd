"""Figures of attacks on tables: people linked to rows without names, and bits reconstructed from answers."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, isclose, isfinite, log10

from privet.core import Internal, digits_up
from privet.report.card_tables import format_estimate
from privet.report.figures.drawing import SERIES, Figure, Part, axis, bars, error_bars
from privet.report.origin import escape_markup, format_score
from privet.report.table_records import Linked, Recovered, Tables
from privet.report.words import percent, up

__all__ = ["linked_rows", "table_figures"]

_STEPS = 200
_RECOVERED = ("answers", "ε", "δ", "people", "bits found", "at least", "at most", "the commoner value", "limit")


def table_figures(given: Internal[Tables]) -> tuple[Figure, ...]:
    """Draw a figure for each linkage, and one for all reconstructions."""
    linked = tuple(_linked(place, each) for place, each in enumerate(given.value.linked))
    return (*linked, _recovered(given.value.recovered)) if given.value.recovered else linked


def linked_rows(found: Linked) -> list[tuple[str, str]]:
    """Return the counts of a linkage as rows of a table."""
    rows = [
        ("rows published", f"{found.rows:,}"),
        ("of them, unlike every other", _part(found.unique, found.rows)),
        ("smallest group of rows that are alike", f"{found.smallest:,}"),
        ("people looked for", f"{found.people:,}"),
        ("of them, without any candidate", _part(found.absent, found.people)),
        ("with one candidate", _part(found.single, found.people)),
        ("claimed: this row is theirs", _part(found.claimed, found.people)),
    ]
    if found.present is not None:
        rows.append(("people who are in both tables", _part(found.present, found.people)))
    if found.right is not None:
        rows.append(("claims that are right", format_estimate(found.right)))
    if found.guess is not None:
        rows.append(("if each claim were any row", f"{100 * found.guess:.3g} %"))
    if found.found is not None:
        rows.append(("people in both tables who were found", format_estimate(found.found)))
    if found.sensitive is not None and found.learned is not None:
        rows.append(
            (f"whose {found.sensitive!r} is known, as all candidates agree", _part(found.learned, found.people))
        )
        rows.append(("of them, with several candidates", _part(found.unmatched or 0, found.people)))
        rows.append((f"rows with the commonest {found.sensitive!r}", format_score(found.commonest, True)))
    if found.learned_right is not None:
        of = "" if found.learned_tried is None else f", of the {found.learned_tried:,} of them in both tables"
        rows.append((f"what is known is right{of}", format_estimate(found.learned_right)))
    for name, count in zip(found.on, found.unmet, strict=False):
        if count:
            rows.append((f"cells of {name!r} that agree with nobody's", _part(count, found.rows)))
    if found.left_out:
        rows.append(("not scored, as they follow from other columns", ", ".join(found.left_out)))
    return rows


def _part(count: int, total: int) -> str:
    return f"{count:,} ({format_score(count / total, True)})" if total else f"{count:,}"


def _linked(place: int, found: Linked) -> Figure:
    groups = [
        ("no candidate", found.absent),
        ("several candidates", found.people - found.absent - found.single),
        ("one candidate", found.single),
        ("claimed", found.claimed),
    ]
    if found.learned is not None:
        groups.append((f"{escape_markup(found.sensitive or '')} known", found.learned))
    how = "the best of scored rows, where it stands out" if found.scored else "agreement in every column"
    checked_by = (
        f" Of the claims, {format_estimate(found.right)} are right; a random row, {100 * (found.guess or 0):.3g} %."
        if found.right is not None
        else ""
    )
    return Figure(
        f"linked-{place}",
        f"People of {found.known} in {found.published}",
        f"INTERNAL. Linked by {', '.join(found.on)}: {how}{_given(found)}. "
        f"Of {found.claimed:,} of {found.people:,} people it is said which of {found.rows:,} rows is theirs."
        f"{checked_by} A table without names has no guarantee: another table, with more columns, may tell more.",
        ("what", "how many"),
        tuple(linked_rows(found)),
        {
            "data": [
                bars([count for _, count in groups], [name for name, _ in groups], "var(--two)", "%{x:,} people")
                | {"orientation": "h", "text": [f"{count:,}" for _, count in groups], "name": ""}
                | {"textangle": 0, "cliponaxis": False}
            ],
            "layout": {
                "xaxis": axis("people"),
                "yaxis": axis("") | {"autorange": "reversed", "ticksuffix": "  "},
                "showlegend": False,
            },
        },
    )


def _given(found: Linked) -> str:
    """Return the other settings, which tell linkages of the same files apart."""
    said = [] if found.inside is None else [f"somebody is in the table with {found.inside:g} beforehand"]
    if found.sensitive is not None:
        said.append(f"sensitive: {found.sensitive}")
    if found.person is not None:
        said.append(f"checked by {found.person}, with intervals of {100 * found.confidence:g} %")
    return "".join(f"; {each}" for each in said)


def _limits(drawn: Sequence[Recovered]) -> list[Part]:
    """The curve (e^ε + δ)/(1 + e^ε), where limits are that of a coin; others are points alone, as what lies between
    them is not known."""
    ends = drawn[0].epsilon, drawn[-1].epsilon
    if ends[0] == ends[1]:
        ends = ends[0] / 2, ends[1] * 2
    places = [ends[0] * (ends[1] / ends[0]) ** (step / _STEPS) for step in range(_STEPS + 1)]
    of_a_coin = [isclose(each.limit, _coin(each.epsilon, each.delta), rel_tol=1e-4) for each in drawn]
    lines: list[Part] = [
        {
            "mode": "lines",
            "x": places,
            "y": [_coin(place, delta) for place in places],
            "name": "limit of the guarantee" + (f", δ = {digits_up(delta)}" if delta else ""),
            "line": {"color": "var(--ink)", "width": 3},
        }
        for delta in sorted({each.delta for each, coin in zip(drawn, of_a_coin, strict=True) if coin})
    ]
    others = [each for each, coin in zip(drawn, of_a_coin, strict=True) if not coin]
    points: Part = {
        "mode": "markers",
        "x": [each.epsilon for each in others],
        "y": [each.limit for each in others],
        "name": "limit of the guarantee, there",
        "marker": {"color": "var(--ink)", "symbol": "line-ew-open", "size": 18, "line": {"width": 3}},
    }
    return [
        {"type": "scatter", "hovertemplate": "at most %{y:.1%}"} | each
        for each in (lines if not others else [*lines, points])
    ]


def _coin(epsilon: float, delta: float) -> float:
    return (1 + delta * exp(-epsilon)) / (1 + exp(-epsilon))


def _recovered(found: Sequence[Recovered]) -> Figure:
    """Bits found against ε, with the limit of the guarantee; what has no finite ε stands in the table alone."""
    drawn = sorted((each for each in found if isfinite(each.epsilon) and each.epsilon > 0), key=lambda e: e.epsilon)
    over = [each for each in found if each.exceeds]
    told = (
        f"{over[0].what} at ε = {over[0].epsilon:g} found more than the guarantee leaves: look closer"
        if over
        else "No interval lies above the limit, and above what the commoner value alone would find"
    )
    lines: list[Part] = []
    for place, what in enumerate(dict.fromkeys(each.what for each in drawn)):
        color, dash, symbol = SERIES[place % len(SERIES)]
        mine = [each for each in drawn if each.what == what]
        lines.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": [each.epsilon for each in mine],
                "y": [each.share.value for each in mine],
                "error_y": error_bars([(each.share.lower, each.share.value, each.share.upper) for each in mine], color),
                "name": escape_markup(what),
                "line": {"color": color, "dash": dash, "width": 2},
                "marker": {"symbol": symbol, "size": 8},
                "hovertemplate": "ε = %{x:.3g}: %{y:.1%}",
            }
        )
    decades = max(1.0, log10(drawn[-1].epsilon / drawn[0].epsilon)) if drawn else 1.0
    sure = " or ".join(f"{100 * each:g} %" for each in sorted({each.confidence for each in found}))
    return Figure(
        "recovered",
        "Secret bits found from answers",
        "INTERNAL. The share of people whose bit was found, against the ε of all answers together, with intervals of "
        f"{sure} each that take people for independent trials; the thick line is the most "
        f"that the guarantee leaves, on average, of bits that are coins. {told}.",
        _RECOVERED,
        tuple(
            (
                f"{each.what}, {each.answers:,}",
                up(each.epsilon),
                digits_up(each.delta),
                f"{each.people:,}",
                format_score(each.share.value, True),
                format_score(each.share.lower, True),
                format_score(each.share.upper, True),
                format_score(each.baseline, True),
                percent(each.limit, 4),
            )
            for each in found
        ),
        {
            "data": [*_limits(drawn), *lines],
            "layout": {
                "xaxis": axis("ε of all answers, logarithmic", decades=decades),
                "yaxis": axis("bits found") | {"range": [0.35, 1.03], "tickformat": ".0%"},
                "showlegend": True,
            },
        }
        if drawn
        else None,
    )
