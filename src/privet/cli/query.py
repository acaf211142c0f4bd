"""`privet query`: private answers about a table, charged to a ledger."""

from __future__ import annotations

from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli import console
from privet.cli.options import AsJson
from privet.core.codec import VERSION, encode
from privet.core.errors import InvalidInput, MissingExtra
from privet.ledger.opening import opened

if TYPE_CHECKING:
    from privet.data.schema import Schema
    from privet.query import Reply

__all__ = ["query"]

_ASKED, _PAYS, _OUTPUT = "The questions", "Who pays", "Output"
_DELTA = "The δ of all answers: needed where groups are not in the schema, and better for many questions."
_SCHEMA = "What is publicly known of the columns; beside clinic.csv it is clinic.schema.toml, if left out."
_LEDGER = "The data set's budget: it is charged before any row is read."
_URL = "The ledger that the budget is in: a file, or a URL such as postgresql://user@host/database."
_KEY = "A key, kept away from the database, that seals every entry."
_STORED = "Where answers are kept, to be given again for nothing; beside the ledger's file, if left out."
_FRESH = "Draw and pay again, also for what was answered before."
_PLOT = "Write a page with the answers and their figures here; it needs no network."


def query(
    data: Annotated[Path, typer.Argument(help="A table: CSV, also gzipped, or Parquet.")],
    questions: Annotated[list[str], typer.Argument(help="What to ask, each question in quotes.")],
    epsilon: Annotated[float, typer.Option(help="The ε of all answers together.", rich_help_panel=_ASKED)],
    delta: Annotated[float, typer.Option(help=_DELTA, rich_help_panel=_ASKED)] = 0.0,
    schema: Annotated[Path | None, typer.Option(metavar="FILE.toml", help=_SCHEMA, rich_help_panel=_ASKED)] = None,
    confidence: Annotated[float, typer.Option(help="Of each interval.", rich_help_panel=_ASKED)] = 0.95,
    ledger: Annotated[str | None, typer.Option(metavar="NAME", help=_LEDGER, rich_help_panel=_PAYS)] = None,
    url: Annotated[
        str, typer.Option(envvar="PRIVET_LEDGER", metavar="FILE|URL", help=_URL, rich_help_panel=_PAYS)
    ] = "privet-ledger.db",
    key_file: Annotated[
        Path | None, typer.Option(envvar="PRIVET_LEDGER_KEY_FILE", help=_KEY, rich_help_panel=_PAYS)
    ] = None,
    wait: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long to wait for other processes.", rich_help_panel=_PAYS)
    ] = 60.0,
    stored: Annotated[Path | None, typer.Option(metavar="FILE", help=_STORED, rich_help_panel=_PAYS)] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help=_FRESH, rich_help_panel=_PAYS)] = False,
    as_json: AsJson = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.html", help=_PLOT, rich_help_panel=_OUTPUT)] = None,
) -> None:
    """Answer questions about a table of people, with noise that hides each of them.

    A question is count, sum(x), mean(x), variance(x), histogram(x, 10), median(x), quantile(x, 0.9), min(x), max(x),
    top(x, 3) or covariance(x, y); then where x > 1 and y = north, by x, and weight 2 may follow. All questions share ε
    by their weights. What was answered before, about the same data, is answered again for nothing.

    privet query clinic.csv 'mean(age) by ward' --epsilon 0.5 --ledger clinic

    privet query clinic.csv 'count where age >= 65' count --epsilon 0.2 --ledger clinic --plot answers.html
    """
    from privet.report.write import require_writable, write_page

    if find_spec("polars") is None:
        raise MissingExtra("polars", "data")
    if plot is not None:
        require_writable(plot)
    _require_table(data)  # before the schema is looked for beside it
    known = _schema(data, schema, questions)
    with console.waiting("Asking …"):
        if ledger is None:
            reply = _alone(data, questions, known, epsilon, delta, confidence)
        else:
            _require_name(ledger)
            kept = _kept(stored, url)
            with opened(url, key_file, wait) as book:
                from privet.core.random import default_rng
                from privet.query import Account, Stored, ask

                reply = ask(
                    data,
                    questions,
                    known,
                    account=Account(book, ledger, None if kept is None else Stored(kept, wait=wait)),
                    epsilon=epsilon,
                    delta=delta,
                    rng=default_rng(),
                    confidence=confidence,
                    fresh=fresh,
                )
    done = "the questions were answered" if ledger is None else f"{ledger!r} was charged"
    with console.after(done) if reply.charged is not None else nullcontext():
        if plot is not None:
            from privet.cli.query_page import page

            write_page(plot, page(reply.release, data.name))
        if as_json:
            console.show_json(_document(reply, ledger))
        else:
            from privet.cli.query_view import show

            show(reply, ledger)
            if plot is not None:
                console.line(f"The page with the figures is {plot}; open it in a browser.", "bold")


def _require_table(data: Path) -> None:
    if data.is_dir():
        raise InvalidInput("data", f"{str(data)!r} is a folder", "name a CSV or Parquet file in it")
    if not data.is_file():
        raise InvalidInput("data", f"{str(data)!r} cannot be read: no such file", "name a CSV or Parquet file")


def _kept(stored: Path | None, url: str) -> Path | None:
    """Where answers are kept, which is not where charges are."""
    kept = stored if stored is not None else _beside(url)
    if kept is not None and kept.resolve() == Path(url.removeprefix("sqlite:///")).resolve():
        raise InvalidInput("stored", f"is {str(kept)!r}, which is the ledger", "keep answers in a file of their own")
    return kept


def _schema(data: Path, given: Path | None, questions: list[str]) -> Schema:
    from privet.data import load_schema, require_vouched
    from privet.query import columns_read, parse_questions

    place = given if given is not None else data.with_name(data.name.partition(".")[0] + ".schema.toml")
    schema = load_schema(place)
    require_vouched(schema, place, columns_read(parse_questions(questions, schema), schema))
    return schema


def _require_name(ledger: str) -> None:
    if "://" in ledger or ledger.endswith((".db", ".sqlite")) or Path(ledger).is_file():
        problem = f"is {ledger!r}, a database, and the name of a budget is wanted"
        raise InvalidInput("ledger", problem, f"write: --url {ledger} --ledger NAME")


def _beside(url: str) -> Path | None:
    """The file of answers for a ledger in a file; a server has none beside it."""
    path = url.removeprefix("sqlite:///")
    return None if "://" in path else Path(f"{path}.answers")


def _alone(data: Path, questions: list[str], schema: Schema, epsilon: float, delta: float, confidence: float) -> Reply:
    from privet.core.random import default_rng
    from privet.query import Reply, plan

    made = plan(questions, schema, epsilon=epsilon, delta=delta, confidence=confidence)
    release = made.answer(data, rng=default_rng(), name=data.name)
    return Reply(release, (False,) * len(release.value), made.guarantee, None)


def _document(reply: Reply, ledger: str | None) -> dict[str, Any]:
    import json

    return {
        "privet": VERSION,
        "command": "query",
        "answers": [
            encode(answer) | {"free": free} for answer, free in zip(reply.release.value, reply.free, strict=True)
        ],
        "charged": None if reply.charged is None else encode(reply.charged),
        "ledger": ledger,
        "head": reply.head,
        "release": json.loads(reply.release.to_json())["record"],
    }
