"""Estimates of a survey as a table, and as a page with figures."""

from __future__ import annotations

from collections.abc import Iterator

from privet.local import AnswerEstimate, Collection, Mean, Questionnaire, Shares, SurveyQuestion, answer_estimates
from privet.report.figures import Figure
from privet.report.figures.drawing import axis, error_bars
from privet.report.frame import bullets, escape, page_html
from privet.report.words import counted

__all__ = ["ESTIMATE_COLUMNS", "estimate_notes", "estimate_page", "estimate_rows", "report_counts"]

ESTIMATE_COLUMNS = ("question", "answer", "estimate", "interval", "consistent")
"""The columns of `estimate_rows`."""


def estimate_rows(collection: Collection, confidence: float) -> list[tuple[str, ...]]:
    """Return the rows of a table of estimates, with the columns `ESTIMATE_COLUMNS`.

    Args:
        collection: The reports.
        confidence: The confidence of each interval.
    """
    estimates = collection.estimate()
    return [
        row
        for question in collection.questionnaire.questions
        for row in _rows(question, answer_estimates(question, estimates[question.name], confidence))
    ]


def _rows(question: SurveyQuestion, values: list[AnswerEstimate]) -> Iterator[tuple[str, ...]]:
    if not values:
        yield question.name, "", "nobody answered", "", ""

    def said(number: float) -> str:
        return f"{number:.4g}" if question.is_number else f"{100 * number:.1f} %"

    for value in values:
        between = f"{said(value.low)} to {said(value.high)}"
        yield question.name, value.answer, said(value.estimate), between, said(value.consistent)


def report_counts(collection: Collection) -> str:
    """Return a phrase with the number of reports, and of those that were excluded and why.

    Args:
        collection: The reports.
    """
    left = [
        f"{count:,} {word}"
        for count, word in (
            (collection.duplicates, "seen before"),
            (collection.refused, "refused"),
            (collection.others, "of them of another questionnaire"),
        )
        if count
    ]
    return counted(collection.reports, "report") + (f" ({', '.join(left)})" if left else "")


def estimate_notes(questionnaire: Questionnaire, confidence: float) -> tuple[str, ...]:
    """Return sentences on what the estimates of a survey assume and cover.

    Args:
        questionnaire: The questionnaire.
        confidence: The confidence of the intervals.
    """
    return (
        f"Each respondent's answers are protected with ε = {questionnaire.epsilon:g}, and nobody had to be trusted.",
        f"Intervals hold each with {100 * confidence:g} % confidence, for the noise alone, whoever was asked.",
        "Estimates are unbiased and may fall outside of what is possible; the last column is cut to what is.",
        "Reports are taken at their word: whoever sends many, or invents them, moves the estimates.",
    )


def estimate_page(collection: Collection, confidence: float) -> str:
    """Return a page with one figure for each question; it holds nothing but post-processed reports.

    Args:
        collection: The reports.
        confidence: The confidence of each interval.
    """
    questionnaire, estimates = collection.questionnaire, collection.estimate()
    figures = [_figure(question, estimates[question.name], confidence) for question in questionnaire.questions]
    body = [
        '<header><p class="kind">Survey under local differential privacy</p>',
        f"<h1>{escape(questionnaire.title)} <small>{escape(report_counts(collection))}</small></h1>",
        f'<div class="note">{bullets(estimate_notes(questionnaire, confidence))}</div></header>',
    ]
    footer = "Made by Privet, from randomized reports alone."
    return page_html(questionnaire.title, body, figures, footer=footer)


def _figure(question: SurveyQuestion, estimate: Shares | Mean | None, confidence: float) -> Figure:
    values = answer_estimates(question, estimate, confidence)
    rows = tuple(row[1:] for row in _rows(question, values))
    name = f"q-{question.name}"
    if estimate is None:
        return Figure(name, question.text, "Nobody answered this question yet.", ESTIMATE_COLUMNS[1:], rows, None)
    unit = 1.0 if question.is_number else 100.0
    title = f"from {question.low:g} to {question.high:g}" if question.is_number else "per cent of respondents"
    ends = error_bars([(unit * each.low, unit * each.estimate, unit * each.high) for each in values], "var(--two)")
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": [unit * value.estimate for value in values],
        "y": [value.answer for value in values],
        "error_x": ends | {"thickness": 3},
        "marker": {"color": "var(--one)", "size": 12},
        "name": "estimate",
    }
    layout = {"xaxis": axis(title), "yaxis": axis("") | {"autorange": "reversed"}, "showlegend": False}
    words = f"Estimates with intervals of {100 * confidence:g} %, from {counted(estimate.reports, 'report')}."
    return Figure(name, question.text, words, ESTIMATE_COLUMNS[1:], rows, {"data": [points], "layout": layout})
