"""A full disk, a locked or read-only or damaged file, an unknown version: one clear line, and an intact ledger."""

from __future__ import annotations

import gc
import sqlite3
import subprocess
import sys
import tempfile
import threading
import weakref
from pathlib import Path

import pytest
import sqlalchemy as sa

from privet.core.errors import InvalidInput, LedgerError, MissingExtra
from privet.core.event import Laplace
from privet.ledger import Ledger, State, fingerprint_of, schema

SMALL = Laplace(1000.0)


def one_line(error: BaseException) -> str:
    """The message, which must be one line without SQL in it."""
    text = str(error)
    assert "\n" not in text
    assert not [word for word in ("SELECT", "INSERT", "UPDATE", "sqlalche", "Traceback") if word in text]
    return text


def run_script(script: str, *arguments: str) -> str:
    """A program of its own, for what would harm the tests' own process."""
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


FULL = """
import resource, sys
from pathlib import Path
from privet.core.errors import LedgerError
from privet.core.event import Laplace
from privet.ledger import Ledger

path = Path(sys.argv[1])
ledger = Ledger(path)
charge = ledger.reserve("clinic", Laplace(1000.0), purpose="before")
# No file may grow beyond this, as on a full disk; with a purpose that does not fit into the free space of a page.
limit = path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
step = {"reserve": lambda: [ledger.reserve("clinic", Laplace(1000.0), purpose="x" * 900) for _ in range(50)],
        "draw": charge.draw}[sys.argv[2]]
if sys.argv[2] == "draw":
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
try:
    step()
except LedgerError as error:
    print(error)
"""


@pytest.mark.parametrize("step", ["reserve", "draw"])
def test_a_full_disk(file_ledger: Ledger, path: Path, step: str) -> None:
    """Catches a charge that is half written, and a `draw` that returns although nothing is on the disk."""
    message = run_script(FULL, str(path), step)
    assert "the disk is full" in message
    assert "\n" not in message
    assert file_ledger.verify("clinic")
    entries = file_ledger.show("clinic", last=100).entries
    assert entries[-1].purpose == "before"
    assert {entry.state for entry in entries} == {State.RESERVED}
    file_ledger.reserve("clinic", SMALL).draw()
    assert file_ledger.verify("clinic")


def test_a_locked_file(file_ledger: Ledger, path: Path) -> None:
    """Catches a ledger that goes on without the lock, or waits for ever."""
    impatient = Ledger(path, timeout=0.05)
    impatient.list()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LedgerError, match="locked by another process") as caught:
        impatient.reserve("clinic", SMALL)
    one_line(caught.value)
    other.execute("ROLLBACK")
    other.close()
    impatient.reserve("clinic", SMALL)
    assert file_ledger.verify("clinic").rows == 2


@pytest.mark.parametrize("lock", ["EXCLUSIVE", "IMMEDIATE", "read"])
def test_a_lock_that_ends_is_waited_for(file_ledger: Ledger, path: Path, lock: str) -> None:
    """Catches a wait that ends with its first short turn: at the beginning, or at a commit that waits for a reader."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN" if lock == "read" else f"BEGIN {lock}")
    other.execute("SELECT * FROM privet_budgets").fetchall()
    ending = threading.Timer(0.7, lambda: other.execute("ROLLBACK"))
    ending.start()
    file_ledger.reserve("clinic", SMALL)
    ending.join()
    other.close()
    assert file_ledger.verify("clinic").rows == 2


WAITING = """
import _thread, sqlite3, sys, threading, time
from privet.core.event import Laplace
from privet.ledger import Ledger

ledger = Ledger(sys.argv[1], timeout=100.0)
ledger.admits("clinic", Laplace(1000.0))
other = sqlite3.connect(sys.argv[1], isolation_level=None)
other.execute("BEGIN")
other.execute("SELECT * FROM privet_budgets").fetchall()
if sys.argv[2] != "read":
    other.execute("ROLLBACK")
    other.execute(f"BEGIN {sys.argv[2]}")
threading.Timer(0.5, _thread.interrupt_main).start()
try:
    ledger.reserve("clinic", Laplace(1000.0))
except KeyboardInterrupt:
    other.execute("ROLLBACK")
    print(ledger.verify("clinic").rows)
"""


@pytest.mark.parametrize("lock", ["EXCLUSIVE", "IMMEDIATE", "read"])
def test_waiting_for_a_lock_can_be_interrupted(file_ledger: Ledger, path: Path, lock: str) -> None:
    """Catches a wait inside SQLite, which hears no interrupt before the lock's end; nothing is charged."""
    assert run_script(WAITING, str(path), lock) == "1"


