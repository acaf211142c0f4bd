"""Where the rows come from: a file or a frame, in pieces, with only the columns that are asked for."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl
from polars.datatypes import DataType

from privet.core import InvalidInput, Unit
from privet.data import Schema, Source, first_bytes, footer_of, user_keys_of
from privet.ledger import Fingerprint, fingerprint_of
from privet.mechanisms import Limiter

__all__ = ["Data", "TableSource", "UserBatch"]

Data: TypeAlias = str | PathLike[str] | Source | pl.DataFrame
_SLICE = 100_000


@dataclass(frozen=True)
class TableSource:
    """A table, of which only the header and the types have been looked at."""

    table: Source | pl.DataFrame
    types: Mapping[str, DataType]
    lazy: pl.LazyFrame | None = None
    """The table to be evaluated where it is; None for CSV, which is read in blocks."""
    bare: bool = False
    """Whether nothing is asked but how many rows there are, which the end of the file says."""

    @staticmethod
    def of(data: Data, schema: Schema, names: Sequence[str]) -> TableSource:
        """Refuses a table without these columns, with others than the schema's, or with something in these that is
        neither a number nor a text."""
        if isinstance(data, pl.DataFrame):
            types: Mapping[str, DataType] = dict(data.schema)
            for name in names:
                if name not in types:
                    raise InvalidInput("data", f"have no column {name!r}, which is in the schema", "check the spelling")
            opened = TableSource(data, types, data.lazy())
        else:
            opened = _of_file(data, schema, names)
            if isinstance(opened.table, Source):
                opened.table.require(names, "in the schema")
        schema.require_described("data", opened.types, "have")
        for name in names:
            kind = opened.types[name]
            if not (kind.is_numeric() or kind in (pl.Boolean, pl.String, pl.Categorical, pl.Enum, pl.Null)):
                raise InvalidInput("data", f"have {kind} in {name!r}", "store it as a number or a text")
        return opened

    def pieces(self, names: Sequence[str]) -> Iterator[pl.LazyFrame]:
        """All rows, in pieces of any order: Polars streams each of them."""
        if self.lazy is not None:
            yield self.lazy
        elif isinstance(self.table, Source):
            for batch in self.table.batches(names or self.table.header[:1]):
                yield batch.lazy()

    def rows(self) -> int:
        """How many rows the file says that it has, at the time of asking."""
        footer = footer_of(self.table.path) if isinstance(self.table, Source) else None
        if footer is None:
            raise InvalidInput("data", f"{self.named} damaged, or no such table", "get them again, or repair them")
        return footer.rows

    def limited(
        self, names: Sequence[str], user: str, missing: tuple[str, ...], unit: Unit, rows: int
    ) -> Iterator[UserBatch]:
        """The first `rows` rows of each user, in the order of the table, with whose they are.

        Which rows these are depends on the user's own rows alone. Rows without a user are left out.
        """
        limiter = Limiter(unit, rows)
        columns = list(dict.fromkeys((*names, user)))
        for batch in self._in_order(columns):
            keys, known = user_keys_of(batch[user], missing)
            places = np.flatnonzero(known)
            places = places[limiter.keep(keys[places], len(places))]
            yield UserBatch(batch[places], keys[places].tolist())

    def _in_order(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        if isinstance(self.table, pl.DataFrame):
            yield from self.table.select(names).iter_slices(_SLICE)
        else:
            yield from self.table.batches(names)

    @property
    def named(self) -> str:
        """The table with its verb, for an error that begins with `data`."""
        return "are" if isinstance(self.table, pl.DataFrame) else f"{self.table.path.name!r} are"

    def stamp(self) -> tuple[int, ...]:
        """What changes when the file is written: which file it is, its size and its time. A frame does not change."""
        if isinstance(self.table, pl.DataFrame):
            return ()
        status = self.table.path.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns

    def fingerprint(self) -> Fingerprint:
        """Of the file's bytes, or of the frame's columns and rows."""
        if isinstance(self.table, pl.DataFrame):
            return fingerprint_of(_serialized(self.table))
        return fingerprint_of(self.table.path)


@dataclass(frozen=True)
class UserBatch:
    """Some rows, and a number for the user of each."""

    rows: pl.DataFrame
    users: list[int]


def _serialized(frame: pl.DataFrame) -> Iterator[bytes]:
    for piece in (frame.clear(), *frame.iter_slices(_SLICE)):
        written = io.BytesIO()
        piece.rechunk().write_ipc(written)
        yield written.getvalue()


def _of_file(data: str | PathLike[str] | Source, schema: Schema, names: Sequence[str]) -> TableSource:
    path = data.path if isinstance(data, Source) else Path(data)
    if first_bytes(path) != b"PAR1":
        source = data if isinstance(data, Source) else Source.by(path, schema)
        if source.csv is not None and source.csv.lines_in_cells != schema.lines_in_cells:
            problem = "is a source whose lines_in_cells is not the schema's"
            raise InvalidInput("data", problem, "use Source.by(path, schema)")
        return TableSource(source, {name: pl.String() for name in source.header})
    if not names and (footer := footer_of(path)) is not None:
        return TableSource(Source(path, footer.columns, None), dict.fromkeys(footer.columns, pl.Null()), bare=True)
    try:
        lazy = pl.scan_parquet(path, glob=False)
        types = dict(lazy.collect_schema())  # the footer is read once: a count is not worth much more than that
        return TableSource(Source(path, tuple(types), None), types, lazy)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        name = path.name
        raise InvalidInput("data", f"{name!r} is damaged, or no such table", "get it again, or repair it") from None
