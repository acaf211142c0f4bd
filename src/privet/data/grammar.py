"""Records by the grammar of CSV (RFC 4180), in which line ends inside quotes are text.

Only for files that a CSV writer wrote: here, two quotes in two malformed records can make one record of all that is
between them. A line that begins no record is a record by itself, so that most damage ends where it begins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privet.data.csv_lines import Block, Shape, is_text, outside, places_of

__all__ = ["by_grammar", "first_record"]

_QUOTE, _LINE = 34, 10


def by_grammar(text: bytes, shape: Shape, last: bool) -> tuple[Block, bytes]:
    """Return the complete records of a text, and the rest, which is incomplete unless nothing follows (`last`)."""
    return _well_formed(text, shape) or _one_by_one(text, shape, last)


def first_record(text: bytes) -> bytes:
    """Return the text up to and including the first line end that is not in quotes."""
    letters = np.frombuffer(text, dtype=np.uint8)
    ends = outside(places_of(letters, _QUOTE), places_of(letters, _LINE))
    return text[: int(ends[0]) + 1] if len(ends) else text


def _well_formed(text: bytes, shape: Shape) -> tuple[Block, bytes] | None:
    """All whole records at once, if each of them can be read; else none."""
    letters = np.frombuffer(text, dtype=np.uint8)
    ends = outside(places_of(letters, _QUOTE), places_of(letters, _LINE))
    if not len(ends):
        return None
    cut = int(ends[-1]) + 1
    block = Block.of(text[:cut], shape, ends)
    return None if block.empty else (block, text[cut:])


def _one_by_one(text: bytes, shape: Shape, last: bool) -> tuple[Block, bytes]:
    """The records of a text in which some cannot be read."""
    grammar = _Grammar.of(shape.separator, shape.cells)
    found, place, rows = bytearray(shape.nothing), 0, 0
    empty: list[int] = []
    while place < len(text):
        match = grammar.record.match(text, place, place + shape.longest)
        if match is not None:
            end = match.end()
        else:
            end, left = text.find(b"\n", place) + 1, len(text) - place
            if not end and left >= shape.longest:  # enough of it is kept for it to stay too long
                return Block(bytes(found), rows, tuple(empty)), text[place : place + shape.longest]
            if not last and left < shape.longest and (not end or grammar.open.match(text, place)):
                break
        record = text[place:end]
        place = end
        if record in (b"\n", b"\r\n"):
            continue
        if match is None or not grammar.row.fullmatch(record) or b"\0" in record or not is_text(record):
            empty.append(rows)
            record = shape.nothing
        found += record
        rows += 1
    return Block(bytes(found), rows, tuple(empty)), text[place:]


@dataclass(frozen=True)
class _Grammar:
    """The records of CSV; every repetition is possessive, so that no text takes more than one look."""

    record: re.Pattern[bytes]
    row: re.Pattern[bytes]
    """A record with the right number of cells."""
    open: re.Pattern[bytes]
    """The beginning of a record that has not ended yet."""

    @staticmethod
    @lru_cache(maxsize=8)
    def of(separator: str, cells: int) -> _Grammar:
        between = re.escape(separator).encode()
        quoted, bare = rb'"(?:[^"]++|"")*+', rb'[^"\n' + between + rb"]*+"
        cell = rb"(?:" + quoted + rb'"|' + bare + rb")"
        more = rb"(?:" + between + cell + rb")"
        return _Grammar(
            re.compile(cell + more + rb"*+\r?\n"),
            re.compile(cell + more + rb"{%d}\r?\n" % (cells - 1)),
            re.compile(rb"(?:" + cell + between + rb")*+(?:" + quoted + rb'"?|' + bare + rb")\r?\Z"),
        )