def test_a_locked_budget_on_a_server(postgres_url: str) -> None:
    """The same for a budget's row that another session holds."""
    import psycopg

    with Ledger(postgres_url, timeout=0.2) as impatient, psycopg.connect(postgres_url) as other:
        impatient.create("clinic", epsilon=1.0, delta=1e-6)
        other.execute("SELECT * FROM privet_budgets FOR UPDATE")
        with pytest.raises(LedgerError, match="locked by another process") as caught:
            impatient.reserve("clinic", SMALL)
        one_line(caught.value)
        other.rollback()
        impatient.reserve("clinic", SMALL)
        assert impatient.verify("clinic").rows == 2


READ_ONLY = """
import os, sys
from privet.core.errors import LedgerError
from privet.core.event import Laplace
from privet.ledger import Ledger
import privet.accounting.renyi, sqlalchemy.dialects.sqlite

Laplace(1000.0)
if os.geteuid() == 0:
    os.seteuid(65534)  # root may write everywhere
ledger = Ledger(sys.argv[1])
print(bool(ledger.verify("clinic")))
try:
    ledger.reserve("clinic", Laplace(1000.0))
except LedgerError as error:
    print(error)
"""


def test_a_read_only_file() -> None:
    """It can be listed and verified, as evidence on a read-only disk must be, and not charged."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        ledger = Ledger(path)
        ledger.create("clinic", epsilon=1.0, delta=1e-6)
        (path.parent / "ledger.db-journal").unlink(missing_ok=True)
        path.chmod(0o444)
        path.parent.chmod(0o555)
        before = path.read_bytes()
        try:
            verified, message = run_script(READ_ONLY, str(path)).splitlines()
        finally:
            path.parent.chmod(0o755)
        assert verified == "True"
        assert "is read-only" in message
        assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [b"name,age\nann,41\n", b"SQLite format 3\0" + b"\xff" * 4096, bytes(range(255, -1, -1)) * 32],
    ids=["table", "header", "noise"],
)
def test_what_is_no_database_is_left_alone(path: Path, content: bytes) -> None:
    """Catches a ledger that is written over somebody's file because its path was mistyped."""
    path.write_bytes(content)
    for call in (lambda: Ledger(path).create("clinic", epsilon=1.0, delta=1e-6), Ledger(path).list):
        with pytest.raises(LedgerError) as caught:
            call()
        assert str(path) in one_line(caught.value)
    assert path.read_bytes() == content


