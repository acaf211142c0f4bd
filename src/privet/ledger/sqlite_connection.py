"""SQLite connections that wait for a lock in short turns, so that an interrupt is heard while they wait."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

__all__ = ["DAMAGED", "connect"]

DAMAGED = "database disk image is malformed"
"""SQLite's own words for a damaged file."""
_TURN = 0.2
"""How long SQLite itself waits, in seconds: Python hears of an interrupt only between two of its calls."""
_PAUSE = 0.005
"""Between two turns, in seconds: some locks are refused without a wait."""
_Result = TypeVar("_Result")


class _Cursor(sqlite3.Cursor):
    """A statement that finds the file locked has done nothing and may be tried again."""

    def execute(self, sql: str, parameters: Any = (), /) -> _Cursor:
        run = super().execute
        _patiently(self.connection, lambda: run(sql, parameters))
        return self


class _Connection(sqlite3.Connection):
    """Waits for `patience` seconds at each lock."""

    patience: float = 0.0

    def cursor(self, factory: Any = _Cursor) -> Any:
        return super().cursor(factory)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return _Cursor(self).execute(sql, parameters)

    def commit(self) -> None:
        # A commit that finds readers leaves its transaction open, to be committed again (sqlite.org/lang_transaction).
        _patiently(self, super().commit)


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """Return a connection to an existing file; a transaction starts only by an explicit statement."""
    # mode=rw: a file that is gone is an error, and never a new, empty budget.
    address, turn = f"file:{quote(str(path))}?mode=rw", min(_TURN, timeout)
    made = sqlite3.connect(address, uri=True, timeout=turn, isolation_level=None, factory=_Connection)
    made.patience = timeout
    # Bytes that are no text, in a damaged file, are escaped and kept: what was written had none, so that no hash fits.
    made.text_factory = _text
    return made


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _patiently(connection: sqlite3.Connection, action: Callable[[], _Result]) -> _Result:
    end = time.monotonic() + getattr(connection, "patience", 0.0)
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            # Extended codes (a snapshot or recovery in the way) have the plain one in their low byte.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                raise
        except UnicodeDecodeError:
            # The driver's own: a message of SQLite's about a damaged file that quotes a name which is no text.
            raise sqlite3.DatabaseError(DAMAGED) from None
        time.sleep(_PAUSE)
