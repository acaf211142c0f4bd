"""Counting, for each bit of a row of words, in how many rows it is set."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput
from privet.mechanisms import Integers, Words

__all__ = ["bit_counts", "checked_words", "has_clear_padding", "set_bit", "words_for"]

_ROWS = 1 << 13


def words_for(lanes: int) -> int:
    """How many words hold that many bits."""
    return -(-lanes // 64)


def checked_words(reports: npt.ArrayLike, width: int) -> Words:
    """Return reports of `width` words each as an array, if that is what they are."""
    rows = np.asarray(reports)
    if rows.ndim != 2 or rows.shape[1] != width or rows.dtype != np.uint64:
        problem = f"are not rows of {width} words of the type numpy.uint64"
        raise InvalidInput("reports", problem, "pack the bits of a report into words")
    return rows


def set_bit(rows: Words, lane: Integers, on: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> None:
    """Write one bit of each row."""
    row, shift = np.arange(len(rows)), (lane & 63).astype(np.uint64)
    column = lane >> 6
    cleared = rows[row, column] & ~(np.uint64(1) << shift)
    rows[row, column] = cleared | (on.astype(np.uint64) << shift)


def has_clear_padding(rows: Words, lanes: int) -> bool:
    """Whether the bits after the last lane are all 0."""
    spare = 64 * rows.shape[1] - lanes
    return spare == 0 or not (rows[:, -1] >> np.uint64(64 - spare)).any()


def bit_counts(rows: Words, lanes: int) -> Integers:
    """The number of rows in which each of the first `lanes` bits is set.

    Rows are added bit by bit, three at a time, into a sum and a carry (a carry-save adder), so that a word costs five
    operations, whatever its number of bits.

    >>> bit_counts(np.array([[0b101], [0b100], [0b110]], dtype=np.uint64), 3).tolist()
    [1, 1, 3]
    """
    total = np.zeros(lanes, dtype=np.int64)
    for start in range(0, len(rows), _ROWS):
        level, weight = rows[start : start + _ROWS], 1
        while len(level):
            carries = []
            while len(level) >= 3:
                third = len(level) // 3
                first, second, other = level[:third], level[third : 2 * third], level[2 * third : 3 * third]
                half = first ^ second
                carries.append((first & second) | (other & half))
                level = np.concatenate([half ^ other, level[3 * third :]])
            total += weight * _unpacked(level)[:, :lanes].sum(axis=0, dtype=np.int64)
            level = np.concatenate(carries) if carries else level[:0]
            weight *= 2
    return total


def _unpacked(rows: Words) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.unpackbits(
        rows.astype("<u8", copy=False).view(np.uint8).reshape(len(rows), -1), axis=1, bitorder="little"
    )
