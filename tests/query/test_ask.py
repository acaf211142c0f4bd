"""Asking with a ledger: charged first, free the second time, and never an answer of other data."""

from __future__ import annotations

import gzip
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from privet import accounting
from privet.core.errors import BudgetExceeded, InvalidInput, LedgerError
from privet.core.random import SeededRng
from privet.core.unit import Neighbours, Unit
from privet.data import Number, Schema
from privet.ledger import Ledger, State
from privet.query import Account, AnswerStore, Reply, ask
from privet.query.answer_store import OpenStore
from privet.query.table_source import TableSource
from tests.data.sources import sourced
from tests.query.tables import BY_USER, SCHEMA, clinic

TABLE = clinic(400)


@pytest.fixture
def account(tmp_path: Path) -> Account:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.create("clinic", epsilon=3.0, delta=1e-5)
    return Account(ledger, "clinic", AnswerStore(tmp_path / "ledger.db.answers"))


def asked(
    account: Account, *texts: str, data: Any = TABLE, seed: int = 1, schema: Schema = SCHEMA, **more: Any
) -> Reply:
    options = {"epsilon": 0.5} | more
    return ask(data, list(texts), schema, account=account, rng=SeededRng(seed), **options)


def entries(account: Account) -> list[State]:
    return [entry.state for entry in account.ledger.show(account.budget, planned=False).entries]


def test_what_is_new_is_charged(account: Account) -> None:
    """Fails when nothing is charged, something else than the plan, or the charge is not finished."""
    reply = asked(account, "count", "mean(age) by ward")
    (entry,) = account.ledger.show("clinic").entries
    assert entry.state is State.COMMITTED
    assert entry.event == reply.release.event
    assert entry.purpose == "count; mean(age) by ward"
    assert reply.free == (False, False)
    assert reply.charged is not None
    assert reply.charged.epsilon.upper == pytest.approx(0.5)
    assert reply.head == account.ledger.head("clinic")
    assert account.ledger.verify("clinic")


def test_the_second_time_is_free(account: Account) -> None:
    """Fails when the same question is drawn again, which two answers would show, or charged again."""
    first = asked(account, "count", "mean(age) by ward")
    again = asked(account, "mean(age)  BY ward weight 3", "count", seed=2, epsilon=2.0)
    assert again.release.value == first.release.value[::-1]
    assert (again.free, again.charged) == ((True, True), None)
    assert {draw.id for draw in again.release.draws} == {draw.id for draw in first.release.draws}
    assert len(entries(account)) == 1


def test_only_what_is_new_is_paid_for(account: Account) -> None:
    """Fails when a plan with an old question charges for it, or the new one takes the old one's part of ε."""
    old = asked(account, "count")
    reply = asked(account, "count", "mean(age)", epsilon=0.5, seed=2)
    assert reply.free == (True, False)
    assert reply.release.value[0] == old.release.value[0]
    assert reply.charged is not None
    assert reply.charged.epsilon.upper == pytest.approx(0.25)
    assert len(reply.release.draws) == 2
    assert reply.release.guarantee is None  # of two plans together nobody has said the price


def test_the_same_question_twice_is_one(account: Account) -> None:
    """Fails when a question that is asked twice at once is drawn or shown twice, or loses one of its weights."""
    reply = asked(account, "count", "count where age > 90", "count ( * ) weight 2")
    assert [answer.question for answer in reply.release.value] == ["count", "count where age > 90"]
    assert len(reply.release.draws) == len(reply.free) == 2
    shares = [accounting.epsilon(draw.event, 0.0).epsilon.upper for draw in reply.release.draws]
    assert sorted(shares) == pytest.approx([0.5 / 4, 0.5 * 3 / 4])


def test_a_stored_answer_needs_no_delta(account: Account) -> None:
    """Fails when the second time is refused for the lack of a δ that only a draw needs."""
    first = asked(account, "count by town", delta=1e-6)
    again = asked(account, "count by town", seed=2)
    assert (again.free, again.release.value) == ((True,), first.release.value)
    with pytest.raises(InvalidInput, match="delta is 0"):
        asked(account, "count by town", "mean(age) by town")
    assert len(entries(account)) == 1


