"""A CSV file as blocks of whole records, checked for their structure: the same number of cells in each.

What is said of a damaged file tells nothing of what is written in it.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import numpy as np
import numpy.typing as npt

from privet.core.errors import InvalidInput
from privet.data.schema import SEPARATORS

__all__ = ["CsvFile", "first_bytes", "opened"]

_PIECE = 1 << 24
_LONGEST = 1 << 26
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
        start = start.removeprefix(_BOM)
        ends = _ends(start)[1]
        line = _text(start[: ends[0]] if len(ends) else start, path).rstrip("\r\n")
        chosen = separator or max(SEPARATORS, key=lambda each: (line.count(each), -SEPARATORS.index(each)))
        try:
            names = next(csv.reader([line], delimiter=chosen, strict=True), [])
        except csv.Error:
            raise _damaged(path, "its header is not closed") from None
        return CsvFile(path, chosen, tuple(name.strip() for name in names))

    def blocks(self) -> Iterator[tuple[bytes, int]]:
        """Whole records without the header, each with a line end, and how many they are."""
        first, rest = True, b""
        file = opened(self.path)
        with file:
            while piece := _read(file, _PIECE, self.path):
                rest += piece
                if len(rest) < _PIECE and len(piece) == _PIECE:
                    continue
                ends = _ends(rest)[1]
                cut = int(ends[-1]) + 1 if len(ends) else 0
                if not cut and len(rest) > _LONGEST:
                    raise _damaged(self.path, "a quote is never closed, or a line never ends")
                if cut:
                    yield from self._checked(rest[:cut], first)
                    first, rest = False, rest[cut:]
        if rest:
            rest += b"" if rest.endswith(b"\n") else b"\n"
            if rest.count(b'"') % 2:
                raise _damaged(self.path, "a quote is never closed")
            yield from self._checked(rest, first)

    def _checked(self, block: bytes, first: bool) -> Iterator[tuple[bytes, int]]:
        if first:
            block = block[int(_ends(block)[1][0]) + 1 :]
        _text(block, self.path)
        if b"\0" in block:
            raise _damaged(self.path, "it has bytes that no text has")
        letters, ends = _ends(block)
        starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)[: len(ends)]
        blank = (ends == starts) | ((ends == starts + 1) & (letters[np.minimum(starts, len(letters) - 1)] == _RETURN))
        if blank.any():
            keep = np.ones(len(letters), dtype=np.bool_)
            for start, end in zip(starts[blank], ends[blank], strict=True):
                keep[start : end + 1] = False
            block = letters[keep].tobytes()
            letters, ends = _ends(block)
            starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)[: len(ends)]
        if not len(ends):
            return
        if b'"' in block:
            self._well_quoted(letters)
        cells, rows = len(self.header) - 1, len(ends)
        between = _outside(letters, np.flatnonzero(letters == ord(self.separator)))
        if len(between) != cells * rows:
            raise self._ragged()
        if cells:
            lines = between.reshape(rows, cells)
            if (lines[:, 0] < starts).any() or (lines[:, -1] > ends).any():
                raise self._ragged()
        yield block, rows

    def _well_quoted(self, letters: npt.NDArray[np.uint8]) -> None:
        """Quotes stand around whole cells; so a record's meaning does not depend on the records around it."""
        quotes = np.flatnonzero(letters == _QUOTE)
        opening, closing = quotes[0::2], quotes[1::2]
        padded = np.concatenate([[_LINE], letters, [_LINE]]).astype(np.uint8)
        edges = [_QUOTE, _LINE, ord(self.separator)]
        if not (np.isin(padded[opening], edges).all() and np.isin(padded[closing + 2], [*edges, _RETURN]).all()):
            raise _damaged(self.path, "a quote stands inside a cell")

    def _ragged(self) -> InvalidInput:
        return _damaged(self.path, "not every record has as many cells as the header")


def _ends(block: bytes) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The bytes, and where records end: at line ends outside of quotes."""
    letters = np.frombuffer(block, dtype=np.uint8)
    return letters, _outside(letters, np.flatnonzero(letters == _LINE))


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


def _text(block: bytes, path: Path) -> str:
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError:
        raise _damaged(path, "it is not UTF-8 text") from None


def _damaged(path: Path, problem: str) -> InvalidInput:
    return InvalidInput("file", f"{path.name!r} is damaged, or no such table: {problem}", "get it again, or repair it")
