"""Open a ledger by its location: a server that does not answer is named in one line, without a password."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from privet.core import LedgerError

if TYPE_CHECKING:
    import sqlalchemy as sa

    from privet.ledger.ledger import Ledger

__all__ = ["opened"]

_SECRET = re.compile(r"(password=)[^&;\s]*", re.IGNORECASE)
_REASONS = (
    ("refused", "the connection was refused"),
    ("resolve host", "no such host is known"),
    ("timeout", "it took too long"),
    ("timed out", "it took too long"),
    ("no such file", "there is no such socket"),
    ("unreachable", "the network cannot be reached"),
    ("no route", "the network cannot be reached"),
)
_UNREACHED = re.compile(r"connection (failed|is bad|timeout)|could not connect|failed to resolve", re.IGNORECASE)


@contextmanager
def opened(where: str, key_file: Path | None, wait: float) -> Iterator[Ledger]:
    """Open a ledger by its file or URL; errors of a connection are explained in plain words, without secrets."""
    from privet.ledger.ledger import Ledger

    ledger = Ledger(where, key=key_file, timeout=wait)
    try:
        with ledger as book:
            yield book
    except LedgerError as error:
        url = _server(where)
        if url is None:
            raise
        raise LedgerError(_explained(error, url)) from error


def _server(where: str) -> sa.URL | None:
    """The URL, if it is that of a server; the ledger has read it before and found nothing wrong."""
    if "://" not in where:
        return None
    import sqlalchemy as sa

    url = sa.make_url(where)
    return None if url.get_backend_name() == "sqlite" else url


def _explained(error: LedgerError, url: sa.URL) -> str:
    import sqlalchemy as sa

    cause = error.__cause__
    said = (
        " ".join(str(getattr(cause, "orig", None) or "").split()) if isinstance(cause, sa.exc.SQLAlchemyError) else ""
    )
    at = _address(url)
    if "FATAL:" in said:
        refusal = _hidden(said.rpartition("FATAL:")[2].strip().rstrip("."))
        return f"the PostgreSQL server at {at} refuses: {refusal}; check the user, password and database in --ledger"
    if _UNREACHED.search(said):
        reason = next((words for sign, words in _REASONS if sign in said.lower()), "the connection failed")
        return f"no PostgreSQL server answers at {at}: {reason}; is it running? check the host and port in --ledger"
    return _hidden(str(error))


def _address(url: sa.URL) -> str:
    """Host and port, and nothing else of the URL."""
    host, port = url.host or url.query.get("host"), url.port or url.query.get("port") or 5432
    return f"{host or 'the local socket'}, port {port}"


def _hidden(text: str) -> str:
    return _SECRET.sub(r"\1***", text)