def test_a_database_of_something_else_is_left_alone(path: Path) -> None:
    """Catches tables of ours in somebody else's file."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE patients (name TEXT)")
    connection.close()
    before = path.read_bytes()
    for call in (lambda: Ledger(path).create("clinic", epsilon=1.0, delta=1e-6), Ledger(path).list):
        with pytest.raises(LedgerError, match="patients and is not a ledger"):
            call()
    assert path.read_bytes() == before


@pytest.mark.parametrize("table", ["ledger", "budgets", "chain", "entries", "fingerprints"])
def test_a_dropped_table_is_said_to_be_one(url: str, table: str) -> None:
    """Catches a raw message of the database, and advice to use another file while there is a backup."""
    with Ledger(url) as ledger:
        ledger.create("clinic", epsilon=1.0, delta=1e-6)
        with ledger._store.writing() as connection:
            connection.exec_driver_sql(f"DROP TABLE privet_{table}")
        with Ledger(url) as fresh:
            for verify in (ledger.verify, fresh.verify):
                with pytest.raises(LedgerError, match=r"dropped; .*restore") as caught:
                    verify()
                assert "backup" in one_line(caught.value)


@pytest.mark.parametrize("change", ["DELETE FROM privet_ledger", "UPDATE privet_ledger SET value = 'x'"])
def test_a_lost_salt_is_noticed(file_ledger: Ledger, path: Path, change: str) -> None:
    """Catches fingerprints under an empty key, which anybody could guess."""
    with sqlite3.connect(path) as connection:
        connection.execute(f"{change} WHERE name = 'salt'")
    connection.close()
    for call in (file_ledger.verify, lambda: file_ledger.bind("clinic", fingerprint_of(b"rows"), note="first")):
        with pytest.raises(LedgerError, match="salt is damaged or gone"):
            call()


def test_a_shared_server_is_shared(postgres_url: str) -> None:
    """On a server other tables may stand beside ours, and stay as they are."""
    import psycopg

    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE patients (name TEXT)")
    with Ledger(postgres_url) as ledger:
        with pytest.raises(LedgerError, match="there is no ledger"):
            ledger.list()
        ledger.create("clinic", epsilon=1.0, delta=1e-6)
        assert ledger.verify()


def test_a_mistyped_path_is_no_new_ledger(path: Path) -> None:
    """Catches a fresh budget that is made because the old one was not found."""
    for call in (Ledger(path).list, lambda: Ledger(path).reserve("clinic", SMALL), Ledger(path).verify):
        with pytest.raises(LedgerError, match="there is no ledger at"):
            call()
    assert not path.exists()
    with pytest.raises(LedgerError, match="make its folder first"):
        Ledger(path.parent / "none" / "ledger.db").create("clinic", epsilon=1.0, delta=1e-6)


def test_a_file_that_disappears_is_no_new_ledger(file_ledger: Ledger, path: Path) -> None:
    """Catches a connection that makes an empty file in place of one that was moved away."""
    file_ledger.reserve("clinic", SMALL)
    path.unlink()
    with pytest.raises(LedgerError, match="cannot be opened"):
        file_ledger.reserve("clinic", SMALL)
    assert not path.exists()


@pytest.mark.parametrize("version", ["2", "99"])
def test_an_unknown_version_is_left_alone(url: str, version: str) -> None:
    """Catches an old Privet that writes into tables it does not know; also one that was open while they changed."""
    with Ledger(url) as ledger:
        ledger.create("clinic", epsilon=1.0, delta=1e-6)
        charge = ledger.reserve("clinic", SMALL)
        head = ledger.head("clinic")
        with ledger._store.writing() as connection:
            connection.execute(sa.update(schema.META).where(schema.META.c.name == "version").values(value=version))
        for change in (lambda: ledger.reserve("clinic", SMALL), charge.draw):
            with pytest.raises(LedgerError, match=f"has version {version}, and this Privet knows 1"):
                change()
        fresh = Ledger(url)
        for call in (fresh.list, fresh.verify, lambda: fresh.create("b", epsilon=1.0, delta=1e-6)):
            with pytest.raises(LedgerError, match="upgrade privet"):
                call()
        fresh.close()
        with ledger._store.reading() as connection:
            found = connection.execute(sa.select(schema.BUDGETS.c.length, schema.BUDGETS.c.head)).one()
        assert f"{found.length}:{bytes(found.head).hex()}" == head


def test_a_damaged_version_is_said_to_be_one(file_ledger: Ledger, path: Path) -> None:
    """Catches damage that is taken for an old version and migrated."""
    with file_ledger._store.writing() as connection:
        connection.execute(sa.update(schema.META).where(schema.META.c.name == "version").values(value="one"))
    with pytest.raises(LedgerError, match="damage"):
        Ledger(path).list()


def test_a_migration_is_made_in_one_piece(path: Path) -> None:
    """A failing step leaves the old version; a good one brings the new; both in one transaction."""
    engine = sa.create_engine(f"sqlite:///{path}")

    def note(connection: sa.Connection) -> None:
        connection.exec_driver_sql("ALTER TABLE privet_budgets ADD COLUMN note TEXT")

    def broken(connection: sa.Connection) -> None:
        note(connection)
        raise LedgerError("the second step fails")

    sa.event.listen(engine, "connect", lambda raw, _: setattr(raw, "isolation_level", None))
    sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    with engine.begin() as connection:
        schema.migrate(connection)
        schema.migrate(connection)
        assert schema.version_of(connection) == 1
    with pytest.raises(LedgerError, match="second step"), engine.begin() as connection:
        schema.migrate(connection, (*schema.MIGRATIONS, broken))
    with engine.begin() as connection:
        assert schema.version_of(connection) == 1
        assert "note" not in {column["name"] for column in sa.inspect(connection).get_columns("privet_budgets")}
        schema.migrate(connection, (*schema.MIGRATIONS, note))
        assert schema.version_of(connection) == 2
        assert "note" in {column["name"] for column in sa.inspect(connection).get_columns("privet_budgets")}
    with pytest.raises(LedgerError, match="has version 2"), engine.begin() as connection:
        schema.migrate(connection)
    engine.dispose()


def test_the_tables_are_what_the_code_says(url: str) -> None:
    """Catches a migration that forgets a column which the statements use, on either kind of database."""
    with Ledger(url) as ledger:
        ledger.create("clinic", epsilon=1.0, delta=1e-6)
        with ledger._store.reading() as connection:
            looked = sa.inspect(connection)
            for table in (schema.META, schema.BUDGETS, schema.CHAIN, schema.ENTRIES, schema.FINGERPRINTS):
                assert [column["name"] for column in looked.get_columns(table.name)] == list(table.c.keys())
                keys = looked.get_pk_constraint(table.name)["constrained_columns"]
                assert keys == [column.name for column in table.primary_key]


def test_every_damaged_page_is_noticed(file_ledger: Ledger, path: Path) -> None:
    """Each page in turn is overwritten: verify says so or raises one line, and never says that all is well."""
    for _ in range(12):
        file_ledger.reserve("clinic", SMALL, purpose="x" * 300).draw()
    whole, page = path.read_bytes(), 4096
    assert len(whole) > 6 * page
    for at in range(0, len(whole), page):
        path.write_bytes(whole[:at] + b"\xa5" * page + whole[at + page :])
        try:
            found = Ledger(path).verify("clinic")
        except LedgerError as error:
            one_line(error)
        else:
            assert not found, f"page {at // page}"
    path.write_bytes(whole)
    assert Ledger(path).verify("clinic")


@pytest.mark.parametrize("keep", [100, 4096, 9000])
def test_a_file_that_was_cut_is_noticed(file_ledger: Ledger, path: Path, keep: int) -> None:
    """Catches a copy that was broken off."""
    file_ledger.reserve("clinic", SMALL)
    path.write_bytes(path.read_bytes()[:keep])
    try:
        assert not Ledger(path).verify("clinic")
    except LedgerError as error:
        one_line(error)


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("", "url is empty"),
        ("mysql://root@host/db", "names mysql"),
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("://", "cannot be read"),
        ("postgresql://clerk:hunter2@[::1/ledger", "host or a port that cannot be read"),
        ("postgresql://clerk:hunter2@host:hunter2/ledger", "host or a port that cannot be read"),
        ("postgresql://clerk:hunter2@[/ledger", "bracket"),
        ("postgresql://clerk:hunter2@host:-1/ledger", "the port -1"),
        ("postgresql://clerk:hunter2@host:65536/ledger", "the port 65536"),
        ("postgresql://clerk:half@hunter2@host/ledger", "has an @"),
    ],
)
def test_urls_that_cannot_hold_a_budget_are_refused(url: str, match: str) -> None:
    """Catches a budget that is gone when the process ends, a bare error of the URL's reader, and a password in one."""
    with pytest.raises(InvalidInput, match=match) as caught:
        Ledger(url)
    assert "hunter2" not in str(caught.value)


