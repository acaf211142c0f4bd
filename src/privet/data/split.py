"""Hold rows out by a keyed hash of their content: adding or removing one row changes one side, by that row."""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput, checked
from privet.data.table import Images, Table

__all__ = ["SPLIT_VERSION", "hashes", "held_out", "hold_out"]

SPLIT_VERSION = 2
"""The version of `held_out`, which an interrupted run records: 1 kept all copies of a row on one side."""

D = TypeVar("D", Table, Images)
_AT_ONCE = 1 << 14
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""The increment of SplitMix64 (Steele, Lea & Flood 2014), which makes a stream of coins from one hash."""


def hold_out(data: D, share: float, *, key: str = "privet") -> tuple[D, D]:
    """Split data into rows to learn from and held-out rows, by `held_out`.

    A public number of rows is split in proportion; rows are never counted.

    Args:
        data: The rows.
        share: The share to hold out, between 0 and 1.
        key: The key of the hash; another key gives another split.

    Returns:
        About (1 - share) of the rows to learn from, and the others.

    Raises:
        InvalidInput: The share is not between 0 and 1.
    """
    held = held_out(data, share, key=key)
    rows = data.schema.rows if isinstance(data, Table) else data.rows
    less, more = (None, None) if rows is None else (max(round(rows * (1 - share)), 1), max(round(rows * share), 1))
    return data.take(~held, less), data.take(held, more)


def held_out(data: Table | Images, share: float, *, key: str = "privet") -> npt.NDArray[np.bool_]:
    """Return which rows are held out: about `share` of them, by a keyed hash.

    All rows of one user are on one side, by the hash of the user's id. Without users, the hash is that of (content, k),
    where k = 0, 1, 2, … numbers the copies of a row as they come: each row is held out by a coin of its own, so that
    the held-out rows are a sample also of a table whose rows repeat. The coins are those of a fixed public hash: a
    statement about the sample that holds in 95 % of cases counts the choice of the hash among them.

    One row more or less changes one side by that row, as multisets. Proof: let c be a content with m copies. They have
    the numbers 0, …, m - 1 whatever their places are, so that the number of copies on a side is that of the k < m for
    which the hash of (c, k) is on this side. One copy more, wherever it stands, adds the number m and nothing else: it
    adds one copy of c to the side of (c, m), and copies are identical. Other contents keep their numbers. Removal is
    the same backward. Rows are copies if all their bytes are the same, which is checked: equal hashes do not suffice.
    Which of several copies is on a side depends on their places, so that the order of a side may change; a guarantee
    that takes data as multisets does not depend on it.

    Args:
        data: The rows.
        share: The share to hold out, between 0 and 1.
        key: The key of the hash; another key gives another split.

    Returns:
        A mask with one entry per row, True where the row is held out.

    Raises:
        InvalidInput: The share is not between 0 and 1.
    """
    if not 0 < checked.finite("share", share) < 1:
        raise InvalidInput("share", f"is {share:g}", "hold out a part between 0 and 1, such as 0.2")
    edge = np.uint64(int(share * 2.0**64))
    if isinstance(data, Table) and data.users is not None and data.user_keys is not None:
        each = hashes([data.user_keys], key) < edge
        return each[data.users]
    parts: list[npt.NDArray[Any]] = [data.x] if data.y is None else [data.x, data.y]
    content = hashes(parts, key)
    copies = _copy_numbers(content, parts)
    coins = np.where(copies == 0, content, _mixed(content + copies * _GOLDEN))
    return np.asarray(coins < edge)


def _copy_numbers(content: npt.NDArray[np.uint64], parts: list[npt.NDArray[Any]]) -> npt.NDArray[np.uint64]:
    """Number the copies of each row 0, 1, 2, … in the order in which they come; `content` has the rows' hashes."""
    numbers, first = _numbered(content)
    differs = np.zeros(len(content), dtype=np.bool_)
    repeats = np.flatnonzero(numbers)
    for start in range(0, len(repeats), _AT_ONCE):
        some = repeats[start : start + _AT_ONCE]
        differs[some] = (_letters(parts, some) != _letters(parts, first[some])).any(axis=1)
    if differs.any():
        # The hash is no cryptographic one: rows can be made that share it and differ. They are told apart by bytes.
        some = np.flatnonzero(np.isin(content, content[differs]))
        numbers[some] = _numbered(np.unique(_letters(parts, some), axis=0, return_inverse=True)[1].reshape(-1))[0]
    return numbers


def _numbered(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """For each place, how often its value came before, and the first place of that value."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(values)])
    sizes = np.diff(np.append(starts, len(values)))
    numbers, first = np.empty(len(values), dtype=np.uint64), np.empty(len(values), dtype=np.int64)
    numbers[order] = np.arange(len(values)) - np.repeat(starts, sizes)
    first[order] = np.repeat(order[starts], sizes)
    return numbers, first


def _letters(parts: list[npt.NDArray[Any]], rows: npt.NDArray[np.int64] | slice) -> npt.NDArray[np.uint8]:
    """The bytes of some rows in all parts, a line for each row."""
    stretch = [np.ascontiguousarray(part[rows]) for part in parts]
    size = len(stretch[0])
    return np.concatenate([part.view(np.uint8).reshape(size, -1) for part in stretch], axis=1)


def hashes(parts: list[npt.NDArray[Any]], key: str) -> npt.NDArray[np.uint64]:
    """Return 64 bits for each row, from the bytes of that row in all parts.

    Each word of 64 bits is mixed with a secret of its own place and added up, and the sum mixed again (Steele, Lea &
    Flood 2014, for the mixing). It spreads rows evenly; it hides nothing.
    """
    rows = len(parts[0])
    found = np.empty(rows, dtype=np.uint64)
    for start in range(0, rows, _AT_ONCE):
        letters = _letters(parts, slice(start, start + _AT_ONCE))
        size = len(letters)
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
