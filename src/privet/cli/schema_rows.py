"""What the owner of a table may learn of its rows before a run: which cells a schema does not expect."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privet.data import Category, Identifier, Number, Schema, Source, Table, read
from privet.data.source import numbers_of, texts_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Seen", "look"]


@dataclass(frozen=True)
class Seen:
    """Counts of cells and of rows. Internal: they touch private rows, and were not paid for."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = field(repr=False)
    remarks: tuple[str, ...] = field(repr=False)


@dataclass
class _Cells:
    """What was seen of one column."""

    missing: int = 0
    no_number: int = 0
    outside: int = 0
    unseen: int = 0

    def look(self, cells: pl.Series, column: Number | Category | Identifier, missing: tuple[str, ...]) -> None:
        texts = texts_of(cells, missing)
        self.missing += texts.null_count()
        if isinstance(column, Category):
            self.unseen += len(texts) - texts.null_count() - int(texts.is_in(list(column.values)).sum())
        elif isinstance(column, Number):
            numbers = numbers_of(cells, missing)
            unknown = np.isnan(numbers)
            self.no_number += int(np.count_nonzero(unknown & texts.is_not_null().to_numpy()))
            self.outside += int(np.count_nonzero((numbers < column.low) | (numbers > column.high)))

    def shown(self, column: Number | Category | Identifier) -> tuple[str, ...]:
        """As cells of a table; empty where a count has no meaning."""
        number, category = isinstance(column, Number), isinstance(column, Category)
        counts = ((self.missing, True), (self.no_number, number), (self.outside, number), (self.unseen, category))
        return column.name, type(column).__name__.lower(), *(f"{count:,}" if told else "" for count, told in counts)


def look(file: Path, schema: Schema, batch_size: int | None = None) -> Seen:
    """Go through all rows, and read them as a run would."""
    source = Source.by(file, schema)
    seen = {column.name: (column, _Cells()) for column in schema.columns}
    rows = unread = 0
    for batch in source.batches(list(seen)):
        rows += len(batch)
        # In CSV no cell is null but those of records that cannot be read.
        unread += 0 if source.csv is None else batch[:, 0].null_count()
        for name, (column, cells) in seen.items():
            cells.look(batch[name], column, schema.missing)
    head = ("column", "kind", "missing", "no number", "out of bounds", "not listed")
    counted = tuple(cells.shown(column) for column, cells in seen.values())
    remarks = _remarks(schema, read(file, schema), rows, batch_size)
    if unread:
        remarks.insert(1, f"{unread:,} of them cannot be read (quotes, number of cells): all their cells are missing.")
    return Seen(head, counted, tuple(remarks))


def _remarks(schema: Schema, table: Table, rows: int, batch_size: int | None) -> list[str]:
    kept = len(table)
    found = [f"{rows:,} rows, of which {kept:,} can be learned from."]
    if schema.rows is not None and schema.rows != kept:
        found.append(f"The schema says {schema.rows:,} rows; a public number need not be exact.")
    if batch_size is not None and kept < batch_size:
        found.append(f"Fewer rows than a batch of {batch_size:,}: a run would add far more noise than it learns.")
    if table.users is not None and table.user_keys is not None and kept:
        users, most = len(table.user_keys), int(np.bincount(table.users).max())
        found.append(f"{users:,} users, of whom one has {most:,} rows.")
        if schema.most_rows_per_user is None and most > 1:
            found.append("State most_rows_per_user: without it one user is protected as if of one row.")
    if table.y is not None and schema.classes:
        counts = np.bincount(table.y, minlength=len(schema.classes))
        there = [name for name, count in zip(schema.classes, counts, strict=True) if count]
        if len(there) == 1:
            found.append(f"All rows are of one class, {there[0]!r}.")
        absent = len(schema.classes) - len(there)
        if len(there) > 1 and absent:
            found.append(f"{absent} of {len(schema.classes)} classes have no rows.")
    return found
