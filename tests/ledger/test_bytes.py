"""Files in which anything may stand anywhere: no damage ends in an error of another kind, or in a wrong "intact"."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from privet.core.errors import LedgerError
from privet.core.event import Laplace
from privet.ledger import Ledger, State, fingerprint_of
from privet.ledger.budget_state import Terms, load
from tests.ledger.test_damage import one_line

ROWS = fingerprint_of(b"rows")


@pytest.fixture
def filled(path: Path) -> str:
    """A ledger with something of every kind in it; gives the id of its open entry."""
    with Ledger(path) as ledger:
        ledger.create("clinic", epsilon=1.0, delta=1e-6, fingerprint=ROWS)
        with ledger.reserve("clinic", Laplace(100.0), purpose="patients over 60", fingerprint=ROWS).drawing():
            pass
        ledger.reserve("clinic", Laplace(200.0), fingerprint=ROWS).abort()
        return ledger.reserve("clinic", Laplace(300.0), fingerprint=ROWS).id


def calls(ledger: Ledger, open_: str) -> list[Callable[[], object]]:
    """Everything that can be asked of a ledger, but `verify`."""
    return [
        ledger.list,
        lambda: ledger.show("clinic"),
        lambda: ledger.budget("clinic"),
        lambda: ledger.entry(open_),
        lambda: ledger.admits("clinic", Laplace(400.0)),
        lambda: ledger.reserve("clinic", Laplace(400.0), fingerprint=ROWS),
        lambda: ledger.step(open_, State.DRAWING),
        lambda: ledger.bind("clinic", fingerprint_of(b"other rows"), note="new"),
        lambda: ledger.create("ward", epsilon=1.0, delta=1e-6),
    ]


def test_a_byte_of_a_text_that_is_no_text(path: Path, filled: str) -> None:
    """Catches a dump of the driver's in place of the verdict: one byte of an entry's purpose is changed to 0x80."""
    whole = path.read_bytes()
    assert whole.count(b"patients over") == 1
    path.write_bytes(whole.replace(b"patients over", b"\x80atients over"))
    found = Ledger(path).verify()
    assert found.problems[0].startswith("clinic: row 2 (reserved) was changed")
    with pytest.raises(LedgerError, match=r"row 2 of the chain .*changed; run: privet ledger verify"):
        Ledger(path).show("clinic")


def test_a_name_in_the_schema_that_is_no_text(path: Path, filled: str) -> None:
    """Catches a message of SQLite's own that cannot be read as text, and ended as a bare UnicodeDecodeError."""
    whole = path.read_bytes()
    assert whole.count(b" ON privet_chain (") == 1
    path.write_bytes(whole.replace(b" ON privet_chain (", b" ON privet_\x80hain ("))
    for call in [Ledger(path).verify, *calls(Ledger(path), filled)]:
        with pytest.raises(LedgerError, match="is damaged; nothing was changed; restore a backup") as caught:
            call()
        one_line(caught.value)


TYPES = [
    *(("privet_chain", "seq = 2", f"{column} = x'ff00'") for column in ("kind", "entry", "at", "body")),
    *(("privet_chain", "seq = 2", f"{column} = 7") for column in ("state", "hash")),
    *(("privet_chain", "seq = 5", f"{column} = 'text'") for column in ("state", "hash")),
    *(("privet_chain", "seq = 2", change) for change in ("seq = 2.5", "seq = 'two'", "budget = 'one'", "budget = -1")),
    ("privet_chain", "seq = 5", "seq = 9223372036854775807"),
    *(("privet_budgets", "1", f"length = {value}") for value in ("'x'", "2.5", "-1", "x'01'", "1 << 62", "1 << 40")),
    *(("privet_budgets", "1", f"head = {value}") for value in ("7", "'text'", "100000000000000")),
    *(("privet_budgets", "1", f"{column} = x'ff00'") for column in ("name", "terms", "state")),
    *(("privet_budgets", "1", change) for change in ("id = 'one'", "id = -1")),
    *(("privet_entries", "1", f"{column} = 'x'") for column in ("budget", "seq", "last", "attempt")),
    *(("privet_entries", "1", f"{column} = 1.5") for column in ("seq", "last", "attempt")),
    ("privet_entries", "1", "state = x'00'"),
    ("privet_entries", "state = 'aborted'", "id = x'00'"),
    *(("privet_fingerprints", "1", change) for change in ("budget = 'one'", "tag = x'00'")),
    *(("privet_ledger", "name = 'version'", f"value = {value}") for value in ("x'31'", f"'{'9' * 5000}'")),
    *(("privet_ledger", "name = 'salt'", f"value = {value}") for value in ("x'31'", "'abcd'")),
]


