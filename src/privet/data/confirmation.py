"""Confirm the sources of a schema: who vouches for the bounds or values of each column, written into its file."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path

from privet.core import InvalidInput, checked, write_atomically
from privet.data.bounds_source import BoundsSource, SourceKind
from privet.data.columns import Category, Number, seal_of, states_bounds
from privet.data.schema import Schema
from privet.data.schema_file import is_vouched, with_sources

__all__ = ["SchemaConfirmation", "open_columns", "parse_sources", "require_writable_schema"]

_LONGEST_NAME = 200


class SchemaConfirmation:
    """One person's statements on where a schema's bounds and values come from; each is written at once.

    Args:
        file: The schema's file.
        by: Who vouches.
        on: The date of the statements.

    Raises:
        InvalidInput: The file is read-only, or the name is no printable line.
    """

    def __init__(self, file: Path, by: str, on: date) -> None:
        self._file, self._by, self._on = file.resolve(), _checked_name(by), on
        self._mode = stat.S_IMODE(file.stat().st_mode)
        require_writable_schema(file)

    def confirm(self, column: Number | Category, kind: SourceKind) -> None:
        """Write the source of a column, sealed with its bounds as they are in `column`.

        If the file has other bounds by now, they are not what is sealed, and every command refuses them.

        Args:
            column: The column as the person saw it.
            kind: Where its bounds or values come from.
        """
        old = BoundsSource.of(column.source)
        reference = old.reference if old is not None and old.kind is kind else None
        source = BoundsSource(kind, self._by, self._on, reference, seal_of(column))
        with self._file.open(encoding="utf-8", newline="") as opened:
            text = opened.read()
        write_atomically(self._file, with_sources(text, {column.name: source}), "schema", private=True)
        self._file.chmod(self._mode)


def require_writable_schema(file: Path) -> None:
    """Require that the owner of a schema's file may write it.

    Args:
        file: The schema's file.

    Raises:
        InvalidInput: The file is read-only.
    """
    if not file.stat().st_mode & stat.S_IWUSR:
        raise InvalidInput("schema", f"is {str(file)!r}, which is read-only", "make it writable, or copy it")


def open_columns(schema: Schema, *, sources: Mapping[str, SourceKind], again: bool = False) -> list[Number | Category]:
    """Return the columns whose source is to be stated.

    Args:
        schema: The schema.
        sources: Statements that were given, by column. If there are any, only their columns are returned.
        again: Whether columns for which somebody vouches are to be stated again.
    """
    stated = [column for column in schema.columns if states_bounds(column)]
    if sources:
        return [column for column in stated if column.name in sources]
    return [column for column in stated if again or not is_vouched(column)]


def parse_sources(texts: Iterable[str], schema: Schema, *, again: bool = False) -> dict[str, SourceKind]:
    """Parse statements such as `age=codebook`.

    Args:
        texts: The statements, as COLUMN=SOURCE.
        schema: The schema with the columns.
        again: Whether a statement may replace that of somebody who vouches for a column.

    Raises:
        InvalidInput: A statement is malformed, names no column with bounds or values, or comes twice.
    """
    known = {column.name: column for column in schema.columns if states_bounds(column)}
    sources: dict[str, SourceKind] = {}
    for text in texts:
        # A column's name may have an equals sign in it, and a source has none.
        name, equals, word = (part.strip() for part in text.rpartition("="))
        if not equals:
            problem = f"is {text!r}, which has no `=` between a column and its source"
            raise InvalidInput("source", problem, "write COLUMN=SOURCE, such as age=codebook")
        if name not in known:
            problem = f"is {text!r}, and the schema has no column {name!r} with bounds or values"
            raise InvalidInput("source", problem, "write COLUMN=SOURCE, such as age=codebook")
        if name in sources:
            raise InvalidInput("source", f"is given twice for {name!r}", "give it once")
        source = BoundsSource.of(known[name].source)
        if is_vouched(known[name]) and source is not None and not again:
            problem = f"is given for {name!r}, for which {source.by} vouched on {source.on}"
            raise InvalidInput("source", problem, "use `again` to replace that")
        sources[name] = checked.member("source", word, SourceKind)
    return sources


def _checked_name(by: str) -> str:
    name = checked.text("by", by.strip())
    if not name.isprintable():
        raise InvalidInput("by", "has line ends or control characters", "write it in one line")
    if len(name) > _LONGEST_NAME:
        raise InvalidInput("by", f"has {len(name):,} characters", f"use {_LONGEST_NAME} at most")
    return name
