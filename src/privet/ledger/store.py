"""The database under a ledger: connections that survive forks, transactions that survive power cuts, plain errors."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from privet.core import InvalidInput, LedgerError, MissingExtra, checked
from privet.ledger import schema, sqlite_connection
from privet.ledger.stored_values import shown

__all__ = ["Store"]

_LOCK = 0x70726976
"""The PostgreSQL advisory lock under which tables are made and budgets created."""
_CONNECT_SECONDS = 10
"""How long a server may take to answer at all; a URL may say otherwise with `?connect_timeout=`."""
_FORM = "use sqlite:///clinic.db or postgresql://user:password@host:5432/database, with %40 for an @ in a password"
_LAST_PORT = 65535
_SECRET, _HIDDEN = re.compile(r"((?:pass(?:word|wd|phrase)?|secret)\w*=)[^&;\s]*", re.IGNORECASE), r"\1***"
_BROKEN = "is damaged; nothing was changed; restore a backup"
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_MISMATCH)
"""What SQLite answers where a file contradicts itself."""
_WORDS = (
    ("database is locked", "is locked by another process; nothing was changed; try again when it is done"),
    ("lock timeout", "is locked by another process; nothing was changed; try again when it is done"),
    ("readonly", "is read-only; nothing was changed; make it and its folder writable"),
    ("disk is full", "cannot be written because the disk is full; nothing was changed; make room and try again"),
    ("disk i/o", "cannot be written: the disk is full or failing; nothing was changed; make room and try again"),
    ("no space left", "cannot be written because the disk is full; nothing was changed; make room and try again"),
    ("malformed", _BROKEN),
    ("no such table", "lacks one of its tables, which was dropped; restore it from a backup"),
    ('relation "privet_', "lacks one of its tables, which was dropped; restore it from a backup"),
    ("no such column", "has tables that were changed; restore it from a backup"),
    (
        "not a database",
        "is not a ledger; it was left as it is; use another file, or if it was a ledger, restore a backup",
    ),
    ("unsupported file format", _BROKEN),
    ("unable to open", "cannot be opened; check the path and its permissions"),
)
_SETTINGS = (
    # In this mode the journal's end is synced before COMMIT returns, so that no power cut can roll a committed charge
    # back; and at rest the ledger is one file, to be copied, or read where nothing can be written (the journal that
    # stays beside it is empty).
    "journal_mode = TRUNCATE",
    "synchronous = EXTRA",
    "fullfsync = ON",
    "trusted_schema = OFF",
    "cell_size_check = ON",
)


class Store:
    """One database, by path or URL; nothing is touched before it is used."""

    def __init__(self, url: str | os.PathLike[str], timeout: float) -> None:
        self._timeout = checked.positive("timeout", timeout)
        self._url = _parse(url)
        self._path = Path(self._url.database or "").absolute() if self.sqlite else None
        self._guard = threading.Lock()
        self._engine: sa.Engine | None = None
        self._process = 0
        self.where = str(self._path) if self._path else _without_secrets(self._url)
        """What error messages call this database; never with a password."""

    @property
    def sqlite(self) -> bool:
        """Whether this is a file."""
        return self._url.get_backend_name() == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Open a transaction that sees one state of the database and changes nothing."""
        with self._errors():
            engine = self._ready(create=False)
            options: dict[str, Any] = {} if self.sqlite else {"isolation_level": "REPEATABLE READ"}
            with engine.connect() as connection:
                connection.execution_options(**options)
                with connection.begin():
                    yield connection

    @contextmanager
    def writing(self, *, create: bool = False) -> Iterator[sa.Connection]:
        """Open a transaction that is on disk when the context ends, or has left no trace."""
        with self._errors():
            engine = self._ready(create=create)
            # On a server the lock on a budget's row keeps writers apart; a stricter level would only make them fail.
            options: dict[str, Any] = {} if self.sqlite else {"isolation_level": "READ COMMITTED"}
            with engine.connect() as connection:
                connection.execution_options(privet_writing=True, **options)
                with connection.begin():
                    if create and not self.sqlite:
                        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
                    schema.require_known(schema.version_of(connection) if create else schema.read_version(connection))
                    yield connection

    def damage(self) -> str | None:
        """Return what the database finds wrong with the pages and indexes of its file, if it can check them."""
        if not self.sqlite:
            return None
        with self.reading() as connection:
            found = str(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one())
        return None if found == "ok" else shown(" ".join(found.split()))

    def close(self) -> None:
        """Close all connections of this process; the next use opens new ones."""
        with self._guard:
            if self._engine is not None:
                _dispose(self._engine, self._process)
            self._engine = None

    def _ready(self, *, create: bool) -> sa.Engine:
        """This process's engine, on tables of the newest version."""
        engine = self._engine
        if engine is not None and self._process == os.getpid():
            return engine
        with self._guard:
            if self._engine is not None and self._process == os.getpid():
                return self._engine
            if self._engine is not None:
                self._engine.dispose(close=False)  # the parent still uses the connections that a fork has copied
                self._engine = None
            if self._path is not None and not self._path.exists():
                if not create:
                    raise LedgerError(f"there is no ledger at {self.where}; create a budget there first")
                _make_file(self._path)
            engine = self._sqlite_engine(self._path) if self._path is not None else self._postgres_engine()
            ready = False
            try:
                self._prepare(engine, create=create)
                ready = True
            finally:
                if not ready:
                    engine.dispose()
            self._engine, self._process = engine, os.getpid()
            weakref.finalize(self, _dispose, engine, self._process)
            return engine

    def _prepare(self, engine: sa.Engine, *, create: bool) -> None:
        with engine.connect() as connection, connection.begin():
            have = schema.version_of(connection)
            schema.require_known(have)
            if have == 0 and not create:
                raise LedgerError(f"there is no ledger at {self.where}; create a budget there first")
        if have < len(schema.MIGRATIONS):
            with engine.connect() as connection:
                connection.execution_options(privet_writing=True)
                with connection.begin():
                    if not self.sqlite:
                        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
                    schema.migrate(connection)

    def _sqlite_engine(self, path: Path) -> sa.Engine:
        timeout = self._timeout  # the engine must not hold this object, whose end is the engine's

        def connect() -> sqlite3.Connection:
            made = sqlite_connection.connect(path, timeout)
            ready = False
            try:
                for setting in _SETTINGS:
                    made.execute(f"PRAGMA {setting}")
                ready = True
            finally:
                if not ready:
                    made.close()
            return made

        # One connection a transaction: none is ever carried through a fork.
        engine = sa.create_engine("sqlite://", creator=connect, poolclass=NullPool)

        def begin(connection: sa.Connection) -> None:
            writing = connection.get_execution_options().get("privet_writing", False)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

        sa.event.listen(engine, "begin", begin)
        return engine

    def _postgres_engine(self) -> sa.Engine:
        try:
            import psycopg
        except ImportError:
            raise MissingExtra("psycopg", "postgres") from None
        said = self._url.query.get("options", "")
        wait = f"{said if isinstance(said, str) else ' '.join(said)} -c lock_timeout={int(self._timeout * 1000)}"
        arguments: dict[str, Any] = {"options": wait.strip()}
        if "connect_timeout" not in self._url.query:
            arguments["connect_timeout"] = _CONNECT_SECONDS
        engine = sa.create_engine(self._url, pool_pre_ping=True, pool_size=2, connect_args=arguments)

        def connected(connection: psycopg.Connection[Any], _: object) -> None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT current_setting('fsync'), current_setting('synchronous_commit')")
                fsync, commit = cursor.fetchone() or ("off", "off")
                if fsync == "off":
                    advice = "a charge would not survive a power cut; turn fsync on"
                    raise LedgerError(f"the PostgreSQL server runs with fsync = off: {advice}")
                if commit == "off":
                    cursor.execute("SET synchronous_commit = on")
            connection.commit()

        sa.event.listen(engine, "connect", connected)
        return engine

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sa.exc.SQLAlchemyError, sqlite3.Error, UnicodeError) as error:
            raise LedgerError(f"{self.where} {_explain(error)}") from error


