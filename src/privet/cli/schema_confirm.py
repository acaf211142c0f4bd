"""The prompts of `privet schema confirm`."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path

import click
import typer

from privet.cli import console
from privet.cli.exit_codes import FAILED, INTERRUPTED
from privet.data import (
    BoundsSource,
    Category,
    Missing,
    Number,
    Outside,
    SchemaConfirmation,
    SourceKind,
    is_vouched,
    load_schema,
    open_columns,
    parse_sources,
    require_writable_schema,
    states_bounds,
)

__all__ = ["confirm_columns"]

_NONE, _QUIT = "none", "quit"
_LETTERS = {kind.value[0]: kind.value for kind in SourceKind} | {_NONE[0]: _NONE, _QUIT[0]: _QUIT}
_QUESTION = "source: [c]odebook, [d]omain limit, [p]ublic data, [l]earned under the budget, [n]one yet, [q]uit"
_MOST_SHOWN = 12


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
    sources = parse_sources(given, schema, again=again)
    columns = open_columns(schema, sources=sources, again=again)
    if not columns:
        console.line("Somebody vouches for the source of every column. --again asks for all of them.", "green")
        return
    require_writable_schema(file)
    proceed = f"privet schema confirm {shlex.quote(str(file))}{' --again' if again else ''}"
    unanswered = [column.name for column in columns]
    try:
        name = str(click.prompt("Who vouches for the sources (your name)", type=str)) if by is None else by
        confirmation = SchemaConfirmation(file, name, datetime.now(UTC).date())
        for place, column in enumerate(columns, 1):
            kind = sources.get(column.name)
            if kind is None:
                _describe(column, place, len(columns))
                word = _prompt()
                if word == _QUIT:
                    break
                kind = None if word == _NONE else SourceKind(word)
            if kind is not None:
                confirmation.confirm(column, kind)
                unanswered.remove(column.name)
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo(f"\nInterrupted. Answers so far are in the file. Continue with: {proceed}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    _summarize(file, unanswered, proceed)


def _printable(text: str) -> str:
    """Return a name or value of the file without line ends or control characters, which could pass for our words."""
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
        holds = f"category: {', '.join(map(_printable, column.values[:_MOST_SHOWN]))}"
        holds += f" and {more} more" if more > 0 else ""
        holds += f", missing cells count as {_printable(column.missing)}" if column.missing is not None else ""
    source = BoundsSource.of(column.source)
    stated = "" if source is None else f" (the schema says: {source.kind.value}"
    stated += f", {source.reference})" if source is not None and source.reference else ")" if stated else ""
    console.line(f"{place} of {count}  {_printable(column.name)}: {holds}{stated}", "bold")


def _prompt() -> str:
    """Prompt for one answer; there is no default, so that an empty one is asked for again."""
    while True:
        said = str(click.prompt(_QUESTION, type=str)).strip().lower()
        word = _LETTERS.get(said, said)
        if word in _LETTERS.values():
            return word
        console.line(f"{said!r} is none of them.", "yellow")


def _summarize(file: Path, unanswered: list[str], proceed: str) -> None:
    """Say what is left to do; exit code 1 if anything is."""
    missing = [column for column in load_schema(file).columns if states_bounds(column) and not is_vouched(column)]
    old = [_printable(name) for name in unanswered if name not in [column.name for column in missing]]
    if old:
        console.line(f"Not confirmed again, so that the earlier source stays: {', '.join(old)}.", "yellow")
    if not missing and old:
        console.line(f"Answers so far are in the file. Continue with: {proceed}", "dim")
        raise typer.Exit(FAILED)
    if not missing:
        console.line(f"{file}: every column has a source. Guarantees state it as an assumption.", "bold green")
        return
    names = ", ".join(_printable(column.name) for column in missing)
    console.line(f"Nobody vouches yet for the source of: {names}. No command accepts these columns.", "yellow")
    console.line(f"Answers so far are in the file. Continue with: {proceed}", "dim")
    raise typer.Exit(FAILED)
