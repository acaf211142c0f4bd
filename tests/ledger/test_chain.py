"""What `verify` finds: edits, drops, swaps, a cut tail, and a rewrite."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from privet.core.errors import InvalidInput, LedgerError
from privet.core.event import Laplace
from privet.ledger import Fingerprint, Ledger, State, Verification, chain, fingerprint_of

KEY = b"a key that lies somewhere else"


@pytest.fixture
def filled(file_ledger: Ledger) -> Ledger:
    """A ledger with something of every kind in it: 14 rows."""
    for noise in (100.0, 200.0):
        with file_ledger.reserve("clinic", Laplace(noise), purpose="count").drawing():
            pass
    file_ledger.reserve("clinic", Laplace(300.0)).abort()
    run = file_ledger.reserve("clinic", Laplace(400.0), resumable=True)
    run.draw()
    file_ledger.resume(run.id, run.token or "")
    file_ledger.bind("clinic", fingerprint_of(b"new rows"), note="the 2024 intake")
    file_ledger.reserve("clinic", Laplace(500.0), fingerprint=fingerprint_of(b"new rows"))
    assert file_ledger.verify() == Verification(("clinic",), 14)
    return file_ledger


def edit(path: Path, *statements: str) -> None:
    """What somebody with the file and a database client can do."""
    with sqlite3.connect(path) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount != 0, statement
    connection.close()


@pytest.mark.parametrize(
    "change",
    [
        "kind = 'aborted'",
        "kind = 'committed'",
        "entry = 'ffffffffffffffff'",
        "at = '2020-01-01T00:00:00.000+00:00'",
        "body = replace(body, '100.0', '900.0')",
        "body = replace(body, 'count', 'mean')",
        "body = '{}'",
        "body = 'no JSON'",
        "state = zeroblob(32)",
        "hash = zeroblob(32)",
    ],
)
def test_an_edited_row_is_found(filled: Ledger, path: Path, change: str) -> None:
    """Catches a hash that skips a column."""
    edit(path, "UPDATE privet_chain SET CHANGE WHERE seq = 2".replace("CHANGE", change))
    found = filled.verify("clinic")
    assert not found
    assert "row 2" in found.problems[0]


@pytest.mark.parametrize("field", range(7))
def test_the_hash_covers_every_field(field: int) -> None:
    """Catches a field that is left out of the hash, also where another check would find the edit by luck."""
    one = [chain.START, 5, "reserved", "ab", "2024-01-01", "{}", bytes(32)]
    other = list(one)
    value = one[field]
    other[field] = value + 1 if isinstance(value, int) else value + value[:1]  # type: ignore[index]
    assert chain.row_hash(*one) != chain.row_hash(*other)  # type: ignore[arg-type]


def test_fields_cannot_flow_into_each_other() -> None:
    """Catches hashing of fields that are merely glued together."""
    first = chain.row_hash(chain.START, 1, "ab", "c", "", "", b"")
    assert first != chain.row_hash(chain.START, 1, "a", "bc", "", "", b"")


@pytest.mark.parametrize("seq", range(1, 15))
def test_a_dropped_row_is_found(filled: Ledger, path: Path, seq: int) -> None:
    """Any row, the first and the last among them."""
    edit(path, "DELETE FROM privet_chain WHERE seq = SEQ".replace("SEQ", str(seq)))
    found = filled.verify("clinic")
    assert not found
    with (
        pytest.raises(LedgerError) if seq >= 13 else pytest.raises(AssertionError)
    ):  # the head's own rows are always read
        filled.reserve("clinic", Laplace(1000.0), fingerprint=fingerprint_of(b"new rows"))
        raise AssertionError


def test_swapped_rows_are_found(filled: Ledger, path: Path) -> None:
    """Catches a chain whose rows do not know their place."""
    edit(
        path,
        "UPDATE privet_chain SET seq = 99 WHERE seq = 2",
        "UPDATE privet_chain SET seq = 2 WHERE seq = 5",
        "UPDATE privet_chain SET seq = 5 WHERE seq = 99",
    )
    found = filled.verify("clinic")
    assert [problem for problem in found.problems if "row 2 (" in problem]
    assert [problem for problem in found.problems if "row 5 (" in problem]


@pytest.mark.parametrize(
    "change",
    [
        """state = replace(state, '"active":4', '"active":3')""",
        """state = replace(state, '"basic":false', '"basic":true')""",
        """state = replace(state, '"version":1', '"version":2')""",
        """terms = replace(terms, '"epsilon":1.0', '"epsilon":8.0')""",
        """terms = replace(terms, '"name":"clinic"', '"name":"other"')""",
        """state = 'no JSON'""",
        "length = length - 1",
        "head = zeroblob(32)",
    ],
)
def test_an_edited_budget_is_found_and_not_used(filled: Ledger, path: Path, change: str) -> None:
    """Catches sums that are lowered by hand: they are checked against the chain's end before every admission."""
    edit(path, "UPDATE privet_budgets SET CHANGE".replace("CHANGE", change))
    assert not filled.verify("clinic")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="privet ledger verify"):
        filled.reserve("clinic", Laplace(1000.0), fingerprint=fingerprint_of(b"new rows"))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE privet_entries SET state = 'reserved' WHERE state = 'drawing'",
        "UPDATE privet_entries SET state = 'reserved' WHERE state = 'committed'",
        "UPDATE privet_entries SET attempt = 7 WHERE state = 'drawing'",
        "DELETE FROM privet_entries WHERE state = 'aborted'",
        "INSERT INTO privet_entries SELECT 'ffffffffffffffff', budget, seq, last, state, 0 FROM privet_entries LIMIT 1",
        "UPDATE privet_fingerprints SET tag = 'none'",
        "DELETE FROM privet_fingerprints",
    ],
)
def test_edited_tables_beside_the_chain_are_found(filled: Ledger, path: Path, statement: str) -> None:
    """Catches a state, or a binding, that is changed where it is only looked up."""
    edit(path, statement)
    assert not filled.verify("clinic")


