"""A ledger on a server that cannot be reached: one line with what to check, and never a password."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Run
from tests.cli.test_errors import refused


@pytest.fixture
def silent() -> Iterator[int]:
    """A port of this machine at which nothing listens, and which nobody else can take meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


@pytest.mark.parametrize("rest", ["db", "db?password=secret"])
@pytest.mark.parametrize("words", ["ledger list", "ledger create clinic --epsilon 1 --delta 1e-6"])
def test_nothing_listens(privet: Run, silent: int, words: str, rest: str) -> None:
    """Fails when the line does not say where it was looked for and what to check, or shows a password."""
    line = refused(privet(words, f"--ledger postgresql://ada:secret@127.0.0.1:{silent}/{rest}"))
    assert f"no PostgreSQL server answers at 127.0.0.1, port {silent}: the connection was refused" in line
    assert "is it running? check the host and port in --ledger" in line
    assert "secret" not in line


PLACES = {
    "postgresql://ada:secret@no-such-host.invalid/db": "at no-such-host.invalid, port 5432: no such host is known",
    "postgresql://ada:secret@/db?host=/nowhere": "at /nowhere, port 5432: there is no such socket; is it running?",
    "postgresql://ada:secret@localhost:secret/db": "--ledger has a host or a port that cannot be read: a port is a num",
    "postgresql://ada:secret/db": "--ledger has a host or a port that cannot be read",
    "postgresql://ada:secret@[::1/db": "--ledger has a host or a port that cannot be read",
    "postgresql://ada:secret@[/db": "--ledger has a bracket that is not closed, or not opened",
    "postgresql://ada:secret@localhost:0/db": "--ledger has the port 0, and ports go from 1 to 65535",
    "postgresql://ada:secret@localhost:99999/db": "--ledger has the port 99999, and ports go from 1 to 65535",
    "postgresql://ada:secret@localhost/db?port=x&password=secret": "password=***&port=x could not be used: Received",
    "postgresql://ada:half@secret@localhost/db": "--ledger has an @ in its user or password",
    "mysql://ada:secret@localhost/db": "--ledger names mysql",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_place_that_cannot_be_meant(privet: Run, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Fails when a mistake in a URL ends as an internal error, or repeats a piece of the password that it cut."""

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)  # no test asks the network
    line = refused(privet("ledger list --ledger", f"'{place}'"))
    assert PLACES[place] in line
    assert "secret" not in line


def test_a_server_that_refuses(privet: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the server's own words are lost, or drag the address and the statement along."""
    psycopg = pytest.importorskip("psycopg")

    def refuse(*_: object, **__: object) -> None:
        raise psycopg.OperationalError(
            'connection failed: connection to server at "127.0.0.1", port 5432 failed: '
            'FATAL:  password authentication failed for user "ada"'
        )

    monkeypatch.setattr(psycopg, "connect", refuse)
    monkeypatch.setattr(psycopg.Connection, "connect", refuse)
    line = refused(privet("ledger list --ledger postgresql://ada:secret@localhost/db"))
    said = 'the PostgreSQL server at localhost, port 5432 refuses: password authentication failed for user "ada"; check'
    assert said in line
    assert "secret" not in line


def test_other_errors_keep_their_words_and_lose_their_secrets(privet: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a password in a URL's query is shown by an error that names the whole URL."""
    from privet.core.errors import LedgerError
    from privet.ledger import Ledger

    def lost(book: Ledger) -> None:
        raise LedgerError(f"there is no ledger at {book!r}; create a budget there first")

    monkeypatch.setattr(Ledger, "list", lost)
    line = refused(privet("ledger list --ledger 'postgresql://ada@localhost/db?password=secret&sslmode=disable'"))
    assert "password=***&sslmode=disable'" in line
    assert line.endswith("; create a budget there first\n")
