"""A CSV file as blocks of whole records, each with as many cells as the header.

A record is what the grammar of CSV says (RFC 4180): quotes stand around whole cells, and line ends inside of them count
as text. A line that begins no such record is a record by itself. So where one record ends never depends on what is
wrong inside another one. A record that cannot be read (by its quotes, the number of its cells, its letters or its
length) is still one record, with nothing in it: whether there is such a record depends on a row, and must not be told.
What is said of a damaged file tells nothing of what is written in it.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, cast

import numpy as np
import numpy.typing as npt

from privet.core.errors import InvalidInput
from privet.data.schema import SEPARATORS

__all__ = ["Block", "CsvFile", "first_bytes", "opened"]

_PIECE = 1 << 24
_LONGEST = 1 << 20
"""Bytes in a record; what is longer cannot be read."""
_HEADER = 1 << 20
_BOM = b"\xef\xbb\xbf"
_QUOTE, _LINE, _RETURN = 34, 10, 13


def first_bytes(path: Path) -> bytes:
    """The first bytes of a file, which say what kind of file it is."""
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InvalidInput("file", f"{str(path)!r} cannot be read: {reason}", "check the path") from None


def opened(path: Path) -> IO[bytes]:
    """A file, unpacked if its first bytes are gzip's."""
    packed = first_bytes(path)[:2] == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.GzipFile(path, "rb")) if packed else path.open("rb")


@dataclass(frozen=True)
class Block:
    """Some records, each with a line end."""

    text: bytes
    rows: int
    empty: tuple[int, ...] = ()
    """Which of them could not be read; they stand here as records of empty cells."""


@dataclass(frozen=True)
class CsvFile:
    """A CSV file whose first record is a header; the header is public, the rest is not."""

    path: Path
    separator: str
    header: tuple[str, ...]

    @staticmethod
    def of(path: Path, separator: str | None = None) -> CsvFile:
        """Reads the header; unless it is given, the separator is the one that the header has most of."""
        file = opened(path)
        with file:
            start = _read(file, _HEADER, path)
        if not start.removeprefix(_BOM).strip():
            raise InvalidInput("file", f"{path.name!r} is empty", "give a table with a header")
        line = _text(_header_of(start.removeprefix(_BOM)), path).rstrip("\r\n")
        chosen = separator or max(SEPARATORS, key=lambda each: (line.count(each), -SEPARATORS.index(each)))
        try:
            names = next(csv.reader([line], delimiter=chosen, strict=True), [])
        except csv.Error:
            raise _damaged(path, "its header is not closed") from None
        return CsvFile(path, chosen, tuple(name.strip() for name in names))

    def blocks(self) -> Iterator[Block]:
        """All records without the header, in their order."""
        rest, begun, last = b"", False, False
        file = opened(self.path)
        with file:
            while not last:
                piece = _read(file, _PIECE, self.path)
                rest, last = rest + piece, not piece
                if last and rest and not rest.endswith(b"\n"):
                    rest += b"\n"
                if not begun and (last or len(rest) >= _HEADER):
                    rest, begun = rest[len(_header_of(rest[:_HEADER])) :], True
                while begun and rest and (last or len(rest) >= _PIECE):
                    found, rest = self._well_formed(rest) or self._one_by_one(rest, last)
                    if found.rows:
                        yield found

    def _well_formed(self, text: bytes) -> tuple[Block, bytes] | None:
        """All whole records of a text, at once, if each of them can be read; else none."""
        ends = _ends(text)[1]
        if not len(ends):
            return None
        cut = int(ends[-1]) + 1
        block, rest = text[:cut], text[cut:]
        if b"\0" in block or not _is_text(block):
            return None
        letters, ends = _ends(block)
        starts = _starts(ends)
        blank = (ends == starts) | ((ends == starts + 1) & (letters[np.minimum(starts, len(letters) - 1)] == _RETURN))
        if blank.any():
            keep = np.ones(len(letters), dtype=np.bool_)
            for start, end in zip(starts[blank], ends[blank], strict=True):
                keep[start : end + 1] = False
            block = letters[keep].tobytes()
            letters, ends = _ends(block)
            starts = _starts(ends)
        if not len(ends):
            return Block(b"", 0), rest
        if b'"' in block and not self._well_quoted(letters):
            return None
        cells, rows = len(self.header) - 1, len(ends)
        between = _outside(letters, np.flatnonzero(letters == ord(self.separator)))
        if len(between) != cells * rows or int((ends - starts).max()) >= _LONGEST:
            return None
        if cells:
            lines = between.reshape(rows, cells)
            if (lines[:, 0] < starts).any() or (lines[:, -1] > ends).any():
                return None
        return Block(block, rows), rest

    def _well_quoted(self, letters: npt.NDArray[np.uint8]) -> bool:
        quotes = np.flatnonzero(letters == _QUOTE)
        opening, closing = quotes[0::2], quotes[1::2]
        padded = np.concatenate([[_LINE], letters, [_LINE, _LINE]]).astype(np.uint8)
        edges, after = [_QUOTE, _LINE, ord(self.separator)], padded[closing + 2]
        ended = (after != _RETURN) | (padded[closing + 3] == _LINE)
        return bool(np.isin(padded[opening], edges).all() and (np.isin(after, [*edges, _RETURN]) & ended).all())

    def _one_by_one(self, text: bytes, last: bool) -> tuple[Block, bytes]:
        """The records of a text in which some cannot be read, and what is left of it, as more must be known of it."""
        found, place, rows = bytearray(), 0, 0
        empty: list[int] = []
        nothing = b'""' + self.separator.encode() * (len(self.header) - 1) + b"\n"
        while place < len(text):
            match = self._grammar.record.match(text, place, place + _LONGEST)
            if match is not None:
                end = match.end()
            else:
                end, left = text.find(b"\n", place) + 1, len(text) - place
                if not end and left >= _LONGEST:  # enough of it is kept for it to stay too long
                    return Block(bytes(found), rows, tuple(empty)), text[place : place + _LONGEST]
                if not last and left < _LONGEST and (not end or self._grammar.open.match(text, place)):
                    break
            record = text[place:end]
            place = end
            if record in (b"\n", b"\r\n"):
                continue
            if match is None or not self._grammar.row.fullmatch(record) or b"\0" in record or not _is_text(record):
                empty.append(rows)
                record = nothing
            found += record
            rows += 1
        return Block(bytes(found), rows, tuple(empty)), text[place:]

    @cached_property
    def _grammar(self) -> _Grammar:
        return _Grammar.of(self.separator, len(self.header))


