"""The questions of `privet schema confirm`."""

from __future__ import annotations

import shlex
import stat
from datetime import UTC, date, datetime
from pathlib import Path

import click
import typer

from privet.cli import console
from privet.cli.run import FAILED, INTERRUPTED
from privet.core import checked
from privet.core.atomic_write import write_atomically
from privet.core.errors import InvalidInput
from privet.data import (
    BoundsSource,
    Category,
    Missing,
    Number,
    Outside,
    Schema,
    SourceKind,
    is_vouched,
    load_schema,
    seal_of,
    states_bounds,
    with_sources,
)

__all__ = ["confirm_columns"]

_NONE, _QUIT = "none", "quit"
_LETTERS = {kind.value[0]: kind.value for kind in SourceKind} | {_NONE[0]: _NONE, _QUIT[0]: _QUIT}
_QUESTION = "source: [c]odebook, [d]omain limit, [p]ublic data, [l]earned under the budget, [n]one yet, [q]uit"
_MOST_SHOWN = 12
_LONGEST_NAME = 200


def confirm_columns(file: Path, by: str | None, given: list[str], again: bool) -> None:
    """Ask for the source of each column that lacks one, and write each answer into the file at once.

    Args:
        file: The schema's file.
        by: Who vouches; asked for if None.
        given: Answers from the command line, as COLUMN=SOURCE. If there are any, nothing else is asked.
        again: Whether columns for which somebody vouches are asked for again.

    Raises:
        typer.Exit: With 1 if a column is left without an answer, and with 130 after an interruption (Ctrl-C, or the end
            of the input). Answers given before are in the file.
    """
    schema = load_schema(file)
    answers = _answers(given, schema, again)
    stated = [column for column in schema.columns if states_bounds(column)]
    open_columns = [
        column for column in stated if (column.name in answers if answers else again or not is_vouched(column))
    ]
    if not open_columns:
        console.line("Somebody vouches for the source of every column. --again asks for all of them.", "green")
        return
    if not file.stat().st_mode & stat.S_IWUSR:
        raise InvalidInput("schema", f"is {str(file)!r}, which is read-only", "make it writable, or copy it")
    proceed = f"privet schema confirm {shlex.quote(str(file))}{' --again' if again else ''}"
    unanswered = [column.name for column in open_columns]
    try:
        vouching = _Vouching(file.resolve(), _named(by), datetime.now(UTC).date())
        for place, column in enumerate(open_columns, 1):
            word = answers.get(column.name)
            if word is None:
                _describe(column, place, len(open_columns))
                word = _asked()
            if word == _QUIT:
                break
            if word != _NONE:
                vouching.write(column, SourceKind(word))
                unanswered.remove(column.name)
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo(f"\nInterrupted. Answers so far are in the file. Continue with: {proceed}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    _summarize(file, unanswered, proceed)


class _Vouching:
    """One person's answers, each of which is written into the file at once."""

    def __init__(self, file: Path, by: str, on: date) -> None:
        self._file, self._by, self._on = file, by, on
        self._mode = stat.S_IMODE(file.stat().st_mode)

    def write(self, column: Number | Category, kind: SourceKind) -> None:
        """Record the answer for a column as it was shown: if the file has other bounds by now, they are not sealed."""
        old = BoundsSource.of(column.source)
        reference = old.reference if old is not None and old.kind is kind else None
        source = BoundsSource(kind, self._by, self._on, reference, seal_of(column))
        with self._file.open(encoding="utf-8", newline="") as opened:
            text = opened.read()
        write_atomically(self._file, with_sources(text, {column.name: source}), "schema", private=True)
        self._file.chmod(self._mode)


def _answers(given: list[str], schema: Schema, again: bool) -> dict[str, str]:
    """The sources from the command line by column."""
    known = {column.name: column for column in schema.columns if states_bounds(column)}
    answers: dict[str, str] = {}
    for text in given:
        # A column's name may have an equals sign in it, and a source has none.
        name, equals, word = (part.strip() for part in text.rpartition("="))
        if not equals:
            problem = f"is {text!r}, which has no `=` between a column and its source"
            raise InvalidInput("source", problem, "write COLUMN=SOURCE, such as age=codebook")
        if name not in known:
            problem = f"is {text!r}, and the schema has no column {name!r} with bounds or values"
            raise InvalidInput("source", problem, "write COLUMN=SOURCE, such as age=codebook")
        if name in answers:
            raise InvalidInput("source", f"is given twice for {name!r}", "give it once")
        source = BoundsSource.of(known[name].source)
        if is_vouched(known[name]) and source is not None and not again:
            problem = f"is given for {name!r}, for which {source.by} vouched on {source.on}"
            raise InvalidInput("source", problem, "use --again to replace that")
        answers[name] = checked.member("source", word, SourceKind).value
    return answers


def _named(by: str | None) -> str:
    name = click.prompt("Who vouches for the sources (your name)", type=str) if by is None else by
    checked_name = checked.text("by", str(name).strip())
    if not checked_name.isprintable():
        raise InvalidInput("by", "has line ends or control characters", "write it in one line")
    if len(checked_name) > _LONGEST_NAME:
        raise InvalidInput("by", f"has {len(checked_name):,} characters", f"use {_LONGEST_NAME} at most")
    return checked_name


def _shown(text: str) -> str:
    """A name or value of the file, without line ends or control characters that could pass for our own words."""
    return text if text.isprintable() else repr(text)


def _describe(column: Number | Category, place: int, count: int) -> None:
    if isinstance(column, Number):
        holds = f"number from {column.low:g} to {column.high:g}"
        if column.missing is not Missing.INDICATOR:
            rule = column.missing.value if isinstance(column.missing, Missing) else f"{column.missing:g}"
            holds += f", missing cells count as {rule}"
        holds += ", cells beyond the bounds count as missing" if column.outside is Outside.MISSING else ""
    else:
        more = len(column.values) - _MOST_SHOWN
        holds = f"category: {', '.join(map(_shown, column.values[:_MOST_SHOWN]))}"
        holds += f" and {more} more" if more > 0 else ""
        holds += f", missing cells count as {_shown(column.missing)}" if column.missing is not None else ""
    source = BoundsSource.of(column.source)
    stated = "" if source is None else f" (the schema says: {source.kind.value}"
    stated += f", {source.reference})" if source is not None and source.reference else ")" if stated else ""
    console.line(f"{place} of {count}  {_shown(column.name)}: {holds}{stated}", "bold")


def _asked() -> str:
    """One answer; nothing is taken for granted, so that an empty one is asked for again."""
    while True:
        said = str(click.prompt(_QUESTION, type=str)).strip().lower()
        word = _LETTERS.get(said, said)
        if word in _LETTERS.values():
            return word
        console.line(f"{said!r} is none of them.", "yellow")


def _summarize(file: Path, unanswered: list[str], proceed: str) -> None:
    """Say what is left to do; exit code 1 if anything is."""
    missing = [column for column in load_schema(file).columns if states_bounds(column) and not is_vouched(column)]
    old = [_shown(name) for name in unanswered if name not in [column.name for column in missing]]
    if old:
        console.line(f"Not confirmed again, so that the earlier source stays: {', '.join(old)}.", "yellow")
    if not missing and old:
        console.line(f"Answers so far are in the file. Continue with: {proceed}", "dim")
        raise typer.Exit(FAILED)
    if not missing:
        console.line(f"{file}: every column has a source. Guarantees state it as an assumption.", "bold green")
        return
    names = ", ".join(_shown(column.name) for column in missing)
    console.line(f"Nobody vouches yet for the source of: {names}. No command accepts these columns.", "yellow")
    console.line(f"Answers so far are in the file. Continue with: {proceed}", "dim")
    raise typer.Exit(FAILED)
