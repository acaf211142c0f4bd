"""Answers of a query as one self-contained HTML page."""

from __future__ import annotations

from privet.core.release import Release
from privet.query import Answer
from privet.report.answer_table import INTERVAL_COVERAGE, answer_columns, answer_rows, has_intervals
from privet.report.figures import Figure
from privet.report.frame import drawn, escaped, framed
from privet.report.words import headline, listed

__all__ = ["answers_page"]

_MOST_SAID = 20
"""Of a list in words; the table has all of it."""


def answers_page(release: Release[tuple[Answer, ...]], name: str) -> str:
    """Return a page with a figure and a table for each answer; everything on it is a release.

    Args:
        release: The answers.
        name: The title of the page, such as the table's file name.
    """
    figures = [_figure(place, answer) for place, answer in enumerate(release.value)]
    priced = headline(release.guarantee) if release.guarantee is not None else "Some of these were answered before."
    tainted = "The noise came from a seeded generator, which protects nobody." if release.tainted else ""
    body = [
        "<main>",
        "<header>",
        '<p class="kind">Private answers</p>',
        f"<h1>{escaped(name)}</h1>",
        f'<p class="unit">{escaped(priced)}</p>',
        f'<p class="warning"><strong>Warning:</strong> {escaped(tainted)}</p>' if tainted else "",
        "</header>",
        '<section class="figures" aria-label="Answers">',
        *map(drawn, figures),
        "</section>",
        "</main>",
    ]
    footer = "Made by Privet. Everything on this page was released with differential privacy."
    return framed(f"Answers about {name}", body, figures, footer=footer)


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
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [max((row.high if row.high is not None else row.value) - row.value, 0.0) for row in answer.rows],
            "arrayminus": [
                max(row.value - (row.low if row.low is not None else row.value), 0.0) for row in answer.rows
            ],
            "color": "var(--ink)",
        },
    }
    spec = {
        "data": [bars],
        "layout": {
            "xaxis": {"type": "category", "automargin": True},
            "yaxis": {"title": {"text": answer.measure}, "gridcolor": "var(--line)", "automargin": True},
        },
    }
    words = " ".join(
        f"{part[0].upper()}{part[1:]}." for part in (said, *((INTERVAL_COVERAGE,) if ends else ()), *answer.notes)
    )
    head = answer_columns(answer) if answer.columns else ("what", *answer_columns(answer))
    rows = answer_rows(answer) if answer.columns else [(answer.question, *row) for row in answer_rows(answer)]
    drawn_by = spec if len(values) > 1 and not answer.ranked else None  # a list needs no bars of its places
    return Figure(f"answer{place}", answer.question, words, head, tuple(rows), drawn_by)
