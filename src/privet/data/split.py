"""Holding rows out by a keyed hash of what is in them: a row that comes or goes moves no other."""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from privet.core import checked
from privet.core.errors import InvalidInput
from privet.data.table import Images, Table

__all__ = ["hashes", "held_out", "hold_out"]

D = TypeVar("D", Table, Images)
_AT_ONCE = 1 << 14


def hold_out(data: D, share: float, *, key: str = "privet") -> tuple[D, D]:
    """About (1 - share) of the rows to learn from, and the others.

    Public numbers of rows are split in proportion, never counted.
    """
    held = held_out(data, share, key=key)
    rows = data.schema.rows if isinstance(data, Table) else data.rows
    less, more = (None, None) if rows is None else (max(round(rows * (1 - share)), 1), max(round(rows * share), 1))
    return data.take(~held, less), data.take(held, more)


def held_out(data: Table | Images, share: float, *, key: str = "privet") -> npt.NDArray[np.bool_]:
    """Which rows are held out: about `share` of them, by what is in the row, or by whose it is, and by the key.

    All rows of one user are on one side, and so are rows that are the same.
    """
    if not 0 < checked.finite("share", share) < 1:
        raise InvalidInput("share", f"is {share:g}", "hold out a part between 0 and 1, such as 0.2")
    edge = np.uint64(int(share * 2.0**64))
    if isinstance(data, Table) and data.users is not None and data.user_keys is not None:
        each = hashes([data.user_keys], key) < edge
        return each[data.users]
    parts: list[npt.NDArray[Any]] = [data.x] if data.y is None else [data.x, data.y]
    return hashes(parts, key) < edge


def hashes(parts: list[npt.NDArray[Any]], key: str) -> npt.NDArray[np.uint64]:
    """64 bits for each row, from the bytes of that row in all parts.

    Each word of 64 bits is mixed with a secret of its own place and added up, and the sum mixed again (Steele, Lea &
    Flood 2014, for the mixing). It spreads rows evenly; it hides nothing.
    """
    rows = len(parts[0])
    found = np.empty(rows, dtype=np.uint64)
    for start in range(0, rows, _AT_ONCE):
        stretch = [np.ascontiguousarray(part[start : start + _AT_ONCE]) for part in parts]
        size = len(stretch[0])
        letters = np.concatenate([part.view(np.uint8).reshape(size, -1) for part in stretch], axis=1)
        words = np.pad(letters, ((0, 0), (0, -letters.shape[1] % 8))).view("<u8").astype(np.uint64)
        total = np.zeros(size, dtype=np.uint64)
        for place, secret in enumerate(_secrets(key, words.shape[1])):
            total += _mixed(words[:, place] ^ secret)
        found[start : start + size] = _mixed(total)
    return found


def _secrets(key: str, count: int) -> npt.NDArray[np.uint64]:
    drawn = hashlib.shake_256(b"privet split\0" + key.encode()).digest(8 * count)
    return np.frombuffer(drawn, dtype="<u8").astype(np.uint64)


def _mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