def damaged(path: Path, table: str, where: str, change: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        assert connection.execute(f"UPDATE {table} SET {change} WHERE {where}").rowcount > 0  # noqa: S608
    connection.close()


@pytest.mark.parametrize(("table", "where", "change"), TYPES, ids=lambda part: str(part)[:30])
def test_a_value_of_another_type(path: Path, filled: str, table: str, where: str, change: str) -> None:
    """Catches what Python makes of damage: a TypeError, bytes of a number's length, a loop over 2⁶² rows."""
    damaged(path, table, where, change)
    before = path.read_bytes()
    said = "restore"
    try:
        assert not Ledger(path).verify()
    except LedgerError as error:
        said = one_line(error)
    assert "restore" in said
    assert "ledger verify" not in said
    for call in calls(Ledger(path), filled):
        path.write_bytes(before)
        try:
            call()
        except LedgerError as error:
            one_line(error)


TEXTS = [
    ("1e-06", "1e906"),
    ("1.0", "NaN"),
    ('"epsilon_bits\\\\":63', '"epsilon_bits\\\\":-1'),
    ('"epsilon_bits\\\\":63', '"epsilon_bits\\\\":1e999'),
    ('"epsilon_bits\\\\":63', '"epsilon_bits\\\\":9e18'),
    ('"limits\\\\":[', '"limits\\\\":[Infinity,'),
    ('"finite_orders\\\\":[', '"finite_orders\\\\":[NaN,'),
    ('"name\\\\":\\\\"clinic', '"name\\\\":7,\\\\"x\\\\":\\\\"'),
    ("add/remove", "both"),
]
CHARGES = [
    ('"offset":0', '"offset":1e999'),
    ('"offset":0', '"offset":[]'),
    ('"orders":[', '"orders":[Infinity,'),
    ('"orders":[', '"orders":[null,'),
    ('{"block"', "[" * 5000),
    ('"event":{', '"event":{"x":'),
]


@pytest.mark.parametrize(("seq", "old", "new"), [(1, *pair) for pair in TEXTS] + [(2, *pair) for pair in CHARGES])
def test_a_text_that_can_no_longer_be_meant(path: Path, filled: str, seq: int, old: str, new: str) -> None:
    """Catches numbers that JSON allows and arithmetic does not, in terms or charges that were edited."""
    connection = sqlite3.connect(path)
    with connection:
        (body,) = connection.execute("SELECT body FROM privet_chain WHERE seq = ?", (seq,)).fetchone()
        old, new = old.replace("\\\\", "\\"), new.replace("\\\\", "\\")
        assert old in body
        connection.execute("UPDATE privet_chain SET body = ? WHERE seq = ?", (body.replace(old, new), seq))
    connection.close()
    found = Ledger(path).verify()
    assert f"row {seq} " in found.problems[0]
    with pytest.raises(LedgerError):
        Ledger(path).show("clinic")


@pytest.mark.parametrize("text", ["1e-06", "1.0", '"delta_bits":83', '"limits":['])
def test_terms_are_compared_before_they_are_read(path: Path, filled: str, text: str) -> None:
    """Catches terms of a budget's own row that are believed, or break arithmetic, before they are found changed."""
    new = {"1e-06": "1e906", "1.0": "1e999", '"delta_bits":83': '"delta_bits":9e15', '"limits":[': '"limits":[1e999,'}
    damaged(path, "privet_budgets", "1", f"terms = replace(terms, '{text}', '{new[text]}')")
    with pytest.raises(LedgerError, match="was changed outside the ledger"):
        Ledger(path).budget("clinic")
    assert "other terms than the chain" in Ledger(path).verify().problems[0]


def test_another_salt_is_noticed(path: Path, filled: str) -> None:
    """Catches a salt that was exchanged: data would not be recognised, and could have a second budget."""
    damaged(path, "privet_ledger", "name = 'salt'", f"value = '{'ab' * 32}'")
    ledger = Ledger(path)
    assert ledger.verify().problems == (
        "clinic: the ledger's salt is another than when it was made: its data would not be recognised",
    )
    other = fingerprint_of(b"other rows")
    for call in (
        lambda: ledger.reserve("clinic", Laplace(400.0), fingerprint=ROWS),
        lambda: ledger.bind("clinic", other, note="new"),
        lambda: ledger.create("again", epsilon=1.0, delta=1e-6, fingerprint=ROWS),
    ):
        with pytest.raises(LedgerError, match="salt was changed"):
            call()


def test_budgets_without_the_name_of_a_salt_stay_readable(path: Path) -> None:
    """Catches terms that are written anew otherwise than they stood, so that no hash of an older budget fits."""
    with Ledger(path) as ledger:
        ledger.create("clinic", epsilon=1.0, delta=1e-6)
        with ledger._store.reading() as connection:
            terms = load(connection, "clinic").terms
    assert terms.salt is not None
    assert Terms.parse(terms.text()) == terms
    older = replace(terms, salt=None)
    assert "salt" not in older.text()
    assert Terms.parse(older.text()) == older


def test_names_that_no_database_could_look_for(path: Path, filled: str) -> None:
    """Catches half a character from a shell's argument that ends as an error of the driver."""
    ledger = Ledger(path)
    with pytest.raises(LedgerError, match="there is no entry"):
        ledger.release("\udcff")
    with pytest.raises(LedgerError, match="there is no budget"):
        ledger.show("clin\udcff")
    with pytest.raises(LedgerError, match="there is no budget"):
        ledger.verify("clin\udcff")
