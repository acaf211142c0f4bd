"""Answers of a query as one self-contained HTML page."""

from __future__ import annotations

from privet.core import Release
from privet.query import Answer
from privet.report.answer_table import INTERVAL_COVERAGE, answer_columns, answer_rows, has_intervals
from privet.report.figures import Figure
from privet.report.figures.drawing import axis, error_bars
from privet.report.frame import alert, escape, page_html
from privet.report.words import SEEDED, headline, listed

__all__ = ["answers_page"]

_MOST_SAID = 20
"""How many values a sentence lists; the table has all of them."""


def answers_page(release: Release[tuple[Answer, ...]], name: str) -> str:
    """Return a page with a figure and a table for each answer; everything on it is a release.

    Args:
        release: The answers.
        name: The title of the page, such as the table's file name.
    """
    figures = [_figure(place, answer) for place, answer in enumerate(release.value)]
    cost = headline(release.guarantee) if release.guarantee is not None else "Some of these were answered before."
    body = [
        f'<header><p class="kind">Private answers</p><h1>{escape(name)}</h1><p class="unit">{escape(cost)}</p>',
        alert("warning", "Warning", SEEDED) if release.tainted else "",
        "</header>",
    ]
    footer = "Made by Privet. Everything on this page was released with differential privacy."
    return page_html(f"Answers about {name}", body, figures, footer=footer, figures_label="Answers")


def _figure(place: int, answer: Answer) -> Figure:
    labels = [", ".join(row.group) for row in answer.rows]
    values = [row.value for row in answer.rows]
    sure, ends = f"{100 * answer.confidence:g} % confidence", has_intervals(answer)
    if answer.ranked:
        said = f"the most frequent first: {listed(labels[:_MOST_SAID])}" if labels else "no value has enough in it"
    elif len(values) == 1:
        cells = answer_rows(answer)[0][len(answer.columns) :]
        said = f"{answer.measure}: {cells[0]}" + (f", between {cells[1]} and {cells[2]} with {sure}" if ends else "")
    else:
        said = f"{len(values)} groups" + (f"; lines show the noise, with {sure} for each" if ends else "")
    bars = {
        "type": "bar",
        "x": labels,
        "y": values,
        "marker": {"color": "var(--one)"},
        "error_y": error_bars([(row.low, row.value, row.high) for row in answer.rows], "var(--ink)"),
    }
    spec = {
        "data": [bars],
        "layout": {
            "xaxis": {"type": "category", "automargin": True},
            "yaxis": axis(answer.measure),
        },
    }
    words = " ".join(
        f"{part[0].upper()}{part[1:]}." for part in (said, *((INTERVAL_COVERAGE,) if ends else ()), *answer.notes)
    )
    head = answer_columns(answer) if answer.columns else ("what", *answer_columns(answer))
    rows = answer_rows(answer) if answer.columns else [(answer.question, *row) for row in answer_rows(answer)]
    has_bars = len(values) > 1 and not answer.ranked  # a ranked list has no numbers to draw
    return Figure(f"answer{place}", answer.question, words, head, tuple(rows), spec if has_bars else None)
