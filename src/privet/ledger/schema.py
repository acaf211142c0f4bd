"""The ledger's tables, and how a database comes to have them: one migration per version, each in one transaction."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from privet.core import LedgerError
from privet.ledger.stored_values import shown

__all__ = [
    "BUDGETS",
    "CHAIN",
    "ENTRIES",
    "FINGERPRINTS",
    "META",
    "MIGRATIONS",
    "migrate",
    "read_version",
    "require_known",
    "salt_of",
    "version_of",
]

_metadata = sa.MetaData()
_TEXT, _INTEGER = sa.Text(), sa.BigInteger()
_BYTES = sa.types.NullType()
"""Bytes as the driver gives them: SQLAlchemy's own type would make bytes of whatever a damaged file holds there."""


def _table(table: str, keys: tuple[str, ...], /, **columns: sa.types.TypeEngine[Any]) -> sa.Table:
    """Return a table for queries; its constraints are declared in the migration that creates it."""
    made = (sa.Column(name, kind, primary_key=name in keys) for name, kind in columns.items())
    return sa.Table(table, _metadata, *made)


META = _table("privet_ledger", ("name",), name=_TEXT, value=_TEXT)
"""The schema's version, and the salt of fingerprints."""
_VERSION = sa.select(META.c.value).where(META.c.name == "version")
_LONGEST = 6
"""How many digits a version may have."""
_SALT = 32
"""How many bytes the salt has."""
BUDGETS = _table(
    "privet_budgets", ("id",), id=_INTEGER, name=_TEXT, terms=_TEXT, state=_TEXT, length=_INTEGER, head=_BYTES
)
"""One row per budget: its terms, its running sums, and the end of its chain. Admission reads this and no history."""
CHAIN = _table(
    "privet_chain",
    ("budget", "seq"),
    budget=_INTEGER,
    seq=_INTEGER,
    kind=_TEXT,
    entry=_TEXT,
    at=_TEXT,
    body=_TEXT,
    state=_BYTES,
    hash=_BYTES,
    seal=_BYTES,
)
"""Every change, only ever added to."""
ENTRIES = _table(
    "privet_entries", ("id",), id=_TEXT, budget=_INTEGER, seq=_INTEGER, last=_INTEGER, state=_TEXT, attempt=_INTEGER
)
"""The state of each entry, so that it is found at once; says nothing that the chain does not say."""
FINGERPRINTS = _table("privet_fingerprints", ("tag",), tag=_TEXT, budget=_INTEGER)
"""Which budget a data set belongs to."""

# The tables of version 1 as they were made then; what is above may change with later versions, this may not.
_VERSION_1 = """
CREATE TABLE privet_ledger (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE privet_budgets (
    id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, terms TEXT NOT NULL, state TEXT NOT NULL, length BIGINT NOT NULL,
    head {bytes} NOT NULL
);
CREATE TABLE privet_chain (
    budget BIGINT NOT NULL, seq BIGINT NOT NULL, kind TEXT NOT NULL, entry TEXT NOT NULL, at TEXT NOT NULL,
    body TEXT NOT NULL, state {bytes} NOT NULL, hash {bytes} NOT NULL, seal {bytes}, PRIMARY KEY (budget, seq)
) {clustered};
CREATE INDEX privet_chain_entry ON privet_chain (budget, entry, seq);
CREATE TABLE privet_entries (
    id TEXT PRIMARY KEY, budget BIGINT NOT NULL, seq BIGINT NOT NULL, last BIGINT NOT NULL, state TEXT NOT NULL,
    attempt BIGINT NOT NULL
) {clustered};
CREATE INDEX privet_entries_state ON privet_entries (budget, state);
CREATE TABLE privet_fingerprints (tag TEXT PRIMARY KEY, budget BIGINT NOT NULL) {clustered}
"""
_WORDS: Mapping[str, Mapping[str, str]] = {
    "sqlite": {"bytes": "BLOB", "clustered": "WITHOUT ROWID"},
    "postgresql": {"bytes": "BYTEA", "clustered": ""},
}


def _version_1(connection: sa.Connection) -> None:
    for statement in _VERSION_1.format(**_WORDS[connection.dialect.name]).split(";"):
        connection.exec_driver_sql(statement)
    connection.execute(sa.insert(META), [{"name": "salt", "value": secrets.token_hex(_SALT)}])


_Migration = Callable[[sa.Connection], None]
MIGRATIONS: tuple[_Migration, ...] = (_version_1,)
"""The nth of these takes a database from version n to n + 1."""


def version_of(connection: sa.Connection) -> int:
    """Return the version of the tables in this database; 0 if there are none. Other databases are refused."""
    tables = _tables(connection)
    if META.name not in tables:
        if tables & {table.name for table in _metadata.sorted_tables}:
            raise LedgerError(f"the ledger's table {META.name} was dropped; nothing was changed; restore a backup")
        ours = sorted(table for table in tables if table.startswith("privet_"))
        if ours or (tables and connection.dialect.name == "sqlite"):
            names = ", ".join(map(shown, ours or sorted(tables)[:3]))
            raise LedgerError(
                f"this database holds {names} and is not a ledger; it was left as it is; use another file"
            )
        return 0
    return read_version(connection)


def read_version(connection: sa.Connection) -> int:
    """Return the version that the tables name."""
    found: Any = connection.execute(_VERSION).scalar_one_or_none()
    if not isinstance(found, str) or not found.isdecimal() or len(found) > _LONGEST:
        raise LedgerError(f"the ledger's version reads {found!r:.40}, which is damage; restore a backup")
    return int(found)


def _tables(connection: sa.Connection) -> set[str]:
    if connection.dialect.name != "sqlite":
        return set(sa.inspect(connection).get_table_names())
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    # A damaged list of tables may hold names that are no texts.
    return {str(name) for name in connection.exec_driver_sql(query).scalars()}


def migrate(connection: sa.Connection, migrations: Sequence[_Migration] = MIGRATIONS) -> None:
    """Migrate the database to the newest version, in the caller's transaction; a newer one is refused unchanged."""
    have = version_of(connection)
    require_known(have, len(migrations))
    for step in migrations[have:]:
        step(connection)
    version = {"name": "version", "value": str(len(migrations))}
    if have == 0:
        connection.execute(sa.insert(META), [version])
    elif have < len(migrations):
        connection.execute(sa.update(META).where(META.c.name == "version").values(value=version["value"]))


def require_known(have: int, newest: int = len(MIGRATIONS)) -> None:
    """Raise for tables that a later Privet made."""
    if have > newest:
        raise LedgerError(
            f"the ledger has version {have}, and this Privet knows {newest}; it was left as it is; upgrade privet"
        )


def salt_of(connection: sa.Connection) -> bytes:
    """Return the ledger's own random key for fingerprints."""
    found: Any = connection.execute(sa.select(META.c.value).where(META.c.name == "salt")).scalar_one_or_none()
    try:
        salt = bytes.fromhex(found) if isinstance(found, str) else b""
    except ValueError:
        salt = b""
    if len(salt) != _SALT:
        raise LedgerError("the ledger's salt is damaged or gone; restore a backup")
    return salt
