"""Data sets are recognised, and nothing that could be guessed from is kept or shown."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
from pathlib import Path

import pytest

from privet.core.errors import InvalidInput, LedgerError
from privet.core.event import Laplace
from privet.ledger import Ledger, fingerprint_of

ROWS = b"age,sex\n41,f\n"
OTHER = b"age,sex\n41,m\n"
SMALL = Laplace(100.0)


@pytest.fixture
def bound(url: str) -> Ledger:
    """A ledger whose budget is bound to data."""
    ledger = Ledger(url)
    ledger.create("clinic", epsilon=1.0, delta=1e-6, fingerprint=fingerprint_of(ROWS))
    return ledger


def test_other_data_is_refused_until_a_person_binds_it(bound: Ledger) -> None:
    """Catches a name that is reused for other data; and a binding that would refund what was spent."""
    bound.reserve("clinic", SMALL, fingerprint=fingerprint_of(ROWS)).draw()
    with pytest.raises(LedgerError, match="bound to other data"):
        bound.reserve("clinic", SMALL, fingerprint=fingerprint_of(OTHER))
    used = bound.budget("clinic").used
    assert bound.bind("clinic", fingerprint_of(OTHER), note="a correction of row 1").version == 2
    assert bound.budget("clinic").used == used
    entry = bound.entry(bound.reserve("clinic", SMALL, fingerprint=fingerprint_of(OTHER)).id)
    assert entry.version == 2
    with pytest.raises(LedgerError, match="bound to other data"):
        bound.reserve("clinic", SMALL, fingerprint=fingerprint_of(ROWS))
    assert bound.verify("clinic")


def test_bound_data_must_be_shown(bound: Ledger) -> None:
    """Catches a check that is passed by saying nothing."""
    with pytest.raises(LedgerError, match="pass its fingerprint"):
        bound.reserve("clinic", SMALL)
    bound.create("archive", epsilon=1.0, delta=1e-6)
    with pytest.raises(LedgerError, match="no fingerprint yet"):
        bound.reserve("archive", SMALL, fingerprint=fingerprint_of(OTHER))
    with pytest.raises(InvalidInput, match="fingerprint"):
        bound.reserve("clinic", SMALL, fingerprint=hashlib.sha256(ROWS).digest())  # type: ignore[arg-type]


def test_the_same_data_has_one_budget(bound: Ledger) -> None:
    """Catches a second name, and so a second budget, for the same people."""
    with pytest.raises(LedgerError, match="belongs to budget 'clinic' already"):
        bound.create("again", epsilon=1.0, delta=1e-6, fingerprint=fingerprint_of(ROWS))
    assert [budget.name for budget in bound.list()] == ["clinic"]
    bound.create("archive", epsilon=1.0, delta=1e-6, fingerprint=fingerprint_of(OTHER))
    with pytest.raises(LedgerError, match="belongs to budget"):
        bound.bind("archive", fingerprint_of(ROWS), note="no")
    assert bound.verify()


def test_nothing_that_can_be_guessed_is_kept(path: Path) -> None:
    """Catches a plain digest in the file: whoever has it could try out small data sets until one fits."""
    ledger = Ledger(path)
    ledger.create("clinic", epsilon=1.0, delta=1e-6, fingerprint=fingerprint_of(ROWS))
    ledger.reserve("clinic", SMALL, fingerprint=fingerprint_of(ROWS))
    stored = path.read_bytes()
    for data in (ROWS, b"bytes\0" + ROWS):
        digest = hashlib.sha256(data)
        assert digest.digest() not in stored
        assert digest.hexdigest().encode() not in stored


def test_fingerprints_differ_from_ledger_to_ledger(tmp_path: Path) -> None:
    """Catches an HMAC under a key that all ledgers share, by which two ledgers could be compared."""
    tags = []
    for name, key in (("a.db", None), ("b.db", None), ("c.db", b"a key of sixteen bytes or more")):
        ledger = Ledger(tmp_path / name, key=key)
        ledger.create("clinic", epsilon=1.0, delta=1e-6, fingerprint=fingerprint_of(ROWS))
        with ledger._store.reading() as connection:
            tags.append(connection.exec_driver_sql("SELECT tag FROM privet_fingerprints").scalar_one())
    assert len(set(tags)) == 3


def test_nothing_shown_holds_fingerprints(bound: Ledger) -> None:
    """Catches a tag in a record that may be shared: two cards could then be recognised as being of the same data."""
    with bound._store.reading() as connection:
        tag = connection.exec_driver_sql("SELECT tag FROM privet_fingerprints").scalar_one()
    bound.reserve("clinic", SMALL, fingerprint=fingerprint_of(ROWS))
    shown = [bound.show("clinic").to_json(), bound.verify().to_json(), *(b.to_json() for b in bound.list())]
    assert not [text for text in shown if tag in text]
    assert all(json.loads(text)["privet"] == 1 for text in shown)


def test_a_fingerprint_cannot_leave_by_itself() -> None:
    """Catches pickling, copying and printing."""
    mine = fingerprint_of(ROWS)
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="private"):
            leak(mine)
    with pytest.raises(TypeError):
        json.dumps(mine)
    assert str(mine) == repr(mine) == f"{mine}" == "Fingerprint(<private>)"


def test_a_file_and_its_bytes_are_the_same_data(tmp_path: Path) -> None:
    """A file is read piece by piece; what matters is what is in it."""
    file = tmp_path / "rows.csv"
    file.write_bytes(ROWS * 100_000)
    assert fingerprint_of(file) == fingerprint_of(str(file)) == fingerprint_of(ROWS * 100_000)
    assert fingerprint_of(file) != fingerprint_of(ROWS)
    with pytest.raises(InvalidInput, match=r"none.csv', which cannot be read: no such file .*; check the path, for a"):
        fingerprint_of(str(tmp_path / "none.csv"))
    with pytest.raises(InvalidInput, match=r"check the path$"):
        fingerprint_of(tmp_path / "none.csv")


def test_nothing_has_no_fingerprint(tmp_path: Path) -> None:
    """Catches a file that was never written and stands for every other empty one."""
    (tmp_path / "empty.csv").touch()
    nothing: list[Path | bytes | list[bytes]] = [tmp_path / "empty.csv", b"", []]
    for data in nothing:
        with pytest.raises(InvalidInput, match="empty, and so is every data set without rows"):
            fingerprint_of(data)


def test_the_same_data_is_bound_once(bound: Ledger) -> None:
    """Catches a second version that is the first again; going back to an earlier version stays possible."""
    before = bound.head("clinic")
    with pytest.raises(LedgerError, match="version 1 of 'clinic' is bound to this data already; nothing was changed"):
        bound.bind("clinic", fingerprint_of(ROWS), note="again")
    assert bound.head("clinic") == before
    assert bound.bind("clinic", fingerprint_of(OTHER), note="new").version == 2
    assert bound.bind("clinic", fingerprint_of(ROWS), note="back").version == 3
    assert bound.verify("clinic")


def test_rows_keep_their_borders_and_their_order() -> None:
    """Catches rows that are glued together before they are hashed."""
    assert fingerprint_of(["ab", "c"]) == fingerprint_of(row for row in (b"ab", "c"))
    assert fingerprint_of(["ab", "c"]) != fingerprint_of(["a", "bc"])
    assert fingerprint_of(["ab", "c"]) != fingerprint_of(["c", "ab"])
    with pytest.raises(InvalidInput, match="row of type int"):
        fingerprint_of([1, 2])  # type: ignore[list-item]
    with pytest.raises(InvalidInput, match="data is a int"):
        fingerprint_of(3)  # type: ignore[arg-type]
