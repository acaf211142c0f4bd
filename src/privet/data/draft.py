"""A first version of a schema, read from private rows: for a person to confirm, and not for anyone else to see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from privet.core import InvalidInput
from privet.data.columns import Category, Column, Identifier, Number
from privet.data.identifiers import names_a_person
from privet.data.schema import Schema
from privet.data.source import Source, numbers_of, texts_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["DRAFT_WARNING", "Draft", "draft"]

DRAFT_WARNING = """\
This draft was read from private data: its bounds, values and columns can tell what is in single rows, and no budget
has paid for them. No command accepts it before every column states the source of its bounds or values: compare each
with a codebook or a limit of the domain, correct it, and run `privet schema confirm` on this file. Do not share it.
"""
_IN_CELLS = (
    "some cells hold line ends, so that lines_in_cells is set: all guarantees then assume that no record is malformed, "
    "for a quote too many in one can change how others are read; better replace the line ends in the file, and take "
    "that line out"
)
_MOST_VALUES = 100
_MOST_CLASSES = 20
_MOST_KEPT = 10_000
_LONGEST = 100
_MOSTLY, _NEARLY = 0.5, 0.95
"""The part of the cells that must be numbers for the column to be one: of many values, and of few."""
_LEAST = 20
"""Rows without which nobody could say that a column never repeats."""


@dataclass(frozen=True)
class Draft:
    """A schema that nobody has confirmed. Internal: it was read from private rows and not released under a budget."""

    schema: Schema
    warnings: tuple[str, ...]
    """What a person should look at first."""

    def to_toml(self) -> str:
        """Return the schema as TOML, under a comment that says where it came from."""
        return self.schema.to_toml(DRAFT_WARNING + "".join(f"- {warning}\n" for warning in self.warnings))


def draft(
    path: str | PathLike[str],
    target: str | None = None,
    *,
    separator: str | None = None,
    missing: Sequence[str] = ("", "?", "NA"),
) -> Draft:
    """Suggest a schema from the rows of a file. The draft is internal: it reads private rows without a budget.

    Bounds are rounded outward to multiples of 1, 2 or 5 times a power of ten. Values are listed without their counts,
    in alphabetical order. The number of rows is left out: state it where it is public. A CSV file is read line by line.
    If the grammar of CSV reads every record, and more rows than that, `lines_in_cells` is set, with a warning.

    Args:
        path: A CSV (also gzipped) or Parquet file.
        target: The column to predict; None if there is none.
        separator: What separates the cells of a CSV file; by default, the candidate that is most frequent in the
            header.
        missing: Cells that count as missing.

    Returns:
        The schema, and warnings about what a person should check first.

    Raises:
        InvalidInput: The file cannot be read, lacks the target, or has nothing but identifiers and free text.
        MissingExtra: Polars is not installed.
    """
    source = Source.of(path, separator)
    source.require([] if target is None else [target], "the target")
    looked = _FileSummary.at(source, missing)
    warnings: list[str] = []
    if source.csv is not None and looked.unread:
        source, looked = _other_reading(source, source.csv.separator, looked, missing, warnings)
    columns = tuple(_suggested(name, found, name == target, warnings) for name, found in looked.seen.items())
    if all(isinstance(column, Identifier) or column.name == target for column in columns):
        problem = f"{source.path.name!r} seems to have nothing to learn from: identifiers and free text"
        raise InvalidInput("file", problem, "describe its columns in a schema of your own")
    between, in_cells = (",", False) if source.csv is None else (source.csv.separator, source.csv.lines_in_cells)
    schema = Schema(columns, target, missing=tuple(missing), separator=between, lines_in_cells=in_cells)
    return Draft(schema, tuple(warnings))


def _other_reading(
    source: Source, separator: str, lines: _FileSummary, missing: Sequence[str], warnings: list[str]
) -> tuple[Source, _FileSummary]:
    """Lines that are no records may be parts of records of several lines: the owner may know which."""
    records = Source.of(source.path, separator, lines_in_cells=True)
    found = _FileSummary.at(records, missing) if records.header == source.header else lines
    # A quote that was never closed, on the other hand, loses rows that can be read as lines.
    if found.unread == 0 and found.rows > lines.rows - lines.unread:
        warnings.append(_IN_CELLS)
        return records, found
    warnings.append(
        f"{lines.unread:,} lines are no records by themselves (quotes, number of cells), and would be rows of missing "
        "cells; if cells hold line ends, replace these in the file"
    )
    return source, lines


@dataclass(frozen=True)
class _FileSummary:
    """What was seen of a file."""

    seen: dict[str, _ColumnSummary]
    rows: int
    unread: int

    @staticmethod
    def at(source: Source, missing: Sequence[str]) -> _FileSummary:
        """Summarize all rows of a file."""
        seen = {name: _ColumnSummary() for name in source.header}
        rows = unread = 0
        for batch in source.batches(source.header):
            rows += len(batch)
            # In CSV no cell is null but those of records that cannot be read; their owner is the one who may know.
            unread += 0 if source.csv is None else batch[source.header[0]].null_count()
            for name, found in seen.items():
                found.look(batch[name], missing)
        return _FileSummary(seen, rows, unread)


@dataclass
class _ColumnSummary:
    """What was seen of one column."""

    cells: int = 0
    numbers: int = 0
    whole: bool = True
    low: float = math.inf
    high: float = -math.inf
    values: set[str] = field(default_factory=set)
    many: bool = False
    """Whether there are more values than were kept."""
    unique: bool = True
    """Whether no value came twice, as far as values were kept."""

    def look(self, cells: pl.Series, missing: Sequence[str]) -> None:
        texts = texts_of(cells, missing).drop_nulls()
        numbers = numbers_of(cells, missing)
        numbers = numbers[np.isfinite(numbers)]
        self.cells += len(texts)
        self.numbers += len(numbers)
        if len(numbers):
            self.low, self.high = min(self.low, float(numbers.min())), max(self.high, float(numbers.max()))
            self.whole = self.whole and bool((numbers == np.rint(numbers)).all())
        if not self.many:
            self.values.update(texts.unique())
            self.unique = len(self.values) == self.cells
            self.many = len(self.values) > _MOST_KEPT


def _suggested(name: str, seen: _ColumnSummary, is_target: bool, warnings: list[str]) -> Column:
    mixed = not seen.many and len(seen.values) <= _MOST_CLASSES  # few values, some of them numbers: codes
    number = seen.numbers > (_NEARLY if mixed else _MOSTLY) * seen.cells
    values = sorted(value for value in seen.values if value and value == value.strip() and len(value) <= _LONGEST)
    different = seen.unique and seen.cells >= _LEAST
    few = not seen.many and len(values) <= (_MOST_CLASSES if is_target else _MOST_VALUES)
    if is_target:
        if number and not (few and seen.whole):
            return _number(name, seen, warnings)
        if not few:
            warnings.append(f"the target {name!r} has more than {_MOST_CLASSES} values")
        return Category(name, tuple(values[:_MOST_VALUES]))
    if names_a_person(name) or (different and (not number or seen.whole)):
        warnings.append(f"{name!r} looks like an identifier, and would be left out")
        return Identifier(name)
    if number:
        return _number(name, seen, warnings)
    if not few:
        warnings.append(f"{name!r} has more than {_MOST_VALUES} values; it looks like free text, and would be left out")
        return Identifier(name)
    if seen.numbers:
        warnings.append(f"{name!r} has numbers and other texts; each would be a value of a category")
    return Category(name, tuple(values))


def _number(name: str, seen: _ColumnSummary, warnings: list[str]) -> Number:
    """By the finite numbers alone: an infinite one is a slip more often than a bound."""
    if seen.numbers < seen.cells:
        warnings.append(f"{name!r} has cells that are no numbers, or infinite; they would count as missing")
    return Number(name, *_rounded(seen.low, seen.high))


def _rounded(low: float, high: float) -> tuple[float, float]:
    """Round bounds outward to multiples of a 1-2-5 number that is at least a fifth of the range.

    >>> _rounded(17, 88), _rounded(2011, 2024), _rounded(0.0, 0.0)
    ((0.0, 100.0), (2010.0, 2025.0), (0.0, 1.0))
    """
    width = max(high / 5 - low / 5, abs(low) * 1e-9, 1e-100) if low < high else max(abs(low) / 5, 1.0)
    tens = 10.0 ** math.floor(math.log10(width))
    step = next(times * tens for times in (1, 2, 5, 10) if times * tens >= width * (1 - 1e-12))
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    low, high = (float(f"{each:.12g}") for each in (low, high + step if low == high else high))
    limit = 2.0**1000
    return max(low, -limit), min(high, limit)