def _dispose(engine: sa.Engine, process: int) -> None:
    """Close an engine's connections, unless they belong to the process that this one was forked from."""
    if process == os.getpid():
        engine.dispose()


def _explain(error: Exception) -> str:
    """One line, without the statement or its values."""
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorcode", None)
    # A row that is there twice, or not at all, where there must be one; or a message that is no text.
    contradicts = isinstance(cause, (UnicodeDecodeError, sa.exc.NoResultFound, sa.exc.MultipleResultsFound))
    text = " ".join(str(cause).split())
    for sign, words in _WORDS:
        if sign in text.lower():
            return words
    if contradicts or (code is not None and code & 0xFF in _DAMAGE):
        return _BROKEN
    return f"could not be used: {shown(_SECRET.sub(_HIDDEN, text[:200]))}"


def _parse(url: str | os.PathLike[str]) -> sa.URL:
    text = os.fspath(url)
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput("url", "is empty", "give a file such as clinic.db, or postgresql://user@host/database")
    if "://" not in text:
        return sa.URL.create("sqlite", database=text)
    # What is refused is not repeated: a part of a password may be anywhere in it.
    try:
        parsed = sa.make_url(text)
    except sa.exc.ArgumentError:
        raise InvalidInput("url", "cannot be read", _FORM) from None
    except ValueError:
        raise InvalidInput("url", "has a host or a port that cannot be read: a port is a number", _FORM) from None
    kind = parsed.get_backend_name()
    if kind in ("postgresql", "postgres"):
        return _server(parsed)
    if kind != "sqlite":
        raise InvalidInput("url", f"names {kind}, which is not supported", "use sqlite:///FILE or postgresql://…")
    if not parsed.database or parsed.database == ":memory:":
        raise InvalidInput("url", "names a database in memory", "a budget must survive: give a file")
    return parsed


def _server(parsed: sa.URL) -> sa.URL:
    if "@" in (parsed.host or ""):
        raise InvalidInput("url", "has an @ in its user or password", _FORM)
    if set("[]") & set(parsed.host or ""):
        raise InvalidInput("url", "has a bracket that is not closed, or not opened", _FORM)
    if parsed.port is not None and not 0 < parsed.port <= _LAST_PORT:
        raise InvalidInput("url", f"has the port {parsed.port}, and ports go from 1 to {_LAST_PORT}", _FORM)
    return parsed.set(drivername="postgresql+psycopg")


def _without_secrets(url: sa.URL) -> str:
    """A URL for people to read: neither its password nor one in its query is shown."""
    return _SECRET.sub(_HIDDEN, url.render_as_string(hide_password=True))


def _make_file(path: Path) -> None:
    """An empty file that only its owner can read: the salt of the fingerprints will be in it."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as error:
        raise LedgerError(f"{path} cannot be made: {error.strerror}; make its folder first") from None