@pytest.mark.parametrize("state", ["drawing", "committed"])
def test_an_edited_state_gives_no_refund(filled: Ledger, path: Path, state: str) -> None:
    """Catches an abort that trusts the table of entries alone."""
    with sqlite3.connect(path) as connection:
        id_ = connection.execute("SELECT id FROM privet_entries WHERE state = ?", (state,)).fetchone()[0]
    connection.close()
    edit(path, "UPDATE privet_entries SET state = 'reserved' WHERE id = 'ID'".replace("ID", id_))
    with pytest.raises(LedgerError, match="changed outside"):
        filled.release(id_)
    assert filled.budget("clinic").active == 4


@pytest.mark.parametrize("committed", [False, True])
def test_a_state_that_points_back_gives_no_refund(ledger: Ledger, committed: bool) -> None:
    """Catches steps that trust an entry which was pointed back to the row of its reservation after it was drawn."""
    charge = ledger.reserve("clinic", Laplace(100.0))
    charge.draw()
    if committed:
        charge.commit()
    before = ledger.budget("clinic")
    with ledger._store.writing() as connection:
        connection.exec_driver_sql("UPDATE privet_entries SET state = 'reserved', last = seq")
    for to in (State.DRAWING, State.COMMITTED, State.ABORTED):
        with pytest.raises(LedgerError, match="changed outside"):
            ledger.step(charge.id, to)
    with pytest.raises(LedgerError, match="changed outside"):
        ledger.release(charge.id)
    assert ledger.budget("clinic") == before
    assert not ledger.verify()


@pytest.mark.parametrize("to", [State.COMMITTED, State.ABORTED])
def test_a_committed_entry_cannot_be_drawing_again(ledger: Ledger, to: State) -> None:
    """The same for an entry that is pointed back to the row in which it was drawn."""
    with ledger.reserve("clinic", Laplace(100.0)).drawing() as charge:
        pass
    with ledger._store.writing() as connection:
        connection.exec_driver_sql("UPDATE privet_entries SET state = 'drawing', last = seq + 1")
    with pytest.raises(LedgerError, match="changed outside"):
        ledger.step(charge.id, to)
    assert ledger.budget("clinic").active == 1