def test_a_password_in_a_query_is_not_shown() -> None:
    """Catches a password that stands elsewhere in a URL than passwords usually do."""
    shown = repr(Ledger("postgresql://clerk:one@host/ledger?password=two&sslpassword=three&sslmode=require"))
    assert shown.count("***") == 3
    assert not [secret for secret in ("one", "two", "three") if secret in shown]
    assert "sslmode=require" in shown


@pytest.mark.parametrize(
    ("query", "wait", "options"), [("", 10, ""), ("?connect_timeout=3&options=-cx%3D1", "3", "-cx=1 ")]
)
def test_a_server_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch, query: str, wait: object, options: str
) -> None:
    """Catches a host that swallows packets and stops a program for minutes; a URL may say otherwise."""
    psycopg = pytest.importorskip("psycopg")
    asked: dict[str, object] = {}

    def refuse(*_: object, **arguments: object) -> None:
        asked.update(arguments)
        raise psycopg.OperationalError("connection timeout expired")

    monkeypatch.setattr(psycopg, "connect", refuse)
    monkeypatch.setattr(psycopg.Connection, "connect", refuse)
    with pytest.raises(LedgerError):
        Ledger(f"postgresql://clerk@host/ledger{query}", timeout=5.0).list()
    assert asked["connect_timeout"] == wait
    assert asked["options"] == f"{options}-c lock_timeout=5000"


def test_a_ledger_that_nobody_holds_is_gone(file_ledger: Ledger, path: Path) -> None:
    """Catches an engine that holds the object which shall close it: a program that opens many would fill its memory."""
    other = Ledger(path)
    other.list()
    store = weakref.ref(other._store)
    del other
    gc.collect()
    assert store() is None


def test_a_server_that_is_not_there_is_one_line_without_the_password() -> None:
    """Catches a password in an error message."""
    pytest.importorskip("psycopg")
    nobody = Ledger("postgres://clerk:hunter2@127.0.0.1:1/ledger")
    assert "hunter2" not in repr(nobody)
    with pytest.raises(LedgerError) as caught:
        nobody.list()
    assert "hunter2" not in one_line(caught.value)
    assert "127.0.0.1" in str(caught.value)


def test_an_absent_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that says what to install."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"privet\[postgres\]"):
        Ledger("postgresql://clerk@127.0.0.1/ledger").list()


def test_a_server_that_forgets_is_refused(postgres_url: str) -> None:
    """Sessions that would answer before the disk does are set right: a charge must survive a power cut."""
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = str(connection.info.dbname)
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off".encode())
    with Ledger(postgres_url) as ledger:
        ledger.create("clinic", epsilon=1.0, delta=1e-6)
        with ledger._store.writing() as session:
            assert session.exec_driver_sql("SHOW synchronous_commit").scalar_one() == "on"


def test_a_file_waits_for_the_disk(file_ledger: Ledger) -> None:
    """Catches a connection that commits before the disk has the data."""
    with file_ledger._store.writing() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 3
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "truncate"
