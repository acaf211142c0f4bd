"""What a survey's estimates look like: as a table, as JSON, and as a page with figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from privet.cli import console
from privet.core.codec import VERSION, encode
from privet.report.words import counted

if TYPE_CHECKING:
    from privet.local.mean import Mean
    from privet.local.questionnaire import Questionnaire, SurveyQuestion
    from privet.local.reports import Collection
    from privet.local.shares import Shares
    from privet.report.figures import Figure

__all__ = ["document", "estimate_page", "show_estimates"]

_HEAD = ("question", "answer", "estimate", "interval", "consistent")


@dataclass(frozen=True)
class _Value:
    """One estimate: of a mean, or of the share of one answer."""

    answer: str
    estimate: float
    low: float
    high: float
    consistent: float


def _values(question: SurveyQuestion, found: Shares | Mean | None, confidence: float) -> list[_Value]:
    from privet.local.mean import Mean

    if found is None:
        return []
    if isinstance(found, Mean):
        return [_Value("mean", found.estimate, *found.interval(confidence), found.consistent())]
    columns = (found.estimate, *found.interval(confidence), found.consistent())
    return [_Value(*row) for row in zip(question.options, *(column.tolist() for column in columns), strict=True)]


def _rows(question: SurveyQuestion, values: list[_Value]) -> Iterator[tuple[str, ...]]:
    if not values:
        yield question.name, "", "nobody answered", "", ""

    def said(number: float) -> str:
        return f"{number:.4g}" if question.is_number else f"{100 * number:.1f} %"

    for value in values:
        between = f"{said(value.low)} to {said(value.high)}"
        yield question.name, value.answer, said(value.estimate), between, said(value.consistent)


def show_estimates(collection: Collection, confidence: float) -> None:
    """The table, and what it rests on."""
    questionnaire, found = collection.questionnaire, collection.estimate()
    console.line(f"{questionnaire.title}: {_counted(collection)}", "bold")
    rows = [row for each in questionnaire.questions for row in _rows(each, _values(each, found[each.name], confidence))]
    console.line()
    console.show_rows(_HEAD, rows, right=_HEAD[2:])
    console.line()
    console.bullets(_notes(questionnaire, confidence))


def _counted(collection: Collection) -> str:
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


def _notes(questionnaire: Questionnaire, confidence: float) -> tuple[str, ...]:
    return (
        f"Each respondent's answers are protected with ε = {questionnaire.epsilon:g}, and nobody had to be trusted.",
        f"Intervals hold each with {100 * confidence:g} % confidence, for the noise alone, whoever was asked.",
        "Estimates are unbiased and may fall outside of what is possible; the last column is cut to what is.",
        "Reports are taken at their word: whoever sends many, or invents them, moves the estimates.",
    )


def document(collection: Collection, confidence: float) -> dict[str, Any]:
    """The same as JSON."""
    questionnaire, found, questions = collection.questionnaire, collection.estimate(), []
    for question in questionnaire.questions:
        part = found[question.name]
        shown = {"name": question.name, "text": question.text, "reports": part.reports if part is not None else 0}
        bounds = {"low": question.low, "high": question.high} if question.is_number else {}
        answers = [asdict(value) for value in _values(question, part, confidence)]
        questions.append(shown | bounds | {"answers": answers})
    return {
        "privet": VERSION,
        "command": "survey estimate",
        "title": questionnaire.title,
        "survey": questionnaire.digest,
        "epsilon": questionnaire.epsilon,
        "event": encode(questionnaire.event),
        "unit": encode(questionnaire.joint.unit),
        "confidence": confidence,
        "reports": collection.reports,
        "duplicates": collection.duplicates,
        "refused": collection.refused,
        "questions": questions,
    }


def estimate_page(collection: Collection, confidence: float) -> str:
    """A page with one figure for each question; it holds nothing but post-processed reports."""
    from privet.report.frame import bullets, drawn, escaped, framed

    questionnaire, found = collection.questionnaire, collection.estimate()
    figures = [_figure(question, found[question.name], confidence) for question in questionnaire.questions]
    body = [
        "<main>",
        '<header><p class="kind">Survey under local differential privacy</p>',
        f"<h1>{escaped(questionnaire.title)} <small>{escaped(_counted(collection))}</small></h1>",
        f'<div class="note">{bullets(_notes(questionnaire, confidence))}</div></header>',
        '<section class="figures" aria-label="Figures">',
        *map(drawn, figures),
        "</section></main>",
    ]
    footer = "Made by Privet, from randomised reports alone."
    return framed(questionnaire.title, body, figures, footer=footer)


def _figure(question: SurveyQuestion, found: Shares | Mean | None, confidence: float) -> Figure:
    from privet.report.figures import Figure
    from privet.report.figures.drawing import axis

    values = _values(question, found, confidence)
    rows = tuple(row[1:] for row in _rows(question, values))
    name = f"q-{question.name}"
    if found is None:
        return Figure(name, question.text, "Nobody answered this question yet.", _HEAD[1:], rows, None)
    unit = 1.0 if question.is_number else 100.0
    title = f"from {question.low:g} to {question.high:g}" if question.is_number else "per cent of respondents"
    ends = {
        "type": "data",
        "symmetric": False,
        "array": [unit * max(value.high - value.estimate, 0.0) for value in values],
        "arrayminus": [unit * max(value.estimate - value.low, 0.0) for value in values],
        "color": "var(--two)",
        "thickness": 3,
    }
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": [unit * value.estimate for value in values],
        "y": [value.answer for value in values],
        "error_x": ends,
        "marker": {"color": "var(--one)", "size": 12},
        "name": "estimate",
    }
    layout = {"xaxis": axis(title), "yaxis": axis("") | {"autorange": "reversed"}, "showlegend": False}
    words = f"Estimates with intervals of {100 * confidence:g} %, from {counted(found.reports, 'report')}."
    return Figure(name, question.text, words, _HEAD[1:], rows, {"data": [points], "layout": layout})
