"""`privet query`: private answers about a table, charged to a budget."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli import console
from privet.cli.options import DEFAULT_LEDGER, AsJson, Budget, KeyFile, LedgerLocation, Wait, require_budget
from privet.core import VERSION, encode
from privet.ledger import opened

if TYPE_CHECKING:
    from privet.query import Reply

__all__ = ["query"]

_QUESTIONS, _PAYMENT, _OUTPUT = "The questions", "Privacy budget", "Output"
_DELTA = "The δ of all answers: needed where groups are not in the schema, and better for many questions."
_SCHEMA = "What is publicly known of the columns. [default: clinic.schema.toml beside clinic.csv]"
_STORED = "Where answers are stored, to be repeated at no cost. [default: beside the ledger's file]"
_FRESH = "Draw noise and pay again, also for what was answered before."
_PLOT = "Write a page with the answers and their figures here; it needs no network."


def query(
    data: Annotated[Path, typer.Argument(help="A table: CSV, also gzipped, or Parquet.")],
    questions: Annotated[list[str], typer.Argument(help="What to ask, each question in quotes.")],
    epsilon: Annotated[float, typer.Option(help="The ε of all answers together.", rich_help_panel=_QUESTIONS)],
    delta: Annotated[float, typer.Option(help=_DELTA, rich_help_panel=_QUESTIONS)] = 0.0,
    schema: Annotated[Path | None, typer.Option(metavar="FILE.toml", help=_SCHEMA, rich_help_panel=_QUESTIONS)] = None,
    confidence: Annotated[float, typer.Option(help="Of each interval.", rich_help_panel=_QUESTIONS)] = 0.95,
    budget: Budget = None,
    ledger: LedgerLocation = DEFAULT_LEDGER,
    key_file: KeyFile = None,
    wait: Wait = 60.0,
    stored: Annotated[Path | None, typer.Option(metavar="FILE", help=_STORED, rich_help_panel=_PAYMENT)] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help=_FRESH, rich_help_panel=_PAYMENT)] = False,
    as_json: AsJson = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.html", help=_PLOT, rich_help_panel=_OUTPUT)] = None,
) -> None:
    """Answer questions about a table of people, with noise that hides each of them.

    A question is count, sum(x), mean(x), variance(x), histogram(x, 10), median(x), quantile(x, 0.9), min(x), max(x),
    top(x, 3) or covariance(x, y); then where x > 1 and y = north, by x, and weight 2 may follow. All questions share ε
    by their weights. What was answered before, about the same data, is answered again at no cost.

    privet query clinic.csv 'mean(age) by ward' --epsilon 0.5 --budget clinic

    privet query clinic.csv 'count where age >= 65' count --epsilon 0.2 --budget clinic --plot answers.html
    """
    from privet.core.random import default_rng
    from privet.query import Account, AnswerStore, answers_file, ask, load_query_schema
    from privet.report import answers_page, require_writable, write_page

    if plot is not None:
        require_writable(plot)
    require_budget(budget, ledger)
    columns = load_query_schema(data, questions, schema)
    with console.waiting("Asking …"):
        file = answers_file(ledger, stored) if budget is not None else None
        with nullcontext() if budget is None else opened(ledger, key_file, wait) as book:
            account = None
            if book is not None and budget is not None:
                account = Account(book, budget, None if file is None else AnswerStore(file, wait=wait))
            reply = ask(
                data,
                questions,
                columns,
                account=account,
                epsilon=epsilon,
                delta=delta,
                rng=default_rng(),
                confidence=confidence,
                fresh=fresh,
            )
    done = "the questions were answered" if budget is None else f"{budget!r} was charged"
    with console.after(done) if reply.charged is not None else nullcontext():
        if plot is not None:
            write_page(plot, answers_page(reply.release, data.name))
        if as_json:
            console.show_json(_document(reply, budget))
        else:
            _show(reply, budget)
            console.page_written(plot)


def _document(reply: Reply, budget: str | None) -> dict[str, Any]:
    return {
        "privet": VERSION,
        "command": "query",
        "answers": [
            encode(answer) | {"free": free} for answer, free in zip(reply.release.value, reply.free, strict=True)
        ],
        "charged": None if reply.charged is None else encode(reply.charged),
        "ledger": budget,
        "head": reply.head,
        "release": json.loads(reply.release.to_json())["record"],
    }


def _show(reply: Reply, budget: str | None) -> None:
    """Show every answer with its groups and notes, and what was charged."""
    from privet.report import INTERVAL_COVERAGE, answer_columns, answer_rows, has_intervals, headline

    for answer, free in zip(reply.release.value, reply.free, strict=True):
        console.heading(answer.question + (", as answered before: free" if free else ""))
        columns = answer_columns(answer)
        if answer.rows:
            console.show_rows(columns, answer_rows(answer), right=tuple(columns[len(answer.columns) :]))
            if has_intervals(answer):
                console.line(f"{INTERVAL_COVERAGE}.".capitalize(), "dim")
        else:
            console.line("no group has enough in it to be shown", "dim")
        for note in answer.notes:
            console.line(f"{note}.", "dim")
    console.line()
    if reply.charged is None:
        console.line("Everything was answered before; nothing was charged.", "bold green")
        return
    console.line(headline(reply.charged), "bold green")
    for text in reply.charged.assumptions:
        console.line(f"It assumes: {text}.", "dim")
    if budget is None:
        console.line(
            "No budget was charged: nothing adds this up with what else is asked; give --budget NAME.", "yellow"
        )
    else:
        console.line(f"charged to {budget}; head {reply.head}", "dim")