@pytest.mark.parametrize("also", [None, "chain", "entries"])
def test_a_deleted_budget_is_missed_and_not_made_anew(ledger: Ledger, also: str | None) -> None:
    """Catches a spent budget that is deleted, not missed by `verify`, and created again with nothing spent."""
    ledger.bind("clinic", fingerprint_of(b"rows"), note="first")
    ledger.reserve("clinic", Laplace(100.0), fingerprint=fingerprint_of(b"rows")).draw()
    with ledger._store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM privet_budgets WHERE name = 'clinic'")
        if also is not None:
            connection.exec_driver_sql("DELETE FROM privet_ALSO".replace("ALSO", also))
    found = ledger.verify()
    assert len(found.problems) == 1
    assert "was deleted" in found.problems[0]
    assert "1 of its fingerprints remain" in found.problems[0]
    with pytest.raises(LedgerError, match="restore a backup"):
        ledger.create("clinic", epsilon=1.0, delta=1e-6)
    if also != "chain":
        assert "4 of its chain's rows" in found.problems[0]
        assert found.broken == ("clinic",)
        assert ledger.verify("clinic").problems == found.problems
        # Another name is another matter; but it must not continue what was left behind.
        ledger.create("other", epsilon=1.0, delta=1e-6)
        assert ledger.verify("other").rows == 1
        assert ledger.verify().broken == ("clinic",)


def test_a_renamed_budget_is_not_made_anew(filled: Ledger, path: Path) -> None:
    """Catches a spent budget that is moved out of the way."""
    edit(path, """UPDATE privet_budgets SET name = 'x', terms = replace(terms, '"clinic"', '"x"')""")
    assert filled.verify().broken == ("x",)
    with pytest.raises(LedgerError, match="deleted or renamed"):
        filled.create("clinic", epsilon=1.0, delta=1e-6)


def test_only_what_is_broken_is_named(filled: Ledger, path: Path) -> None:
    """Catches a report that drowns one dropped row in its consequences, doubts others, or sends people in a circle."""
    filled.create("ward", epsilon=1.0, delta=1e-6)
    edit(path, "DELETE FROM privet_chain WHERE seq = 2")
    found = filled.verify()
    assert (found.budgets, found.broken) == (("clinic", "ward"), ("clinic",))
    assert found.problems[0] == "clinic: row 2 is missing"
    assert len(found.problems) == 2
    assert "more problems, which may follow" in found.problems[1]


def test_problems_of_their_own_are_all_told(filled: Ledger, path: Path) -> None:
    """Catches a second edit that is taken for a consequence of the first."""
    edit(path, "UPDATE privet_chain SET at = '2020-01-01T00:00:00.000+00:00' WHERE seq IN (2, 9)")
    assert [problem.split(" (")[0] for problem in filled.verify().problems] == ["clinic: row 2", "clinic: row 9"]


@pytest.mark.parametrize(
    "statement", ["UPDATE privet_chain SET body = 'no JSON'", "UPDATE privet_chain SET body = '[]'"]
)
def test_verify_does_not_advise_itself(filled: Ledger, path: Path, statement: str) -> None:
    """Catches advice of other calls in what `verify` says."""
    edit(path, statement)
    assert not [problem for problem in filled.verify().problems if "ledger verify" in problem]


def test_another_end_is_told_apart_from_a_shorter_chain(filled: Ledger, path: Path) -> None:
    """Catches a sentence that compares row 14 with row 14."""
    edit(path, "UPDATE privet_budgets SET head = zeroblob(32)")
    assert filled.verify().problems == (
        "clinic: the budget's row names another hash for row 14, the last, than the chain has",
    )
    edit(path, "DELETE FROM privet_chain WHERE seq = 14")
    assert "ends at row 14 of the chain, which ends at row 13" in filled.verify().problems[0]


def test_a_cut_tail_is_found_with_the_head(filled: Ledger, path: Path, tmp_path: Path) -> None:
    """An older copy of the file is flawless in itself; only a head from outside shows what is missing."""
    copy = tmp_path / "older.db"
    shutil.copy(path, copy)
    filled.reserve("clinic", Laplace(1000.0), fingerprint=fingerprint_of(b"new rows"))
    head = filled.head("clinic")
    assert filled.verify("clinic", head=head)
    older = Ledger(copy)
    assert older.verify("clinic")
    found = older.verify("clinic", head=head)
    assert "its tail was cut" in found.problems[0]
    assert filled.verify("clinic", head=older.head("clinic"))


def test_another_history_is_found_with_the_head(tmp_path: Path) -> None:
    """Two ledgers with the same entries have different heads: a budget's first row has a number of its own."""
    ledgers = [Ledger(tmp_path / name) for name in ("a.db", "b.db")]
    for ledger in ledgers:
        ledger.create("clinic", epsilon=1.0, delta=1e-6)
        ledger.reserve("clinic", Laplace(100.0))
    found = ledgers[1].verify("clinic", head=ledgers[0].head("clinic"))
    assert "not the one that the given head names" in found.problems[0]


