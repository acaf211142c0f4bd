"""`privet survey`: ask people without having to be trusted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import typer

from privet.cli import console
from privet.cli.numbers import WHOLE
from privet.cli.options import AsJson
from privet.cli.taught import TaughtCommand, TaughtGroup
from privet.cli.teach import help_of
from privet.core.errors import InvalidInput

if TYPE_CHECKING:
    from privet.local.questionnaire import Questionnaire, SurveyQuestion
    from privet.local.reports import Collection

__all__ = ["about", "answer", "collect", "design", "estimate", "live", "survey"]

survey = typer.Typer(cls=TaughtGroup, no_args_is_help=True)

_File = Annotated[Path, typer.Argument(metavar="FILE.toml", help="The questionnaire.")]
_Reports = Annotated[list[Path], typer.Argument(metavar="REPORTS.jsonl...", help="Files with one report a line.")]
_Confidence = Annotated[float, typer.Option(help="Of the intervals.")]
_Out = Annotated[Path, typer.Option(metavar="FILE.jsonl", help="Reports are added to this file.")]
_Host = Annotated[str, typer.Option(help="Whom to listen to; 0.0.0.0 is everybody on the network.")]
_Port = Annotated[int, typer.Option(click_type=WHOLE, help="Where to listen; 0 takes any that is free.")]
_HERE = "127.0.0.1"
_DRAFT = """\
privet = 1
title = "Commuting"
epsilon = 2.0
# "split": everybody answers all questions, each under a part of epsilon.
# "sample": everybody answers one of them, drawn at random, under all of it.
budget = "split"

[[question]]
name = "fare"
text = "Have you ever travelled without a ticket?"
kind = "yes-no"

[[question]]
name = "transport"
text = "How do you come to work?"
kind = "choice"
options = ["on foot", "bicycle", "bus or train", "car"]

[[question]]
name = "minutes"
text = "How many minutes does it take?"
kind = "number"
low = 0
high = 120
"""


def about() -> None:
    """Ask people without having to be trusted: answers are randomised before they leave those who give them.

    A questionnaire to start from, and a page that asks it:

    privet survey design commute.toml --draft

    privet survey design commute.toml --page commute.html
    """


def design(
    file: _File,
    draft: Annotated[bool, typer.Option("--draft", help="Write an example to this file first.")] = False,
    page: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write the page that asks.")] = None,
    respondents: Annotated[int, typer.Option(click_type=WHOLE, help="How many answers to expect.")] = 1000,
) -> None:
    """Check a questionnaire; show how each answer is protected, and how well the shares will be known.

    privet survey design commute.toml --page commute.html --respondents 500
    """
    from privet.core import checked
    from privet.local.page import questionnaire_page
    from privet.local.questionnaire import BudgetSharing, read_questionnaire
    from privet.report import write_page
    from privet.report.put import put

    checked.count("respondents", respondents)
    if draft:
        if file.exists():
            raise InvalidInput("draft", f"would write over {str(file)!r}", "give another name")
        put(file, _DRAFT, "draft")
    questionnaire = read_questionnaire(file)
    each = len(questionnaire.questions) if questionnaire.budget is BudgetSharing.SAMPLE else 1
    if page is not None:
        write_page(page, questionnaire_page(questionnaire), "page")
    console.line(f"{questionnaire.title}: ε = {questionnaire.epsilon:g} for all answers of one person", "bold green")
    console.line()
    console.show_rows(
        ("question", "reported by", "ε", f"± with {respondents:,} answers"),
        [
            (question.name, *_promise(questionnaire, question.name, max(1, respondents // each), 1 / each))
            for question in questionnaire.questions
        ],
        right=("ε", f"± with {respondents:,} answers"),
    )
    console.line()
    console.line("± is half an interval of 95 %, for a share near 0 or for a mean at worst.", "dim")
    if page is not None:
        console.line(f"The page that asks is {page}; it works without a network.", "bold")


def _promise(questionnaire: Questionnaire, name: str, answers: int, share: float) -> tuple[str, str, str]:
    from privet.local.mean import MeanMechanism
    from privet.local.oracle import PureOracle

    part = questionnaire.parts[name]
    kind, epsilon = type(part).__name__, f"{part.epsilon:.3g}"
    if isinstance(part, MeanMechanism):
        half = (part.high - part.low) / 2
        worst = part.worst_variance + 1 - share  # numbers vary too, where not everybody is asked
        return kind, epsilon, f"{1.96 * half * (worst / answers) ** 0.5:.3g}"
    variance = part.variance(0.0) if isinstance(part, PureOracle) else float("nan")
    return kind, epsilon, f"{100 * 1.96 * (variance / answers) ** 0.5:.1f} %"


def answer(
    file: _File,
    out: Annotated[Path | None, typer.Option(metavar="FILE.jsonl", help="Add the report to this file.")] = None,
) -> None:
    """Answer on a terminal: the answers are randomised here, and only the report is shown and kept.

    privet survey answer commute.toml --out reports.jsonl
    """
    import json

    from privet.core.random import default_rng
    from privet.local.questionnaire import read_questionnaire
    from privet.local.reports import report_on

    questionnaire = read_questionnaire(file)
    console.line(f"{questionnaire.title} (ε = {questionnaire.epsilon:g})", "bold")
    console.line("Your answers are randomised here; only the line at the end may leave.", "dim")
    answers = {}
    for question in questionnaire.questions:
        console.line()
        console.line(question.text)
        for number, option in enumerate(question.options, start=1):
            console.line(f"  {number}. {option}")
        hint = f"{question.low:g} to {question.high:g}" if question.is_number else f"1 to {len(question.options)}"
        answers[question.name] = _asked(question, hint)
    line = json.dumps(report_on(questionnaire, answers, default_rng()), sort_keys=True)
    console.line()
    if out is not None:
        _append(out, line)
    click.echo(line)


def _asked(question: SurveyQuestion, hint: str) -> float:
    """An answer; whoever sits at a terminal is asked again after one that cannot be."""
    from privet.local.reports import answer_of

    while True:
        try:
            return answer_of(question, click.prompt(hint, type=str))
        except click.exceptions.Abort as stop:
            if not isinstance(stop.__context__, EOFError):
                raise  # somebody wants to stop
            problem = f"end before {question.name!r} is answered, and nothing was reported"
            raise InvalidInput("answers", problem, "give a line for each question") from None
        except InvalidInput as error:
            if not sys.stdin.isatty():
                raise
            console.line(f"That cannot be: {error.advice}.", "yellow")


def collect(
    file: _File,
    reports: Annotated[list[Path] | None, typer.Argument(metavar="REPORTS.jsonl...", help="Files to merge.")] = None,
    out: _Out = Path("reports.jsonl"),
    serve: Annotated[bool, typer.Option("--serve", help="Hand out the page, and take reports, until stopped.")] = False,
    host: _Host = _HERE,
    port: _Port = 8000,
) -> None:
    """Bring reports together: merge files, leaving out what was seen before or is no report; or take them over HTTP.

    privet survey collect commute.toml monday.jsonl --out all.jsonl

    privet survey collect commute.toml --serve --out reports.jsonl
    """
    from privet.local.questionnaire import read_questionnaire
    from privet.report.words import counted

    questionnaire = read_questionnaire(file)
    if not serve and not reports:
        raise InvalidInput("reports", "are none, and --serve is not given", "name files to merge, or serve")
    collection = _read(questionnaire, [out] if out.exists() else [])
    for path in reports or ():
        _merge(collection, path, out)
    brought = (
        f"{out}: {counted(collection.reports, 'report')}, {collection.duplicates:,} seen before, "
        f"{collection.refused:,} refused"
    )
    if serve:
        from privet.cli.survey_live import serve_reports

        serve_reports(collection, out, host, port, brought)
    else:
        console.line(brought)


def estimate(
    file: _File,
    reports: _Reports,
    confidence: _Confidence = 0.95,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a page with a figure a question.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Estimate what people would have said, with intervals, from randomised reports alone.

    privet survey estimate commute.toml reports.jsonl --plot commute-results.html
    """
    from privet.cli.survey_view import document, estimate_page, show_estimates
    from privet.local.questionnaire import read_questionnaire
    from privet.local.shares import quantile
    from privet.report import require_writable, write_page

    quantile(confidence)
    questionnaire = read_questionnaire(file)
    if plot is not None:
        require_writable(plot)
    collection = _read(questionnaire, reports)
    if not collection.reports and collection.others:
        problem = f"are of another questionnaire than {str(file)!r}, or of it before it was changed"
        raise InvalidInput("reports", f"{problem} ({collection.others:,} of them)", "name the one they were made with")
    if not collection.reports:
        raise InvalidInput(
            "reports", f"hold none of this questionnaire ({collection.refused:,} refused)", "collect some"
        )
    if plot is not None:
        write_page(plot, estimate_page(collection, confidence))
    if as_json:
        console.show_json(document(collection, confidence))
        return
    show_estimates(collection, confidence)
    if plot is not None:
        console.line(f"The page with the figures is {plot}; open it in a browser.", "bold")


