"""Assignment of records to teachers, by a keyed hash of the record's user or of its content, and of nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput, checked
from privet.data import Images, Table, hashes

__all__ = ["Ids", "Rows", "Shards", "require_disjoint", "shards"]

Ids: TypeAlias = npt.NDArray[Any]
"""For each row, the id of its user: a one-dimensional array of whole numbers or texts."""
Rows: TypeAlias = npt.NDArray[np.int64]
"""Indices of rows."""


@dataclass(frozen=True, eq=False)
class Shards:
    """A shard for each row; shards are disjoint, and a row's shard depends on that row (or its user) alone."""

    of: Rows = field(repr=False)
    """For each row the number of its shard. As private as the rows."""
    teachers: int

    def __post_init__(self) -> None:
        checked.count("teachers", self.teachers, least=2)
        inside = self.of.ndim == 1 and self.of.dtype == np.int64
        if not inside or (len(self.of) and not 0 <= self.of.min() <= self.of.max() < self.teachers):
            problem = f"is not one whole number from 0 to {self.teachers - 1} for each row"
            raise InvalidInput("of", problem, "let `shards` make it")

    @property
    def members(self) -> tuple[Rows, ...]:
        """The rows of each teacher, in their original order."""
        order = np.argsort(self.of, kind="stable")
        ends = np.cumsum(np.bincount(self.of, minlength=self.teachers))[:-1]
        return tuple(np.split(order, ends))


def shards(data: Table | Images | Ids, teachers: int, *, key: str = "privet") -> Shards:
    """Return a shard for each row of a table, of images, or of an array of ids.

    A table with users is divided by user, so that all of one person's rows are with one teacher; ids are, too.
    Otherwise a row is identified by its content, and equal rows are together. Adding or removing a record (or a user)
    therefore changes the rows of one teacher, and moves no other record: the vote of one teacher can change, and PATE's
    guarantee rests on that. Replacing a record can change two. The key is public; it is there so that experiments can
    be repeated with other shards, and must be chosen without looking at the rows.

    Some shards are larger than others, and small ones may be empty: sizes follow from the hash, and balancing them
    would let one record move others. If the public number of rows is below the number of teachers, the call is refused;
    a table or images without a public number are never refused, as that would reveal how many rows there are.

    Args:
        data: A table, images, or one id (a whole number or a text) for each row.
        teachers: The number of teachers, at least 2.
        key: A public key; another key gives other shards.

    Raises:
        InvalidInput: If `teachers` is below 2 or above the public number of rows, `key` is empty, or `data` is an array
            that does not hold ids.

    >>> found = shards(np.array(["ann", "bob", "ann"]), 2)
    >>> bool(found.of[0] == found.of[2])
    True
    """
    checked.count("teachers", teachers, least=2)
    checked.text("key", key)
    marks = _marks(data, key)
    rows = data.schema.rows if isinstance(data, Table) else data.rows if isinstance(data, Images) else len(marks)
    if rows is not None and rows < teachers:
        problem = f"is {teachers}, and there are {rows} rows"
        raise InvalidInput("teachers", problem, "a teacher needs rows of its own: take fewer teachers")
    # The upper 32 bits, spread over the teachers as evenly as 32 bits allow.
    return Shards((((marks >> np.uint64(32)) * np.uint64(teachers)) >> np.uint64(32)).astype(np.int64), teachers)


def require_disjoint(silos: Sequence[Table | Images | Ids]) -> None:
    """Refuse silos, each a teacher of its own, if two of them hold the same record or the same user.

    Only someone who holds all silos, or ids from each, can run this check: whether it raises depends on private rows.

    Args:
        silos: The data of each teacher: tables, images, or arrays of ids; at least two.

    Raises:
        InvalidInput: If there are fewer than two silos, an array does not hold ids, or two silos share a record or a
            user.
    """
    if len(silos) < 2:
        raise InvalidInput("silos", f"are {len(silos)}", "there are at least two teachers")
    found = [np.unique(_marks(silo, "apart")) for silo in silos]
    every = np.concatenate(found)
    if len(np.unique(every)) < len(every):
        problem = "share a record or a user, so that one person could change the votes of several teachers"
        raise InvalidInput("silos", problem, "keep each person's records in one silo")


def _marks(data: Table | Images | Ids, key: str) -> npt.NDArray[np.uint64]:
    """Return 64 bits for each row: a hash of its user if that is known, else of its content."""
    if isinstance(data, Table) and data.users is not None and data.user_keys is not None:
        return hashes([data.user_keys], key)[data.users]
    if isinstance(data, (Table, Images)):
        parts: list[npt.NDArray[Any]] = [_plain(data.x)]
        return hashes(parts if data.y is None else [*parts, _plain(data.y)], key)
    ids = np.asarray(data)
    if ids.ndim == 1 and ids.dtype.kind in "iu":
        return hashes([ids.astype(np.int64)], key)
    if ids.ndim == 1 and (ids.dtype.kind == "U" or all(isinstance(each, str) for each in ids)):
        # Hash each text by itself: an array would pad all of them to the longest, which is another person's.
        digests = [hashlib.blake2b(str(each).encode(), digest_size=8).digest() for each in ids]
        return hashes([np.frombuffer(b"".join(digests), dtype="<u8")], key)
    raise InvalidInput(
        "data", "is an array that is not of ids", "give a Table, Images, or one number or text for each row"
    )


def _plain(part: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return equal numbers as equal bytes: one zero, and one NaN."""
    if part.dtype.kind != "f":
        return part
    return np.where(np.isnan(part), np.array(np.nan, part.dtype), part + np.array(0, part.dtype))