@pytest.mark.parametrize("head", ["", "12", "0:" + "0" * 64, "3:xyz", "3:" + "AB" * 32])
def test_a_head_that_is_none_is_refused(file_ledger: Ledger, head: str) -> None:
    """Catches a head that is cut when copied, and would then verify nothing."""
    with pytest.raises(InvalidInput, match="head"):
        file_ledger.verify("clinic", head=head)
    with pytest.raises(InvalidInput, match="name the budget"):
        file_ledger.verify(head=file_ledger.head("clinic"))


def rewrite(path: Path, key: bytes | None) -> None:
    """Drop the last charge and make everything fit again, as somebody could who has the file and this code."""
    path.unlink()
    forged = Ledger(path, key=key)
    forged.create("clinic", epsilon=1.0, delta=1e-6)
    with forged.reserve("clinic", Laplace(100.0)).drawing():
        pass


def sealed(path: Path) -> Ledger:
    """A ledger whose chain is sealed, with two charges."""
    ledger = Ledger(path, key=KEY)
    ledger.create("clinic", epsilon=1.0, delta=1e-6)
    for _ in range(2):
        with ledger.reserve("clinic", Laplace(100.0)).drawing():
            pass
    return ledger


@pytest.mark.parametrize("key", [None, b"another key of the forger's own"])
def test_a_rewrite_is_found_with_the_key(path: Path, key: bytes | None) -> None:
    """Catches seals that are not looked at: a rewritten chain is flawless in itself."""
    checked = sealed(path).verify("clinic")
    assert checked
    assert checked.sealed
    rewrite(path, key)
    assert Ledger(path).verify("clinic")
    assert not Ledger(path).verify("clinic").sealed
    found = Ledger(path, key=KEY).verify("clinic")
    assert not found
    assert "rewritten since, which the given key cannot tell apart" in found.problems[0]
    assert not found.sealed


def test_a_budget_without_a_key_beside_one_with_it(path: Path) -> None:
    """Catches an honest budget that is called broken because a key was given for its neighbour."""
    ledger = sealed(path)
    plain = Ledger(path)
    plain.create("ward", epsilon=1.0, delta=1e-6)
    found = ledger.verify()
    assert (bool(found), found.broken, found.unproven) == (False, (), ("ward",))
    assert [problem.split(",")[0] for problem in found.problems] == ["ward: made without a key"]
    assert ledger.verify("clinic").sealed
    # A head that was kept says that the budget never had a key; and without the key nothing was asked.
    vouched = ledger.verify("ward", head=plain.head("ward"))
    assert (bool(vouched), vouched.sealed, vouched.unproven) == (True, False, ())
    assert plain.verify("ward")


@pytest.mark.parametrize("key", [None, b"another key of the forger's own"])
def test_a_rewrite_cannot_pass_as_a_budget_without_a_key(path: Path, key: bytes | None) -> None:
    """Catches a check that believes a budget's own row when it says that it has no seals, or a head of other rows."""
    ledger = Ledger(path, key=KEY)
    first = ledger.create("clinic", epsilon=1.0, delta=1e-6).head
    ledger.reserve("clinic", Laplace(100.0))
    last = ledger.head("clinic")
    rewrite(path, key)
    forged = Ledger(path, key=key).head("clinic")
    for head in (None, first, last):
        found = Ledger(path, key=KEY).verify("clinic", head=head)
        assert not found
        assert found.unproven == ("clinic",)
    # Whoever gives the forger's head has been deceived elsewhere: a head is what one trusts.
    assert Ledger(path, key=KEY).verify("clinic", head=forged)


def test_damage_in_a_budget_without_a_key_is_still_damage(path: Path) -> None:
    """Catches a broken chain that is told as one which merely has no seals, or a head that vouches for damage."""
    sealed(path)
    plain = Ledger(path)
    plain.create("ward", epsilon=1.0, delta=1e-6)
    plain.reserve("ward", Laplace(100.0))
    head = plain.head("ward")
    edit(path, "UPDATE privet_chain SET at = '2020' WHERE budget = 2 AND seq = 1")
    found = Ledger(path, key=KEY).verify()
    assert (found.broken, found.unproven) == (("ward",), ("ward",))
    assert not Ledger(path, key=KEY).verify("ward", head=head)


