"""A schema's file: read it, require that somebody vouches for it, and write sources into it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from privet.core import InvalidInput, reason_of
from privet.data.bounds_source import BoundsSource
from privet.data.columns import Category, Number, seal_of, states_bounds
from privet.data.draft import DRAFT_WARNING
from privet.data.schema import Schema
from privet.data.toml import source_line

__all__ = ["is_vouched", "load_schema", "refusal_of", "require_vouched", "schema_file_of", "with_sources"]

_HEADER = re.compile(r"\s*\[\[\s*column\s*\]\]")
_SOURCE = re.compile(r"\s*source\s*=")
_BYTE_ORDER_MARK = "\ufeff"


def load_schema(path: str | os.PathLike[str]) -> Schema:
    """Return the schema in a TOML file.

    Args:
        path: The file.

    Raises:
        InvalidInput: The file cannot be read, or is not a schema; the line is named.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "it is not UTF-8 text"
        problem = f"is {str(path)!r}, which cannot be read: {reason}"
        raise InvalidInput("schema", problem, "check the path; see docs/how-to/data.md for the format") from None
    return Schema.from_toml(text)


def schema_file_of(table: Path) -> Path:
    """Return where the schema of a table is by default: `clinic.schema.toml` beside `clinic.csv`.

    Args:
        table: The file of the table.

    >>> schema_file_of(Path("data/clinic.csv.gz")).as_posix()
    'data/clinic.schema.toml'
    """
    return table.with_name(f"{table.name.partition('.')[0]}.schema.toml")


def is_vouched(column: Number | Category) -> bool:
    """Return whether a named person vouches for a column's source, and the column has not changed since.

    Args:
        column: A column with bounds or values.
    """
    source = BoundsSource.of(column.source)
    sealed = source is not None and source.by is not None and source.seal in (None, seal_of(column))
    return sealed and not _is_future(source)


def refusal_of(column: Number | Category) -> str | None:
    """Return why `require_vouched` refuses a column, or None if it does not.

    Args:
        column: A column with bounds or values.

    >>> refusal_of(Number("age", 0, 120, source="domain limit"))
    'names nobody who vouches for its source'
    """
    source = BoundsSource.of(column.source)
    if not states_bounds(column) or is_vouched(column):
        return None
    if source is None:
        return "has no source"
    if source.by is None:
        return "names nobody who vouches for its source"
    if _is_future(source):
        return f"is vouched for on {source.on}, which is in the future"
    return "was changed after somebody vouched for it"


def _is_future(source: BoundsSource | None) -> bool:
    """Whether a date lies in the future in every time zone."""
    return source is not None and source.on is not None and source.on > datetime.now(UTC).date() + timedelta(days=1)


def require_vouched(schema: Schema, path: str | os.PathLike[str], names: tuple[str, ...] | None = None) -> None:
    """Refuse a file in which a column that is used has no source, nobody vouches for it by name, they did so on a date
    in the future, or what they vouched for was changed.

    Args:
        schema: The schema of the file.
        path: The file, for the advice.
        names: The columns that are used; all of them by default.

    Raises:
        InvalidInput: The columns are named, and the command that adds what is missing.
    """
    schema.require_sources(names, file=str(path))
    stated = dict(schema.sources(names))
    unnamed = [repr(name) for name, source in stated.items() if source is not None and source.by is None]
    if unnamed:
        problem = f"names nobody who vouches for the source of {', '.join(unnamed)}"
        example = f'source = {{ kind = "codebook", by = "your name", on = {datetime.now(UTC).date()} }}'
        advice = f"run: privet schema confirm {path} (it adds the name and the date, such as: {example})"
        raise InvalidInput("schema", problem, advice)
    future = [f"{name!r} ({source.on})" for name, source in stated.items() if source is not None and _is_future(source)]
    if future:
        problem = f"has a date in the future for the source of {', '.join(future)}"
        raise InvalidInput("schema", problem, f"correct the date, or run: privet schema confirm {path}")
    changed = [
        repr(column.name)
        for column in schema.columns
        if column.name in stated and states_bounds(column) and not is_vouched(column)
    ]
    if changed:
        problem = f"has other bounds or values of {', '.join(changed)} than were vouched for"
        raise InvalidInput(
            "schema", problem, f"look at them, `missing` and `outside` included, and run: privet schema confirm {path}"
        )


def with_sources(text: str, sources: Mapping[str, BoundsSource]) -> str:
    """Return a schema's text with the sources of some columns added or replaced; everything else stays as it is.

    Once every column has a source for which somebody vouches, the warning of `privet schema draft` is removed.

    Args:
        text: The TOML of a schema.
        sources: The new source of each named column.

    Raises:
        InvalidInput: The columns are not written as [[column]] tables, so that no line can be added.

    >>> from privet.data.bounds_source import SourceKind
    >>> text = 'privet = 1\\n[[column]]\\nname = "age"  # in years\\nkind = "number"\\nlow = 0\\nhigh = 120\\n'
    >>> print(with_sources(text, {"age": BoundsSource(SourceKind.DOMAIN_LIMIT)}))
    privet = 1
    [[column]]
    name = "age"  # in years
    kind = "number"
    low = 0
    high = 120
    source = "domain limit"
    <BLANKLINE>
    """
    if text.startswith(_BYTE_ORDER_MARK):
        return _BYTE_ORDER_MARK + with_sources(text.removeprefix(_BYTE_ORDER_MARK), sources)
    schema = Schema.from_toml(text)
    wanted = schema.with_sources(sources)
    edited = _inserted(text, schema, sources)
    if not _means(edited, wanted):
        name = next(iter(sources))
        problem = "is laid out so that no line can be added to a column"
        advice = f"write columns as [[column]] with one line a key, or add to {name!r}: {source_line(sources[name])}"
        raise InvalidInput("schema", problem, advice)
    whole = all(is_vouched(each) for each in wanted.columns if states_bounds(each))
    return _without_warning(edited) if whole else edited


def _means(text: str, schema: Schema) -> bool:
    try:
        return Schema.from_toml(text) == schema
    except InvalidInput:
        return False


def _inserted(text: str, schema: Schema, sources: Mapping[str, BoundsSource]) -> str:
    """The text with one line a column, after the last line of its table that is neither blank nor a comment."""
    end_of_line = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(end_of_line)
    headers = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    if len(headers) != len(schema.columns):
        return text
    ends = [*headers[1:], len(lines)]
    for column, start, end in reversed(list(zip(schema.columns, headers, ends, strict=True))):
        if column.name not in sources:
            continue
        old = [number for number in range(start, end) if _SOURCE.match(lines[number])]
        if old:
            lines[old[0]] = source_line(sources[column.name])
            continue
        last = max(n for n in range(start, end) if lines[n].strip() and not lines[n].lstrip().startswith("#"))
        lines.insert(last + 1, source_line(sources[column.name]))
    return end_of_line.join(lines)


def _without_warning(text: str) -> str:
    for end_of_line in ("\n", "\r\n"):
        text = text.replace("".join(f"# {line}{end_of_line}" for line in DRAFT_WARNING.splitlines()), "", 1)
    return text
