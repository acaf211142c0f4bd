"""`privet survey`: ask people under local differential privacy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import typer

from privet.cli import console
from privet.cli.groups import command_group
from privet.cli.numbers import WHOLE
from privet.cli.options import AsJson
from privet.core import InvalidInput, checked

if TYPE_CHECKING:
    from privet.local import Collection, Endpoint, SurveyQuestion

__all__ = ["about", "answer", "collect", "design", "estimate", "live", "survey"]

_File = Annotated[Path, typer.Argument(metavar="FILE.toml", help="The questionnaire.")]
_Reports = Annotated[list[Path], typer.Argument(metavar="REPORTS.jsonl...", help="Files with one report a line.")]
_Confidence = Annotated[float, typer.Option(help="Of the intervals.")]
_Out = Annotated[Path, typer.Option(metavar="FILE.jsonl", help="Reports are added to this file.")]
_Host = Annotated[str, typer.Option(help="Whom to listen to; 0.0.0.0 is everybody on the network.")]
_Port = Annotated[int, typer.Option(click_type=WHOLE, help="Where to listen; 0 takes any that is free.")]
_HERE = "127.0.0.1"
_NOT_FROM_OUTSIDE = ("127.0.0.1", "0.0.0.0")  # noqa: S104 (nothing is bound here)


def about() -> None:
    """Ask people without having to be trusted: answers are randomized before they leave those who give them.

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
    from privet.local import design_survey, draft_questionnaire, questionnaire_page, read_questionnaire
    from privet.report import write_page

    checked.count("respondents", respondents)
    if draft:
        draft_questionnaire(file)
    questionnaire = read_questionnaire(file)
    designs = design_survey(questionnaire, respondents)
    if page is not None:
        write_page(page, questionnaire_page(questionnaire), "page")
    console.line(f"{questionnaire.title}: ε = {questionnaire.epsilon:g} for all answers of one person", "bold green")
    console.line()
    precision = f"± with {respondents:,} answers"
    rows = [
        (
            design.question,
            design.mechanism,
            f"{design.epsilon:.3g}",
            f"{design.half_width:.3g}" if design.is_number else f"{100 * design.half_width:.1f} %",
        )
        for design in designs
    ]
    console.show_rows(("question", "reported by", "ε", precision), rows, right=("ε", precision))
    console.line()
    console.line("± is half an interval of 95 %, for a share near 0 or for a mean at worst.", "dim")
    if page is not None:
        console.line(f"The page that asks is {page}; it works without a network.", "bold")


def answer(
    file: _File,
    out: Annotated[Path | None, typer.Option(metavar="FILE.jsonl", help="Add the report to this file.")] = None,
) -> None:
    """Answer on a terminal: the answers are randomized here, and only the report is shown and kept.

    privet survey answer commute.toml --out reports.jsonl
    """
    import json

    from privet.core.random import default_rng
    from privet.local import append_report, read_questionnaire, report_on

    questionnaire = read_questionnaire(file)
    console.line(f"{questionnaire.title} (ε = {questionnaire.epsilon:g})", "bold")
    console.line("Your answers are randomized here; only the line at the end may leave.", "dim")
    answers = {}
    for question in questionnaire.questions:
        console.line()
        console.line(question.text)
        for number, option in enumerate(question.options, start=1):
            console.line(f"  {number}. {option}")
        hint = f"{question.low:g} to {question.high:g}" if question.is_number else f"1 to {len(question.options)}"
        answers[question.name] = _prompt(question, hint)
    line = json.dumps(report_on(questionnaire, answers, default_rng()), sort_keys=True)
    console.line()
    if out is not None:
        append_report(out, line)
    click.echo(line)


def _prompt(question: SurveyQuestion, hint: str) -> float:
    """Prompt for an answer; on a terminal, again after one that is not possible."""
    from privet.local import answer_of

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
    from privet.core import counted
    from privet.local import merge_reports, read_questionnaire, read_reports, survey_endpoint

    questionnaire = read_questionnaire(file)
    if not serve and not reports:
        raise InvalidInput("reports", "are none, and --serve is not given", "name files to merge, or serve")
    collection = read_reports(questionnaire, [out] if out.exists() else [])
    for path in reports or ():
        merge_reports(collection, path, out)
    counts = (
        f"{out}: {counted(collection.reports, 'report')}, {collection.duplicates:,} seen before, "
        f"{collection.refused:,} refused"
    )
    if not serve:
        console.line(counts)
        return
    with survey_endpoint(collection, out, host, port) as endpoint:
        console.line(counts)
        _serve(endpoint, f"Answers are taken at {endpoint.address}; stop with Ctrl+C.")


def estimate(
    file: _File,
    reports: _Reports,
    confidence: _Confidence = 0.95,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a page with a figure a question.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Estimate what people would have said, with intervals, from randomized reports alone.

    privet survey estimate commute.toml reports.jsonl --plot commute-results.html
    """
    from privet.local import estimates_document, read_questionnaire, read_reports, require_reports
    from privet.report import estimate_page, require_writable, write_page

    checked.confidence("confidence", confidence)
    questionnaire = read_questionnaire(file)
    if plot is not None:
        require_writable(plot)
    collection = read_reports(questionnaire, reports)
    require_reports(collection, str(file))
    if plot is not None:
        write_page(plot, estimate_page(collection, confidence))
    if as_json:
        console.show_json(estimates_document(collection, confidence))
        return
    _show_estimates(collection, confidence)
    console.page_written(plot)


def _show_estimates(collection: Collection, confidence: float) -> None:
    from privet.report import ESTIMATE_COLUMNS, estimate_notes, estimate_rows, report_counts

    console.line(f"{collection.questionnaire.title}: {report_counts(collection)}", "bold")
    console.line()
    console.show_rows(ESTIMATE_COLUMNS, estimate_rows(collection, confidence), right=ESTIMATE_COLUMNS[2:])
    console.line()
    console.bullets(estimate_notes(collection.questionnaire, confidence))


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
    from privet.local import live_endpoint, read_questionnaire, read_reports

    checked.confidence("confidence", confidence)
    collection = read_reports(read_questionnaire(file), [out] if out.exists() else [])
    with live_endpoint(collection, out, host, port, address, confidence) as endpoint:
        if address is None and endpoint.server_address[0] in _NOT_FROM_OUTSIDE:
            warning = f"No phone can open {endpoint.address}, which is what the QR code says"
            console.line(f"{warning}; use --host 0.0.0.0 and --address with this machine's address.", "yellow")
        _serve(endpoint, f"Open {endpoint.address}live on the projector; stop with Ctrl+C.")


def _serve(endpoint: Endpoint, text: str) -> None:
    console.line(text, "bold")
    endpoint.serve_forever()


survey = command_group(about, design, answer, collect, estimate, live)