@pytest.mark.parametrize(
    "change", ["seal = NULL", "seal = zeroblob(32)", "seal = (SELECT seal FROM privet_chain WHERE seq = 4)"]
)
def test_a_missing_seal_is_found(path: Path, change: str) -> None:
    """Catches a forger who keeps the name of the key and leaves the seals out, or copies them."""
    ledger = sealed(path)
    edit(path, "UPDATE privet_chain SET CHANGE WHERE seq = 3".replace("CHANGE", change))
    assert "row 3" in ledger.verify("clinic").problems[0]
    assert Ledger(path).verify("clinic")


@pytest.mark.parametrize("key", [None, b"not the key at all, but long"])
def test_a_sealed_budget_is_written_only_with_its_key(path: Path, key: bytes | None) -> None:
    """Catches a row without a seal in a sealed chain, which would look like a forgery later."""
    sealed(path)
    with pytest.raises(LedgerError, match="sealed with a key"):
        Ledger(path, key=key).reserve("clinic", Laplace(100.0))
    assert Ledger(path, key=KEY).verify("clinic")


def test_a_budget_rewritten_without_seals_is_not_charged_with_the_key(path: Path) -> None:
    """Catches a spent budget that a forger makes anew, unsealed, and that a sealed client then spends again."""
    sealed(path)
    rewrite(path, None)
    keyed = Ledger(path, key=KEY)
    with pytest.raises(LedgerError, match="has no seals: it was made without a key, or rewritten since; if you made"):
        keyed.reserve("clinic", Laplace(100.0))
    assert keyed.budget("clinic").entries == 1
    Ledger(path).reserve("clinic", Laplace(100.0))  # who asks without the key claims nothing about rewriting


@pytest.mark.parametrize("change", ["seal = NULL", "seal = (SELECT seal FROM privet_chain WHERE seq = 1)"])
def test_a_last_row_without_its_seal_is_not_built_upon(path: Path, change: str) -> None:
    """Catches a chain rewritten under the name of the key: its next row would be sealed, and look like a witness."""
    ledger = sealed(path)
    edit(
        path, "UPDATE privet_chain SET CHANGE WHERE seq = (SELECT max(seq) FROM privet_chain)".replace("CHANGE", change)
    )
    with pytest.raises(LedgerError, match="last row of budget 'clinic' does not have the seal of the key"):
        ledger.reserve("clinic", Laplace(100.0))


def test_keys_come_from_files_and_from_the_environment(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same key in three ways; and what is no key is refused by name."""
    sealed(path)
    file = tmp_path / "ledger.key"
    file.write_bytes(KEY + b"\n")
    assert Ledger(path, key=file).verify("clinic").sealed
    monkeypatch.setenv("PRIVET_LEDGER_KEY_FILE", str(file))
    assert Ledger(path).verify("clinic").sealed
    with pytest.raises(InvalidInput, match="key has 5 bytes"):
        Ledger(path, key=b"short")
    with pytest.raises(InvalidInput, match=r"key names the file '.*none.key', which cannot be read: no such file"):
        Ledger(path, key=tmp_path / "none.key")


def test_limits_that_are_too_high_are_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a budget that was created with limits above what its ε and δ allow, by code that was tampered with."""
    from dataclasses import replace

    from privet.ledger import ledger as module
    from privet.ledger.filter import Rules, rules_for

    def generous(epsilon: float, delta: float, orders: tuple[float, ...] | None = None) -> Rules:
        rules = rules_for(epsilon, delta, orders)
        return replace(rules, limits=tuple(2 * limit for limit in rules.limits))

    monkeypatch.setattr(module, "rules_for", generous)
    Ledger(path).create("clinic", epsilon=1.0, delta=1e-6)
    assert "limits are above" in Ledger(path).verify("clinic").problems[0]


def test_entries_that_did_not_fit_are_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a history that passes the budget although its chain is whole: verify asks the filter again."""
    from privet.ledger.filter import Sums

    ledger = Ledger(path)
    ledger.create("clinic", epsilon=1.0, delta=0.0)
    honest: Callable[..., float | None] = Sums.order_for
    monkeypatch.setattr(Sums, "order_for", lambda *_: 2.0)
    ledger.reserve("clinic", Laplace(0.5))
    monkeypatch.setattr(Sums, "order_for", honest)
    assert "does not fit" in ledger.verify("clinic").problems[0]


def test_a_fingerprint_is_not_in_what_verify_says(filled: Ledger) -> None:
    """Catches private things in output that may be shared."""
    assert "Fingerprint" not in filled.verify().to_json()
    assert repr(Fingerprint(bytes(32))) == "Fingerprint(<private>)"