def live(
    file: _File,
    out: _Out = Path("reports.jsonl"),
    host: _Host = _HERE,
    port: _Port = 8000,
    address: Annotated[
        str | None, typer.Option(metavar="URL", help="What the QR code says, if not this machine.")
    ] = None,
    confidence: _Confidence = 0.95,
) -> None:
    """Ask a room: a page for the projector shows a QR code, and estimates that sharpen as answers arrive.

    privet survey live commute.toml --host 0.0.0.0 --address http://192.168.1.5:8000/
    """
    from privet.cli.survey_live import serve_live
    from privet.local.questionnaire import read_questionnaire
    from privet.local.shares import quantile

    quantile(confidence)
    questionnaire = read_questionnaire(file)
    serve_live(_read(questionnaire, [out] if out.exists() else []), out, host, port, address, confidence)


def _lines(path: Path) -> list[bytes]:
    try:
        return [line for line in path.read_bytes().splitlines() if line.strip()]
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InvalidInput("reports", f"in {str(path)!r} cannot be read: {reason}", "name a file of reports") from None


def _read(questionnaire: Questionnaire, paths: list[Path]) -> Collection:
    from privet.local.reports import Collection

    collection = Collection(questionnaire)
    for path in paths:
        for line in _lines(path):
            collection.add(line)
    return collection


def _merge(collection: Collection, path: Path, out: Path) -> None:
    from privet.local.reports import ReportOutcome

    for line in _lines(path):
        if collection.add(line) is ReportOutcome.ACCEPTED:
            _append(out, line.decode())


def _append(path: Path, line: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InvalidInput("out", f"cannot be written: {reason}", "choose another file") from None


survey.callback(help=help_of(about))(about)
for _command in (design, answer, collect, estimate, live):
    survey.command(_command.__name__, cls=TaughtCommand, help=help_of(_command))(_command)
