"""Check a table against its schema: its header, which is public, and for its owner the cells of its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privet.data.columns import Category, Identifier, Number
from privet.data.read import read
from privet.data.schema import Schema
from privet.data.source import Source, numbers_of, texts_of
from privet.data.table import Table

if TYPE_CHECKING:
    import polars as pl

__all__ = ["RowCheck", "check_rows", "header_problems"]


def header_problems(schema: Schema, file: Path) -> tuple[str, ...]:
    """Return how the header of a table differs from its schema. No row is read.

    Names of the file are given only if all of the schema's columns are in it: its first line might be a row.

    Args:
        schema: The schema.
        file: The table.

    Returns:
        One sentence for each column that does not fit; none if all fit.

    Raises:
        InvalidInput: The file cannot be read.
    """
    header = Source.by(file, schema).header
    names = [column.name for column in schema.columns]
    if missing := [f"{name!r} is in the schema, and not in the file" for name in names if name not in header]:
        return tuple(missing)
    unique = dict.fromkeys(header)
    return (
        *(f"{name!r} is in the file, and not in the schema" for name in unique if name not in names),
        *(f"{name!r} is in the file twice" for name in unique if header.count(name) > 1),
    )


@dataclass(frozen=True)
class RowCheck:
    """Counts of cells and rows. Internal: computed from private rows, and not released under any budget."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = field(repr=False)
    """One for each column of the schema."""
    remarks: tuple[str, ...] = field(repr=False)


@dataclass
class _Cells:
    """Counts of the cells of one column."""

    missing: int = 0
    no_number: int = 0
    outside: int = 0
    unlisted: int = 0

    def add(self, cells: pl.Series, column: Number | Category | Identifier, missing: tuple[str, ...]) -> None:
        texts = texts_of(cells, missing)
        self.missing += texts.null_count()
        if isinstance(column, Category):
            self.unlisted += len(texts) - texts.null_count() - int(texts.is_in(list(column.values)).sum())
        elif isinstance(column, Number):
            numbers = numbers_of(cells, missing)
            unknown = np.isnan(numbers)
            self.no_number += int(np.count_nonzero(unknown & texts.is_not_null().to_numpy()))
            self.outside += int(np.count_nonzero((numbers < column.low) | (numbers > column.high)))

    def row(self, column: Number | Category | Identifier) -> tuple[str, ...]:
        """Return the counts as cells of a table; empty where a count has no meaning."""
        number, category = isinstance(column, Number), isinstance(column, Category)
        counts = ((self.missing, True), (self.no_number, number), (self.outside, number), (self.unlisted, category))
        return (
            column.name,
            type(column).__name__.lower(),
            *(f"{count:,}" if applies else "" for count, applies in counts),
        )


def check_rows(file: Path, schema: Schema, batch_size: int | None = None) -> RowCheck:
    """Count the cells of a table that its schema does not expect. The result is for the owner of the rows alone.

    Args:
        file: The table.
        schema: Its schema.
        batch_size: The rows in a batch of a planned run: fewer rows than that are remarked on.

    Raises:
        InvalidInput: The file cannot be read.
    """
    source = Source.by(file, schema)
    cells = {column.name: (column, _Cells()) for column in schema.columns}
    rows = unreadable = 0
    for batch in source.batches(list(cells)):
        rows += len(batch)
        # In CSV no cell is null but those of records that cannot be read.
        unreadable += 0 if source.csv is None else batch[:, 0].null_count()
        for name, (column, counts) in cells.items():
            counts.add(batch[name], column, schema.missing)
    columns = ("column", "kind", "missing", "no number", "out of bounds", "not listed")
    remarks = _remarks(schema, read(file, schema), rows, batch_size)
    if unreadable:
        remark = f"{unreadable:,} of them cannot be read (quotes, number of cells): all their cells are missing."
        remarks.insert(1, remark)
    return RowCheck(columns, tuple(counts.row(column) for column, counts in cells.values()), tuple(remarks))


def _remarks(schema: Schema, table: Table, rows: int, batch_size: int | None) -> list[str]:
    usable = len(table)
    remarks = [f"{rows:,} rows, of which {usable:,} can be learned from."]
    if schema.rows is not None and schema.rows != usable:
        remarks.append(f"The schema says {schema.rows:,} rows; a public number need not be exact.")
    if batch_size is not None and usable < batch_size:
        remarks.append(f"Fewer rows than a batch of {batch_size:,}: a run would add far more noise than it learns.")
    if table.users is not None and table.user_keys is not None and usable:
        users, most = len(table.user_keys), int(np.bincount(table.users).max())
        remarks.append(f"{users:,} users, of whom one has {most:,} rows.")
        if schema.most_rows_per_user is None and most > 1:
            remarks.append("State most_rows_per_user: without it one user is protected as if of one row.")
    if table.y is not None and schema.classes:
        counts = np.bincount(table.y, minlength=len(schema.classes))
        present = [name for name, count in zip(schema.classes, counts, strict=True) if count]
        if len(present) == 1:
            remarks.append(f"All rows are of one class, {present[0]!r}.")
        absent = len(schema.classes) - len(present)
        if len(present) > 1 and absent:
            remarks.append(f"{absent} of {len(schema.classes)} classes have no rows.")
    return remarks
