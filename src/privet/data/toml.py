"""A schema as TOML: written for people, and parsed with the line of every error."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from privet.core import InvalidInput, checked
from privet.data.bounds_source import BoundsSource, SourceKind
from privet.data.columns import Category, Column, Identifier, Missing, Number, Outside

if TYPE_CHECKING:
    from privet.data.schema import Schema

__all__ = ["VERSION", "format_schema", "parse_schema", "source_line"]

VERSION = 1

_TOP = ("target", "rows", "user", "most_rows_per_user", "missing", "separator", "lines_in_cells")
_KEYS = {
    "number": ("low", "high", "missing", "outside", "source"),
    "category": ("values", "missing", "source"),
    "identifier": (),
}
_SOURCE_KEYS = ("kind", "by", "on", "reference", "seal")
_OPTIONAL = ("missing", "outside", "source")
_HEADER = re.compile(r"\s*\[\[\s*column\s*\]\]")


def format_schema(schema: Schema, comment: str = "") -> str:
    """Return a schema as TOML; keys with their default values are omitted."""
    lines = [f"# {line}".rstrip() for line in comment.splitlines()] + [f"privet = {VERSION}"]
    usual = {"missing": ("", "?", "NA"), "separator": ",", "lines_in_cells": False}
    for key in _TOP:
        value = getattr(schema, key)
        if value is not None and value != usual.get(key):
            lines.append(f"{key} = {_value(value)}")
    for column in schema.columns:
        lines += ["", "[[column]]", f"name = {_value(column.name)}", *_of(column)]
    return "\n".join(lines) + "\n"


def _of(column: Column) -> list[str]:
    match column:
        case Number():
            lines = ['kind = "number"', f"low = {_value(column.low)}", f"high = {_value(column.high)}"]
            rule = column.missing.value if isinstance(column.missing, Missing) else column.missing
            lines += [f"missing = {_value(rule)}"] if rule != Missing.INDICATOR.value else []
            lines += [f"outside = {_value(column.outside.value)}"] if column.outside is not Outside.CLAMP else []
            return lines + _source_of(column)
        case Category():
            lines = ['kind = "category"', f"values = {_value(column.values)}"]
            lines += [f"missing = {_value(column.missing)}"] if column.missing is not None else []
            return lines + _source_of(column)
        case Identifier():
            return ['kind = "identifier"']


def _source_of(column: Number | Category) -> list[str]:
    source = BoundsSource.of(column.source)
    return [] if source is None else [source_line(source)]


def source_line(source: BoundsSource) -> str:
    """Return the line of a column that states its source.

    >>> from datetime import date
    >>> source_line(BoundsSource(SourceKind.CODEBOOK, "Ada Lovelace", date(2026, 11, 18)))
    'source = { kind = "codebook", by = "Ada Lovelace", on = 2026-11-18 }'
    """
    kind = _value(source.kind.value)
    if source == BoundsSource(source.kind):
        return f"source = {kind}"
    parts = [f"kind = {kind}"]
    parts += [f"by = {_value(source.by)}"] if source.by is not None else []
    parts += [f"on = {source.on}"] if source.on is not None else []
    parts += [f"reference = {_value(source.reference)}"] if source.reference is not None else []
    parts += [f"seal = {_value(source.seal)}"] if source.seal is not None else []
    return f"source = {{ {', '.join(parts)} }}"


def _value(value: str | float | tuple[str, ...]) -> str:
    if isinstance(value, tuple):
        inside = ", ".join(_value(each) for each in value)
        return f"[{inside}]" if len(inside) < 100 else "[\n    " + ",\n    ".join(map(_value, value)) + ",\n]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # JSON's escapes are TOML's too, but for the one control character that JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))


def parse_schema(text: str, make: Callable[..., Schema]) -> Schema:
    """Return the schema that a text describes.

    Args:
        text: The TOML.
        make: Makes a schema from its columns and the other fields.

    Raises:
        InvalidInput: What is wrong with the text, where, and what to do.
    """
    try:
        top = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput("schema", f"is not TOML: {error}", "see docs/how-to/data.md for the format") from None
    where = _Lines(text)
    version = top.pop("privet", None)
    if version != VERSION:
        problem = "has no version" if version is None else f"has the version {version!r}"
        raise InvalidInput("schema", problem, f"begin it with: privet = {VERSION}")
    tables = top.pop("column", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InvalidInput("schema", f"{where.top('column')}has `column` in another form", "write [[column]]")
    for key in top:
        if key not in _TOP:
            known = ", ".join(("column", *_TOP))
            raise InvalidInput("schema", f"{where.top(key)}has `{key}`, which means nothing", f"use one of: {known}")
    columns = tuple(_column(table, where, place) for place, table in enumerate(tables))
    for key in ("target", "user", "separator"):
        if not isinstance(top.get(key, ""), str):
            raise InvalidInput("schema", f"{where.top(key)}{key} is not a text", 'write it in quotes: "…"')
    if "missing" in top:
        if not isinstance(top["missing"], list):
            raise InvalidInput("schema", f"{where.top('missing')}missing is not a list", 'write it as ["?", ""]')
        top["missing"] = tuple(top["missing"])
    try:
        return make(columns, **top)
    except InvalidInput as error:
        raise InvalidInput(
            "schema", f"{where.top(error.argument)}{error.argument} {error.problem}", error.advice
        ) from None


def _column(table: Mapping[str, Any], where: _Lines, place: int) -> Column:
    name, kind = table.get("name"), table.get("kind")
    called = f"column {name!r}" if isinstance(name, str) else "a column without a name"
    if not isinstance(kind, str) or kind not in _KEYS:
        problem = "has no kind" if kind is None else f"has the kind {kind!r}"
        raise InvalidInput("schema", f"{where.of(place, 'kind')}{called} {problem}", f"use one of: {', '.join(_KEYS)}")
    keys = ("name", "kind", *_KEYS[kind])
    for key in table:
        if key not in keys:
            problem = f"{where.of(place, key)}{called} has `{key}`, which means nothing for kind {kind!r}"
            raise InvalidInput("schema", problem, f"use one of: {', '.join(keys)}")
    for key in keys:
        if key not in table and key not in _OPTIONAL:
            advice = f"add a line: {key} = …" + ("; values = [], if they are not public" if key == "values" else "")
            raise InvalidInput("schema", f"{where.of(place)}{called} has no `{key}`", advice)
    given = {key: value for key, value in table.items() if key != "kind"}
    if isinstance(given.get("values"), list):
        given["values"] = tuple(given["values"])
    elif "values" in given:
        raise InvalidInput("schema", f"{where.of(place, 'values')}{called}: values is not a list", 'write ["a", "b"]')
    if "source" in given:
        given["source"] = _source(given["source"], f"{where.of(place, 'source')}{called}: source")
    try:
        made: Column = {"number": Number, "category": Category, "identifier": Identifier}[kind](**given)
        return made
    except InvalidInput as error:
        problem = f"{where.of(place, error.argument)}{called}: {error.argument} {error.problem}"
        raise InvalidInput("schema", problem, error.advice) from None


def _source(given: object, what: str) -> BoundsSource:
    known = ", ".join(_SOURCE_KEYS)
    try:
        if isinstance(given, str):
            return BoundsSource(checked.member("source", given, SourceKind))
        if not isinstance(given, dict) or "kind" not in given or not set(given) <= set(_SOURCE_KEYS):
            example = f'{{ kind = "codebook", by = "your name", on = {datetime.now(UTC).date()} }}'
            raise InvalidInput("source", f"is neither a word nor a table of {known}", f"write: source = {example}")
        return BoundsSource(**given)
    except InvalidInput as error:
        within = "" if error.argument == "source" else f" has `{error.argument}`, which"
        raise InvalidInput("schema", f"{what}{within} {error.problem}", error.advice) from None


class _Lines:
    """Where things stand in a text that is known to be TOML."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._headers = [number for number, line in enumerate(self._lines) if _HEADER.match(line)]

    def top(self, key: str) -> str:
        """`line 3: `, for a key above the first column."""
        return self._said(self._find(key, 0, self._headers[0] if self._headers else len(self._lines)))

    def of(self, place: int, key: str = "") -> str:
        """The line of a column's key, or of the column itself."""
        if place >= len(self._headers):
            return ""  # written in another way, such as column = [{…}]
        ends = [*self._headers[1:], len(self._lines)]
        found = self._find(key, self._headers[place], ends[place]) if key else None
        return self._said(self._headers[place] if found is None else found)

    def _find(self, key: str, start: int, end: int) -> int | None:
        key_line = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
        return next((number for number in range(start, end) if key_line.match(self._lines[number])), None)

    @staticmethod
    def _said(number: int | None) -> str:
        return "" if number is None else f"line {number + 1}: "