def test_two_who_ask_the_same_at_once_pay_once(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when both find nothing stored, and both draw and pay."""
    both, find = threading.Barrier(2, timeout=30), AnswerStore.find

    def looked(self: AnswerStore, *args: Any) -> Any:
        found = find(self, *args)
        both.wait()
        return found

    def one(seed: int) -> Reply:
        with Ledger(tmp_path / "ledger.db") as ledger:
            mine = Account(ledger, "clinic", AnswerStore(tmp_path / "ledger.db.answers"))
            return asked(mine, "count", seed=seed)

    monkeypatch.setattr(AnswerStore, "find", looked)
    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(one, (1, 2)))
    assert sorted(reply.free for reply in replies) == [(False,), (True,)]
    assert replies[0].release.value == replies[1].release.value
    assert entries(account) == [State.COMMITTED]


def test_whoever_waits_too_long_is_told(account: Account, tmp_path: Path) -> None:
    """Fails when a file that another process holds is called damaged, or something is charged meanwhile."""
    asked(account, "count")
    path = tmp_path / "ledger.db.answers"
    hasty = Account(account.ledger, "clinic", AnswerStore(path, wait=0.0))
    with AnswerStore(path).held():
        assert asked(hasty, "count").free == (True,)  # what is stored can be read
        with pytest.raises(LedgerError, match="another process is asking"):
            asked(hasty, "mean(age)")
    assert len(entries(account)) == 1
    with pytest.raises(InvalidInput, match=r"stored is .*, where no answers can be kept: no such file"):
        asked(Account(account.ledger, "clinic", AnswerStore(tmp_path / "none" / "x")), "mean(age)")
    assert len(entries(account)) == 1


def test_other_data_are_not_answered_from_the_store(account: Account) -> None:
    """Fails when an answer of other rows, another schema or another budget is given: it would be of other data."""
    asked(account, "count")
    assert asked(account, "count", data=TABLE.head(399)).free == (False,)
    assert asked(account, "count", data=TABLE.with_columns(pl.col("age") + 1)).free == (False,)
    other = sourced(Schema((Number("age", 0, 99), *SCHEMA.columns[1:])))
    assert asked(account, "count", schema=other).free == (False,)
    account.ledger.create("school", epsilon=3.0, delta=1e-5)
    assert asked(Account(account.ledger, "school", account.stored), "count").free == (False,)
    assert asked(account, "count").free == (True,)


def test_a_person_may_pay_again(account: Account) -> None:
    """Fails when `fresh` gives the old answer, or is not charged."""
    first = asked(account, "count")
    second = asked(account, "count", fresh=True, seed=5)
    assert second.free == (False,)
    assert second.release.draws != first.release.draws
    assert len(entries(account)) == 2
    assert asked(account, "count").release.value == second.release.value


@pytest.mark.parametrize(
    ("text", "more", "error"),
    [
        ("mean(agee)", {}, InvalidInput),
        ("mean age", {}, InvalidInput),
        ("mean(ward)", {}, InvalidInput),
        ("count by town", {}, InvalidInput),
        ("count", {"epsilon": -1.0}, InvalidInput),
        ("count", {"epsilon": 50.0}, BudgetExceeded),
        ("count", {"data": TABLE.drop("age")}, InvalidInput),
        ("count", {"data": TABLE.with_columns(extra=1)}, InvalidInput),
        ("count", {"schema": BY_USER}, InvalidInput),
        ("count", {"data": "no-such-file.csv"}, InvalidInput),
    ],
    ids=str,
)
def test_a_refusal_is_free(account: Account, text: str, more: dict[str, Any], error: type[Exception]) -> None:
    """Fails when what can be known without the rows is charged, or takes more than one line."""
    with pytest.raises(error) as caught:
        asked(account, text, "mean(age)", **more)
    assert "\n" not in str(caught.value)
    assert entries(account) == []


def test_a_budget_of_another_unit_refuses(account: Account) -> None:
    """Fails when an event for rows that come and go is charged where rows are replaced."""
    account.ledger.create("replaced", epsilon=3.0, delta=1e-5, unit=Unit(neighbours=Neighbours.REPLACE))
    with pytest.raises(InvalidInput, match="unit"):
        asked(Account(account.ledger, "replaced"), "count")


def test_the_charge_stands_before_a_row_is_read(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when rows are read before the charge, or noise is drawn before `drawing` is on the disk."""
    seen: list[State] = []
    pieces = TableSource.pieces

    def watched(self: TableSource, names: Any) -> Any:
        seen.extend(entries(account))
        return pieces(self, names)

    class Watching(SeededRng):
        def words(self, n: int) -> Any:
            seen.extend(entries(account))
            return super().words(n)

        def bits(self, n: int) -> bytes:
            seen.extend(entries(account))
            return super().bits(n)

        def below(self, bound: Any, size: Any = None) -> Any:
            seen.extend(entries(account))
            return super().below(bound, size)

    monkeypatch.setattr(TableSource, "pieces", watched)
    ask(TABLE, "count", SCHEMA, account=account, epsilon=0.5, rng=Watching(1))
    assert seen[0] is State.RESERVED
    assert len(seen) > 1
    assert set(seen[1:]) == {State.DRAWING}


def test_a_file_that_breaks_off_gives_the_charge_back(account: Account, tmp_path: Path) -> None:
    """Fails when nothing was drawn and the charge stays: packed data that are cut off are no matter of a row."""
    path = tmp_path / "t.csv.gz"
    rows = "".join(f"{n % 90},{n * n % 60},north,0,Bath,p{n * n}\n" for n in range(60000))
    path.write_bytes(gzip.compress(f"age,bmi,ward,sick,town,id\n{rows}".encode())[:-2000])
    with pytest.raises(InvalidInput, match="damaged"):
        asked(account, "count", data=path)
    assert entries(account) == [State.ABORTED]


def test_a_record_that_cannot_be_read_is_charged(account: Account, tmp_path: Path) -> None:
    """Fails when a row with a cell too many or an open quote raises and is given back: a free bit about that row."""
    path = tmp_path / "t.csv"
    for place, row in enumerate(("1,2,north,0,Bath,a", "1,2,north,0,Bath,a,7", '"1,2,north,0,Bath,a')):
        path.write_text(f"age,bmi,ward,sick,town,id\n1,2,north,0,Bath,a\n{row}\n")
        assert asked(account, "count", "mean(age) by ward", data=path).free == (False, False)
        assert entries(account) == [State.COMMITTED] * (place + 1)


def test_a_file_that_changes_meanwhile_is_refused(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when an answer of new rows is kept under the fingerprint of the old ones."""
    path = tmp_path / "t.csv"
    TABLE.write_csv(path)
    fingerprint = TableSource.fingerprint

    def slow(self: TableSource) -> Any:
        found = fingerprint(self)
        TABLE.head(9).write_csv(path)
        return found

    monkeypatch.setattr(TableSource, "fingerprint", slow)
    with pytest.raises(InvalidInput, match="changed while they were read"):
        asked(account, "count", data=path)
    assert entries(account) == [State.ABORTED]


def test_a_count_is_of_the_file_whose_answer_it_becomes(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when the rows of a Parquet file are counted before its fingerprint is taken: they would be another's."""
    path, stamp = tmp_path / "t.parquet", TableSource.stamp
    TABLE.write_parquet(path)

    def late(self: TableSource) -> tuple[int, ...]:
        monkeypatch.undo()
        TABLE.head(0).write_parquet(path)
        return stamp(self)

    monkeypatch.setattr(TableSource, "stamp", late)
    (answer,) = asked(account, "count", data=path, epsilon=2.0).release.value
    assert answer.rows[0].value < 100


def test_a_crash_after_drawing_keeps_the_charge(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when noise may have been seen and the charge is given back."""

    def broken(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(OpenStore, "keep", broken)
    with pytest.raises(KeyboardInterrupt):
        asked(account, "count")
    assert entries(account) == [State.DRAWING]


def test_a_bound_budget_takes_its_own_data_only(tmp_path: Path) -> None:
    """Fails when a budget that is bound to a file is charged for another one."""
    from privet.ledger import fingerprint_of

    TABLE.write_csv(tmp_path / "a.csv")
    TABLE.head(9).write_csv(tmp_path / "b.csv")
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.create("clinic", epsilon=3.0, delta=1e-5, fingerprint=fingerprint_of(tmp_path / "a.csv"))
    account = Account(ledger, "clinic", AnswerStore(tmp_path / "answers"))
    assert asked(account, "count", data=tmp_path / "a.csv").free == (False,)
    with pytest.raises(LedgerError, match="bound to other data"):
        asked(account, "count", data=tmp_path / "b.csv")
    assert asked(account, "count", data=tmp_path / "a.csv").free == (True,)


def test_answers_that_the_ledger_does_not_know_are_refused(account: Account, tmp_path: Path) -> None:
    """Fails when answers are believed that no entry of this ledger paid for, such as those beside another ledger."""
    asked(account, "count")
    other = Ledger(tmp_path / "other.db")
    other.create("clinic", epsilon=3.0, delta=1e-5)
    with pytest.raises(LedgerError):
        asked(Account(other, "clinic", account.stored), "count")
    assert other.show("clinic", planned=False).entries == ()


def test_a_damaged_store_is_refused_before_the_charge(account: Account, tmp_path: Path) -> None:
    """Fails when a file of answers that cannot be read is ignored, or found out only after the charge."""
    asked(account, "count")
    path = tmp_path / "ledger.db.answers"
    connection = sqlite3.connect(path)
    connection.execute("UPDATE answers SET body = '{}'")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match="move it away"):
        asked(account, "count")
    path.write_text("not a database at all, and long enough to be taken for one" * 10)
    with pytest.raises(LedgerError, match="cannot be used"):
        asked(account, "mean(age)")
    assert entries(account) == [State.COMMITTED]


def test_the_store_holds_nothing_of_the_data(account: Account, tmp_path: Path) -> None:
    """Fails when the file of answers holds a plain fingerprint, or can be read by others."""
    asked(account, "count")
    path = tmp_path / "ledger.db.answers"
    assert path.stat().st_mode & 0o077 == 0
    digest = TableSource.of(TABLE, SCHEMA, TABLE.columns).fingerprint()._digest
    assert digest not in path.read_bytes()
    assert digest.hex().encode() not in path.read_bytes()
