"""A file and a public schema make a table: batch by batch, so that only the compact rows are in memory."""

from __future__ import annotations

import hashlib
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from privet.data.columns import Category, Identifier, Number
from privet.data.schema import Schema
from privet.data.source import Source, codes_of, numbers_of, texts_of
from privet.data.table import Table, numbered

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read", "user_keys_of"]

_MOVED = 1 << 16


def read(path: str | PathLike[str], schema: Schema, *, labelled: bool = True, every_row: bool = False) -> Table:
    """Read the table in a CSV (also gzipped) or Parquet file.

    The file must have the columns of the schema and no others, in any order. Every row becomes numbers by the schema
    alone, and the content of one row neither changes another row nor raises an error: text in a number column is
    missing, a number outside the bounds is clamped or missing, a value that is not listed is `other`, and a line of CSV
    that is not a record by itself is a row of missing cells (unless cells hold line ends: see `schema.assumptions`).
    Rows without a target are excluded (unless the target's rule for missing values gives them one), and so are rows
    without a user, and rows beyond the first `most_rows_per_user` of a user.

    Args:
        path: The file.
        schema: The schema of the table.
        labelled: Whether to read the target and the user. If not, as for predictions, both may be absent from the file,
            and every row is included.
        every_row: Whether to include rows without a target; their class is `other`, their number NaN.

    Returns:
        The rows as numbers, with the schema.

    Raises:
        InvalidInput: The file cannot be read or is damaged, lacks a column of the schema, or has one that the schema
            lacks.
        MissingExtra: Polars is not installed.
    """
    source = Source.by(path, schema)
    _fits(source, schema, labelled)
    features, label = schema.features, schema.label if labelled else None
    user = schema.user if labelled else None
    names = [column.name for column in features]
    names += [name for name in (label.name if label else None, user) if name is not None]
    x = _Growing(np.zeros((0, len(features)), dtype=np.float32))
    y = _Growing(np.zeros(0, dtype=np.int64 if isinstance(label, Category) else np.float32))
    keys = _Growing(np.zeros(0, dtype=np.uint64))
    for batch in source.batches(names):
        kept = np.ones(len(batch), dtype=np.bool_)
        if label is not None:
            target = _values(batch[label.name], label, schema)
            if not every_row:
                kept &= target != label.other if isinstance(label, Category) else ~np.isnan(target)
        if user is not None:
            owners = user_keys_of(batch[user], schema.missing)
            kept &= owners[1]
        into = x.more(int(np.count_nonzero(kept)))
        for place, column in enumerate(features):
            into[:, place] = _values(batch[column.name], column, schema)[kept]
        if label is not None:
            y.more(len(into))[:] = target[kept]
        if user is not None:
            keys.more(len(into))[:] = owners[0][kept]
    if user is not None and schema.most_rows_per_user is not None:
        first = _first_of_each(keys.filled(), schema.most_rows_per_user)
        for grown in (x, y, keys):
            grown.keep(first)
    users, user_keys = numbered(keys.done()) if user is not None else (None, None)
    return Table(x.done(), y.done() if label is not None else None, schema, users, user_keys)


def _fits(source: Source, schema: Schema, labelled: bool) -> None:
    spare = set() if labelled else {schema.target, schema.user}
    wanted = [column.name for column in schema.columns if column.name not in spare]
    if not labelled:
        wanted = [name for name in wanted if not isinstance(schema.find(name), Identifier)]
    source.require(wanted, "in the schema")
    schema.require_described("file", source.header, f"{source.path.name!r} has")


def _values(cells: pl.Series, column: Number | Category, schema: Schema) -> npt.NDArray[Any]:
    if isinstance(column, Category):
        return codes_of(cells, column, schema.missing)
    return column.scaled(numbers_of(cells, schema.missing))


def user_keys_of(cells: pl.Series, missing: tuple[str, ...]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Return 64 bits of each user's id by BLAKE2b, and which rows have a user.

    Assumes that ids are not chosen by someone who computes 2^32 hashes to find two with the same key. Such ids count as
    one user with one limit: all of them together are bounded as one user is, and one that comes or goes can also make
    room for, or take the place of, as many rows of the others. The hash has no secret: keys must be the same in every
    file and run, for splits, shards and resumed runs.

    Args:
        cells: The column with the users' ids.
        missing: Texts that count as missing.
    """
    texts = texts_of(cells, missing)
    known = texts.is_not_null().to_numpy()
    digests = b"".join(
        hashlib.blake2b((text or "").encode(), digest_size=8, person=b"privet user").digest() for text in texts
    )
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64), known


def _first_of_each(keys: npt.NDArray[np.uint64], most: int) -> npt.NDArray[np.bool_]:
    """The first `most` rows of each user. Which these are depends on the user's own rows alone."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(keys) else np.zeros(0, int)
    rank = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))
    kept = np.zeros(len(keys), dtype=np.bool_)
    kept[order[rank < most]] = True
    return kept


class _Growing:
    """An array that grows in place: the allocator moves its pages, so that no second copy is in memory."""

    def __init__(self, start: npt.NDArray[Any]) -> None:
        self._array, self._length = start.copy(), 0

    def more(self, rows: int) -> npt.NDArray[Any]:
        """Return a view of the next rows, to be written."""
        end = self._length + rows
        if end > len(self._array):
            self._resize(end + end // 8)
        self._length = end
        return self._array[end - rows : end]

    def filled(self) -> npt.NDArray[Any]:
        """Return the rows written so far."""
        return self._array[: self._length]

    def keep(self, kept: npt.NDArray[np.bool_]) -> None:
        """Keep only these rows; moves them forward a piece at a time."""
        if self._length == 0:
            return
        to = 0
        for start in range(0, self._length, _MOVED):
            piece = self._array[start : start + _MOVED][: self._length - start][kept[start : start + _MOVED]]
            self._array[to : to + len(piece)] = piece
            to += len(piece)
        self._length = to

    def done(self) -> npt.NDArray[Any]:
        """Return the array, trimmed to the rows written."""
        self._resize(self._length)
        return self._array

    def _resize(self, rows: int) -> None:
        # No view of it is in use: callers write into `more` before they ask again.
        self._array.resize((rows, *self._array.shape[1:]), refcheck=False)