@dataclass(frozen=True)
class _Grammar:
    """The records of CSV; every repetition is possessive, so that no text takes more than one look."""

    record: re.Pattern[bytes]
    row: re.Pattern[bytes]
    """A record with the right number of cells."""
    open: re.Pattern[bytes]
    """The beginning of a record that has not ended yet."""

    @staticmethod
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


def _header_of(text: bytes) -> bytes:
    ends = _ends(text)[1]
    return text[: int(ends[0]) + 1] if len(ends) else text


def _ends(block: bytes) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The bytes, and where records end if all can be read: at line ends outside of quotes."""
    letters = np.frombuffer(block, dtype=np.uint8)
    return letters, _outside(letters, np.flatnonzero(letters == _LINE))


def _starts(ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)[: len(ends)]


def _outside(letters: npt.NDArray[np.uint8], places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Those places before which there is an even number of quotes."""
    quotes = np.flatnonzero(letters == _QUOTE)
    return places if not len(quotes) else places[np.searchsorted(quotes, places) % 2 == 0]


def _read(file: IO[bytes], size: int, path: Path) -> bytes:
    try:
        return file.read(size)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise _damaged(path, "its compressed data are cut off or changed") from None
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InvalidInput("file", f"{path.name!r} cannot be read: {reason}", "check the disk") from None


def _is_text(block: bytes) -> bool:
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _text(header: bytes, path: Path) -> str:
    try:
        return header.decode("utf-8")
    except UnicodeDecodeError:
        raise _damaged(path, "it is not UTF-8 text") from None


def _damaged(path: Path, problem: str) -> InvalidInput:
    return InvalidInput("file", f"{path.name!r} is damaged, or no such table: {problem}", "get it again, or repair it")
