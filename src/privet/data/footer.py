"""The footer of a Parquet file: its columns and its number of rows.

Own code, as Polars has no call for the number of rows that does not set up a whole query, which would be most of what a
bare count costs. What is not plainly understood here is left to Polars.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import SEEK_END
from pathlib import Path

__all__ = ["Footer", "footer_of"]

_MARK = b"PAR1"
_MOST = 1 << 16
"""Bytes of the footer that are looked at: enough for the schema of a thousand columns, which comes first."""
_MOST_ROWS = 1 << 32
_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
_SCHEMA, _ROWS = 2, 3
"""Fields of FileMetaData."""
_NAME, _CHILDREN = 4, 5
"""Fields of SchemaElement."""


@dataclass(frozen=True)
class Footer:
    """The columns of a table without nested ones, and its rows; the number of rows is private."""

    columns: tuple[str, ...]
    rows: int

    def __repr__(self) -> str:
        return f"Footer({self.columns!r})"


def footer_of(path: Path) -> Footer | None:
    """Return the columns and rows that the footer of a Parquet file states; None if it is not that of a flat table.

    Args:
        path: The file.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(-8, SEEK_END) + 8
            tail = file.read(8)
            length = int.from_bytes(tail[:4], "little")
            if tail[4:] != _MARK or length + 12 > size:
                return None
            file.seek(-8 - length, SEEK_END)
            return _Compact(file.read(min(length, _MOST))).footer()
    except (OSError, IndexError, ValueError, RecursionError):
        return None


class _Compact:
    """Thrift's compact protocol, as far as the first fields of the footer need it."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def footer(self) -> Footer | None:
        """Return the columns and the rows; a footer that ends too early raises IndexError."""
        columns, field, kind = None, 0, self.byte()
        while kind != _STOP:
            field, kind = self.field(field, kind)
            if field == _SCHEMA and kind == _LIST:
                columns = self.columns()
                if columns is None:
                    return None
            elif field == _ROWS and kind == _I64:
                rows = self.number()
                return Footer(columns, rows) if columns is not None and 0 <= rows < _MOST_ROWS else None
            else:
                self.skip(kind)
            kind = self.byte()
        return None

    def columns(self) -> tuple[str, ...] | None:
        """The names below the root; None where one of them has parts of its own."""
        size, kind = self.sized()
        if kind != _STRUCT or not size:
            return None
        elements = [self.element() for _ in range(size)]
        nested = any(children for _, children in elements[1:])
        return None if nested or elements[0][1] != size - 1 else tuple(name for name, _ in elements[1:])

    def element(self) -> tuple[str, int]:
        """A name, and how many parts it has."""
        name, children, field, kind = "", 0, 0, self.byte()
        while kind != _STOP:
            field, kind = self.field(field, kind)
            if field == _NAME and kind == _BINARY:
                name = self.text().decode("utf-8")
            elif field == _CHILDREN and kind == _I32:
                children = self.number()
            else:
                self.skip(kind)
            kind = self.byte()
        return name, children

    def field(self, before: int, head: int) -> tuple[int, int]:
        """Which field a head announces, and of which kind."""
        ahead = head >> 4
        return before + ahead if ahead else self.number(), head & 15

    def skip(self, kind: int) -> None:
        """Go past a value."""
        if kind in (_TRUE, _FALSE):
            return
        if kind == _BYTE:
            self.at += 1
        elif kind in (_I16, _I32, _I64):
            self.varint()
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            self.text()
        elif kind == _STRUCT:
            head = self.byte()
            while head != _STOP:
                self.skip(self.field(0, head)[1])
                head = self.byte()
        else:
            raise ValueError(f"kind {kind} is not in these fields of a footer")

    def sized(self) -> tuple[int, int]:
        """How many values a list has, and of which kind."""
        head = self.byte()
        return (self.varint() if head >> 4 == 15 else head >> 4), head & 15

    def text(self) -> bytes:
        """Bytes after their length."""
        length = self.varint()
        start, self.at = self.at, self.at + length
        if self.at > len(self.data):
            raise IndexError("the text ends after the footer")
        return self.data[start : self.at]

    def number(self) -> int:
        """A whole number with a sign."""
        found = self.varint()
        return (found >> 1) ^ -(found & 1)

    def varint(self) -> int:
        """Seven bits a byte, the lowest first."""
        found = shift = 0
        while True:
            byte = self.byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7

    def byte(self) -> int:
        """The next one."""
        found = self.data[self.at]
        self.at += 1
        return found
