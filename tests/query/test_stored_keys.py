"""A stored answer is given again for the same question alone: every part of a question is part of its key."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from privet.core.errors import LedgerError
from privet.core.random import SeededRng
from privet.data import Number, Schema
from privet.ledger import Ledger, State
from privet.query import Account, AnswerStore, Reply, ask
from privet.query.answer_store import Kept, OpenStore
from privet.query.parser import parse
from tests.query.tables import SCHEMA, clinic

TABLE = clinic(120)
DIFFERENT = (
    "count",
    "count where age > 30",
    "count where age >= 30",
    "count where age > 31",
    "count where bmi > 30",
    "count where not (age > 30)",
    "count where age > 30 and sick = 1",
    "count where age > 30 or sick = 1",
    "count where sick = 1",
    "count where sick = 0",
    "count where ward = north",
    "count where ward = south",
    "count where ward in (north, south)",
    "count where age is missing",
    "count where age is not missing",
    "count by ward",
    "count by ward where age > 30",
    "count by sick",
    "count by ward, sick",
    "mean(age)",
    "mean(age) where sick = 1",
    "mean(bmi)",
    "sum(age)",
    "variance(age)",
    "histogram(age, 4)",
    "histogram(age, 5)",
    "quantile(age, 0.5)",
    "quantile(age, 0.6)",
    "top(ward, 1)",
    "top(ward, 2)",
)


@pytest.fixture
def account(tmp_path: Path) -> Account:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.create("clinic", epsilon=100.0, delta=1e-5)
    ledger.create("other", epsilon=100.0, delta=1e-5)
    return Account(ledger, "clinic", AnswerStore(tmp_path / "ledger.db.answers"))


def asked(account: Account, text: str, seed: int = 1, schema: Schema = SCHEMA, **more: Any) -> Reply:
    return ask(TABLE, text, schema, account=account, epsilon=0.5, rng=SeededRng(seed), **more)


def test_stored_key_differs_wherever_a_question_does(account: Account) -> None:
    """Fails when the key leaves out a part of the question, such as its condition: two questions would share one."""
    stored = account.stored
    assert stored is not None
    asked(account, "count")
    from privet.query.answer_store import AnswerKey
    from privet.query.table_source import TableSource

    data = TableSource.of(TABLE, SCHEMA, ("age",)).fingerprint()
    with stored.held() as store:
        keys = {text: store._hash(AnswerKey(parse(text, SCHEMA), SCHEMA, "clinic", data)) for text in DIFFERENT}
    for one, other in combinations(DIFFERENT, 2):
        assert keys[one] != keys[other], f"{one!r} and {other!r} would share an answer"


@pytest.mark.parametrize(
    "pair",
    [
        ("count", "count where age > 30"),
        ("count where age > 30", "count"),
        ("count where age > 30", "count where age > 60"),
        ("mean(age) where sick = 1", "mean(age) where sick = 0"),
        ("count by ward where sick = 1", "count by ward"),
    ],
)
def test_stored_answer_of_other_rows_is_not_given(account: Account, pair: tuple[str, str]) -> None:
    """Fails when a question is taken for answered although its `where` is another: a wrong answer, for nothing."""
    first = asked(account, pair[0])
    second = asked(account, pair[1], seed=2)
    assert (first.free, second.free) == ((False,), (False,))
    assert second.charged is not None
    assert [answer.question for answer in second.release.value] == [pair[1]]
    assert len(account.ledger.show("clinic", planned=False).entries) == 2


def test_stored_answer_needs_a_charge_that_was_drawn(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when an answer is given again whose entry was given back, or is another budget's: nobody paid for it."""
    reply = asked(account, "count")
    assert reply.free == (False,)
    for budget, ends in (("clinic", "abort"), ("other", "commit")):
        event = reply.release.event
        charge = account.ledger.reserve(budget, event, purpose="elsewhere")
        if ends == "abort":
            charge.abort()
        else:
            charge.draw()
            charge.commit()
        entry, read = charge.id, Kept.from_json

        def forged(text: str, entry: str = entry, read: Any = read) -> Any:
            return replace(read(text), entry=entry)

        monkeypatch.setattr(Kept, "from_json", forged)
        with pytest.raises(LedgerError, match="no entry of 'clinic' that was drawn"):
            asked(account, "count", seed=2)
        monkeypatch.undo()


def test_noise_is_drawn_after_the_ledger_was_told(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when noise is drawn, or rows are read, before the ledger has the charge in the state for it."""
    from privet.query.plan import QueryPlan

    states: list[tuple[str, State]] = []
    tally, draw = QueryPlan.tally, QueryPlan.draw

    def noted(name: str) -> None:
        (entry,) = account.ledger.show("clinic", planned=False).entries or (None,)
        states.append((name, State.ABORTED if entry is None else entry.state))

    def tallied(self: QueryPlan, *args: Any) -> Any:
        noted("tally")
        return tally(self, *args)

    def drawn(self: QueryPlan, *args: Any, **more: Any) -> Any:
        noted("draw")
        return draw(self, *args, **more)

    kept = OpenStore.keep

    def keeping(self: OpenStore, *args: Any) -> None:
        noted("keep")
        kept(self, *args)

    monkeypatch.setattr(QueryPlan, "tally", tallied)
    monkeypatch.setattr(QueryPlan, "draw", drawn)
    monkeypatch.setattr(OpenStore, "keep", keeping)
    asked(account, "count")
    assert states == [("tally", State.RESERVED), ("draw", State.DRAWING), ("keep", State.DRAWING)]
    (entry,) = account.ledger.show("clinic", planned=False).entries
    assert entry.state is State.COMMITTED


def test_stored_answer_of_another_schema_is_not_given(account: Account) -> None:
    """Fails when bounds, which decide what a mean is, are no part of the key."""
    narrow = Schema(
        tuple(Number("age", 0, 50, source="codebook") if each.name == "age" else each for each in SCHEMA.columns)
    )
    asked(account, "mean(age)")
    assert asked(account, "mean(age)", seed=2, schema=narrow).free == (False,)
