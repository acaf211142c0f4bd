"""What stands in the database, which need not be what was written there: a damaged file may hold anything anywhere.

SQLite keeps the type of a value beside the value, so that damage can make a number of a text, or nothing of either.
"""

from __future__ import annotations

from typing import Any

from privet.core import LedgerError
from privet.ledger import chain

__all__ = ["number", "row_of", "shown", "text"]

_MOST = (1 << 63) - 2
"""The greatest whole number that a database holds, less one, so that the next one can still be asked for."""
_NO_TEXT = "\udcff"
"""What stands for a text that is none: a byte that no text has, so that no hash of a row that was written covers it."""


def number(value: object, what: str) -> int:
    """Return `value` if it is an integer of at least 0; raise an error that names what is damaged otherwise."""
    if not isinstance(value, int) or not 0 <= value <= _MOST:
        raise LedgerError(f"{what} is damaged; run: privet ledger verify")
    return value


def text(value: object, what: str) -> str:
    """Return `value` if it is a valid text; raise an error that names what is damaged otherwise."""
    if not isinstance(value, str) or not _is_encodable(value):
        raise LedgerError(f"{what} is damaged; run: privet ledger verify")
    return value


def row_of(found: Any) -> chain.ChainRow:
    """Return a row of a chain. What is not of its type is kept as something that cannot have its hash."""
    seq = number(found.seq, "the number of a row of a chain")
    kind, entry, at, body = (
        value if isinstance(value, str) else _NO_TEXT for value in (found.kind, found.entry, found.at, found.body)
    )
    state, hash_ = (value if isinstance(value, bytes) else b"" for value in (found.state, found.hash))
    seal = found.seal if found.seal is None or isinstance(found.seal, bytes) else b""
    return chain.ChainRow(seq, kind, entry, at, body, state, hash_, seal)


def shown(value: object) -> str:
    """Return a name from the database for a message, with escapes if it has unprintable characters."""
    return value if isinstance(value, str) and value.isprintable() else ascii(value)


def _is_encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
