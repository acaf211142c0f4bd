"""Records that are lines, whatever is in them: where each ends, and which can be read.

A record that cannot be read (by its quotes, the number of its cells, its letters or its length) is still a record, with
nothing in it: whether there is such a record depends on a row, and must not be told.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Block", "Shape", "by_line", "is_text", "outside", "places_of"]

_TRIED = 1 << 16
"""Bytes that are decoded at once, where some are no letters."""
_QUOTE, _LINE, _RETURN = 34, 10, 13

_Places = npt.NDArray[np.int64]
_Letters = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Shape:
    """What a record looks like."""

    separator: str
    cells: int
    longest: int
    """Bytes in a record, with its end; what is longer cannot be read."""

    @property
    def nothing(self) -> bytes:
        """A record of empty cells."""
        return b'""' + self.separator.encode() * (self.cells - 1) + b"\n"


@dataclass(frozen=True)
class Block:
    """Some records, each with a line end."""

    text: bytes
    """One record of empty cells, which does not count, and then the records. A parser may treat the beginning of a text
    in its own way (it leaves out a mark of the byte order), and which record comes first depends on other ones."""
    rows: int
    empty: tuple[int, ...] = ()
    """Which of them could not be read; they stand here as records of empty cells."""

    @staticmethod
    def of(text: bytes, shape: Shape, ends: _Places) -> Block:
        """Return the records that end at these places, the last of which is the last of the text.

        What a record becomes depends on its own bytes. Blank lines are left out: an empty line is nobody's row.
        """
        letters, view = np.frombuffer(text, dtype=np.uint8), memoryview(text)
        starts = np.concatenate([[0], ends + 1])[: len(ends)]
        blank = (ends == starts) | ((ends == starts + 1) & (letters[starts] == _RETURN))
        bad = _unread(text, shape, starts, ends) & ~blank
        parts: list[bytes | memoryview] = [shape.nothing]
        copied = 0
        for place in np.flatnonzero(blank | bad).tolist():  # the others take no time
            parts.append(view[copied : starts[place]])
            if bad[place]:
                parts.append(shape.nothing)
            copied = int(ends[place]) + 1
        parts.append(view[copied:])
        empty = np.flatnonzero(bad[~blank])
        return Block(b"".join(parts), len(ends) - int(np.count_nonzero(blank)), tuple(empty.tolist()))


def by_line(text: bytes, shape: Shape) -> tuple[Block, bytes]:
    """Return every line of a text as a record, and what is left after the last line end.

    Which lines there are depends on the line ends alone: one line more is one row more, and changes no other.
    """
    cut = text.rfind(b"\n") + 1
    lines = text[:cut]
    ends = places_of(np.frombuffer(lines, dtype=np.uint8), _LINE)
    # Of a line that is too long, as much is kept as makes it so.
    return Block.of(lines, shape, ends), text[cut : cut + shape.longest]


def places_of(letters: _Letters, letter: int) -> _Places:
    """Return the positions of a byte."""
    return np.flatnonzero(letters == letter)


def outside(quotes: _Places, places: _Places) -> _Places:
    """Return the positions that have an even number of quotes before them."""
    return places if not len(quotes) else places[np.searchsorted(quotes, places) % 2 == 0]


def is_text(text: bytes) -> bool:
    """Return whether these bytes are UTF-8."""
    if text.isascii():
        return True
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _unread(text: bytes, shape: Shape, starts: _Places, ends: _Places) -> npt.NDArray[np.bool_]:
    """Which records cannot be read, each judged by itself."""
    letters = np.frombuffer(text, dtype=np.uint8)
    bad = ends - starts >= shape.longest
    between = places_of(letters, ord(shape.separator))
    if b'"' in text:
        quotes = places_of(letters, _QUOTE)
        each = np.diff(np.searchsorted(quotes, ends), prepend=0)
        odd = each % 2 == 1
        if odd.any():  # they are judged by that; without their quotes, all others begin after an even number
            bad |= odd
            quotes = quotes[np.repeat(~odd, each)]
        bad[np.searchsorted(ends, _misplaced(letters, quotes, ord(shape.separator)))] = True
        between = outside(quotes, between)
    bad |= np.diff(np.searchsorted(between, ends), prepend=0) != shape.cells - 1
    if b"\0" in text:
        bad[np.searchsorted(ends, places_of(letters, 0))] = True
    bad[_no_text(text, starts, ends)] = True
    return bad


def _misplaced(letters: _Letters, quotes: _Places, separator: int) -> _Places:
    """Quotes that neither begin nor end a cell, nor are one of two that stand for one (RFC 4180, §2.5 to 2.7)."""
    edge = np.zeros(256, dtype=np.bool_)
    edge[[_QUOTE, _LINE, separator]] = True
    opening, closing = quotes[0::2], quotes[1::2]
    begun = edge[letters[opening - 1]]  # before the first byte is the last one, a line end
    after = letters[closing + 1]
    ended = edge[after] | ((after == _RETURN) & (letters[np.minimum(closing + 2, len(letters) - 1)] == _LINE))
    return np.concatenate([opening[~begun], closing[~ended]])


def _no_text(text: bytes, starts: _Places, ends: _Places) -> list[int]:
    """Records that are not UTF-8. No letter of it has the byte of a line end inside, so that lines can be parted."""
    if is_text(text):
        return []
    found: list[int] = []
    view, record = memoryview(text), 0
    while record < len(ends):
        start = int(starts[record])
        last = max(int(np.searchsorted(ends, start + _TRIED)), record + 1)
        try:
            str(view[start : int(ends[last - 1]) + 1], "utf-8")
            record = last
        except UnicodeDecodeError as error:
            found.append(int(np.searchsorted(ends, start + error.start)))
            record = found[-1] + 1
    return found
