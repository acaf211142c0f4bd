"""The questions of `privet schema confirm`."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path

import click

from privet.cli import console
from privet.core import checked
from privet.core.errors import InvalidInput
from privet.data import BoundsSource, Category, Column, Number, Schema, SourceKind, load_schema, with_sources
from privet.report.put import put

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
        given: Answers from the command line, as COLUMN=SOURCE.
        again: Whether columns that have a complete source are asked for again.
    """
    schema = load_schema(file)
    answers = _answers(given, schema)
    sources = dict(schema.sources())
    open_columns = [
        column
        for column in schema.columns
        if column.name in sources and (again or column.name in answers or _incomplete(sources[column.name]))
    ]
    if not open_columns:
        console.line("Every column has a source, and somebody vouches for it. --again asks for all of them.", "green")
        return
    name = _vouching(by)
    on = datetime.now(UTC).date()
    private = not file.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH)  # a draft is for its owner alone
    for place, column in enumerate(open_columns, 1):
        word = answers.get(column.name)
        if word is None:
            _describe(column, sources[column.name], place, len(open_columns))
            word = _asked()
        if word == _QUIT:
            break
        if word == _NONE:
            continue
        old = sources[column.name]
        source = BoundsSource(SourceKind(word), name, on, None if old is None else old.reference)
        put(file, with_sources(file.read_text(encoding="utf-8"), {column.name: source}), "schema", private=private)
    _summarize(file)


def _incomplete(source: BoundsSource | None) -> bool:
    return source is None or source.needs_name


def _answers(given: list[str], schema: Schema) -> dict[str, str]:
    """The sources from the command line by column."""
    known = {name for name, _ in schema.sources()}
    answers = {}
    for text in given:
        # A column's name may have an equals sign in it, and a source has none.
        name, equals, word = (part.strip() for part in text.rpartition("="))
        if not equals or name not in known:
            problem = f"is {text!r}, and the schema has no column {name!r} with bounds or values"
            raise InvalidInput("source", problem, "write COLUMN=SOURCE, such as age=codebook")
        answers[name] = checked.member("source", word, SourceKind).value
    return answers


def _vouching(by: str | None) -> str:
    name = click.prompt("Who vouches for the sources (your name)", type=str) if by is None else by
    checked_name = checked.text("by", str(name).strip())
    if not checked_name.isprintable():
        raise InvalidInput("by", "has line ends or control characters", "write it in one line")
    return checked_name


def _describe(column: Column, source: BoundsSource | None, place: int, count: int) -> None:
    if isinstance(column, Number):
        holds = f"number from {column.low:g} to {column.high:g}"
    elif isinstance(column, Category):
        shown = ", ".join(column.values[:_MOST_SHOWN])
        more = len(column.values) - _MOST_SHOWN
        holds = f"category: {shown}" + (f" and {more} more" if more > 0 else "")
    else:
        holds = "identifier"
    stated = "" if source is None else f" (the schema says: {source.kind.value})"
    console.line(f"{place} of {count}  {column.name}: {holds}{stated}", "bold")


def _asked() -> str:
    """One answer; nothing is taken for granted, so that an empty one is asked for again."""
    while True:
        said = str(click.prompt(_QUESTION, type=str)).strip().lower()
        word = _LETTERS.get(said, said)
        if word in _LETTERS.values():
            return word
        console.line(f"{said!r} is none of them.", "yellow")


def _summarize(file: Path) -> None:
    missing = [name for name, source in load_schema(file).sources() if _incomplete(source)]
    if missing:
        console.line(f"Still without a source: {', '.join(missing)}. No command accepts these columns.", "yellow")
        console.line(f"Go through them again with: privet schema confirm {file}", "dim")
    else:
        console.line(f"{file}: every column has a source. Guarantees state it as an assumption.", "bold green")
