"""A CSV file as blocks of whole records, each with as many cells as the header.

A record is a line, always: so what one record holds never changes where another ends. Only where a schema says that
cells hold line ends, the grammar of CSV is followed instead, and the file must be well-formed. What is said of a
damaged file tells nothing of what is written in it.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from privet.core import InvalidInput, reason_of
from privet.data.csv_lines import Block, Shape, by_line
from privet.data.grammar import by_grammar, first_record
from privet.data.schema import SEPARATORS

__all__ = ["CsvFile", "first_bytes", "opened"]

_PIECE = 1 << 24
_LONGEST = 1 << 20
"""Bytes in a record, with its end; what is longer cannot be read."""
_HEADER = 1 << 20
_BOM = b"\xef\xbb\xbf"


def first_bytes(path: Path) -> bytes:
    """Return the first four bytes of a file, which tell its format.

    Args:
        path: The file.

    Raises:
        InvalidInput: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError as error:
        raise InvalidInput("file", f"{str(path)!r} cannot be read: {reason_of(error)}", "check the path") from None


def opened(path: Path) -> IO[bytes]:
    """Open a file for reading, and decompress it if its first bytes are those of gzip.

    Args:
        path: The file.

    Raises:
        InvalidInput: The file cannot be read.
    """
    packed = first_bytes(path)[:2] == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.GzipFile(path, "rb")) if packed else path.open("rb")


@dataclass(frozen=True)
class CsvFile:
    """A CSV file whose first record is a header; the header is public, the rest is not."""

    path: Path
    separator: str
    header: tuple[str, ...]
    lines_in_cells: bool = False
    """Whether line ends in quotes are text: then one malformed record can change how others are read."""

    @staticmethod
    def of(path: Path, separator: str | None = None, lines_in_cells: bool = False) -> CsvFile:
        """Open a CSV file and read its header.

        Args:
            path: The file, plain or gzipped.
            separator: What separates cells; by default, the candidate that is most frequent in the header.
            lines_in_cells: Whether line ends in quoted cells are text; otherwise every line is a record.

        Raises:
            InvalidInput: The file cannot be read, is empty or damaged, or is not UTF-8 text.
        """
        file = opened(path)
        with file:
            start = _read(file, _HEADER, path)
        if not start.removeprefix(_BOM).strip():
            raise InvalidInput("file", f"{path.name!r} is empty", "give a table with a header")
        line = _text(_header_of(start.removeprefix(_BOM), lines_in_cells), path).rstrip("\r\n")
        chosen = separator or max(SEPARATORS, key=lambda each: (line.count(each), -SEPARATORS.index(each)))
        try:
            names = next(csv.reader([line], delimiter=chosen, strict=True), [])
        except csv.Error:
            raise _damaged(path, "a quote in its header is not closed, or its lines end in \\r alone") from None
        return CsvFile(path, chosen, tuple(name.strip() for name in names), lines_in_cells)

    def blocks(self) -> Iterator[Block]:
        """Yield all records without the header, in their order."""
        rest, begun, last = b"", False, False
        file = opened(self.path)
        with file:
            while not last:
                piece = _read(file, _PIECE, self.path)
                rest, last = rest + piece, not piece
                if last and rest and not rest.endswith(b"\n"):
                    rest += b"\n"
                if not begun and (last or len(rest) >= _HEADER):
                    rest, begun = rest[len(_header_of(rest[:_HEADER], self.lines_in_cells)) :], True
                while begun and rest:
                    found, rest = self._cut(rest, last)
                    if found.rows:
                        yield found
                    if not last:
                        break

    def _cut(self, text: bytes, last: bool) -> tuple[Block, bytes]:
        shape = Shape(self.separator, len(self.header), _LONGEST)
        return by_grammar(text, shape, last) if self.lines_in_cells else by_line(text, shape)


def _header_of(text: bytes, lines_in_cells: bool) -> bytes:
    return first_record(text) if lines_in_cells else text[: text.find(b"\n") + 1] or text


def _read(file: IO[bytes], size: int, path: Path) -> bytes:
    try:
        return file.read(size)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise _damaged(path, "its compressed data are cut off or changed") from None
    except OSError as error:
        raise InvalidInput("file", f"{path.name!r} cannot be read: {reason_of(error)}", "check the disk") from None


def _text(header: bytes, path: Path) -> str:
    try:
        return header.decode("utf-8")
    except UnicodeDecodeError:
        raise _damaged(path, "it is not UTF-8 text") from None


def _damaged(path: Path, problem: str) -> InvalidInput:
    return InvalidInput("file", f"{path.name!r} is damaged, or no such table: {problem}", "get it again, or repair it")
