"""A long history costs an admission nothing: it is never read. The times are in benchmarks/ledger.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa

from privet.core.event import Laplace
from privet.ledger import Ledger, fingerprint_of

EVENT = Laplace(1000.0)
Statement = tuple[str, Any]


@contextmanager
def listening() -> Iterator[list[Statement]]:
    """Every statement that reaches a database meanwhile, with its values."""
    heard: list[Statement] = []

    def hear(_: sa.Connection, __: object, statement: str, parameters: Any, *___: object) -> None:
        heard.append((" ".join(statement.split()), parameters))

    sa.event.listen(sa.Engine, "before_cursor_execute", hear)
    yield heard
    sa.event.remove(sa.Engine, "before_cursor_execute", hear)


def charge(ledger: Ledger) -> list[Statement]:
    """The statements of one charge from the reservation to the commit."""
    with listening() as heard:
        one = ledger.reserve("clinic", EVENT, fingerprint=fingerprint_of(b"rows"))
        one.draw()
        one.commit()
        ledger.reserve("clinic", EVENT, fingerprint=fingerprint_of(b"rows")).abort()
    return heard


@pytest.fixture
def bound(url: str) -> Iterator[Ledger]:
    """A ledger with one budget and data bound to it."""
    with Ledger(url) as ledger:
        ledger.create("clinic", epsilon=1.0, delta=1e-6, fingerprint=fingerprint_of(b"rows"))
        charge(ledger)
        yield ledger


def test_a_charge_does_the_same_work_whatever_came_before(bound: Ledger) -> None:
    """Catches a loop over the history, or over what is open."""
    early = [statement for statement, _ in charge(bound)]
    for _ in range(100):
        bound.reserve("clinic", EVENT, fingerprint=fingerprint_of(b"rows")).draw()
    late = [statement for statement, _ in charge(bound)]
    assert late == early
    assert len(late) < 80


def test_a_charge_finds_every_row_by_its_key(path: Any) -> None:
    """SQLite explains each statement of a charge: all of them search an index, none scans a table or sorts."""
    ledger = Ledger(path)
    ledger.create("clinic", epsilon=1.0, delta=1e-6, fingerprint=fingerprint_of(b"rows"))
    for _ in range(50):
        ledger.reserve("clinic", EVENT, fingerprint=fingerprint_of(b"rows")).draw()
    heard = [(text, values) for text, values in charge(ledger) if text.split()[0] in ("SELECT", "UPDATE", "DELETE")]
    assert len(heard) > 20
    with ledger._store.reading() as connection:
        for text, values in heard:
            plan = [str(row[-1]) for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values)]
            assert plan, text
            assert all(step.startswith("SEARCH") for step in plan), (text, plan)
            by_entry = "max(privet_chain.seq)" in text and any("privet_chain_entry" in step for step in plan)
            assert "privet_chain" not in text or "seq >=" in text or by_entry, (text, plan)


def test_a_charge_reads_few_rows(bound: Ledger) -> None:
    """However long the chain, at most two of its rows are read at a time."""
    for _ in range(30):
        bound.reserve("clinic", EVENT, fingerprint=fingerprint_of(b"rows"))
    spans = []
    for text, values in charge(bound):
        if text.startswith("SELECT") and "FROM privet_chain" in text and "max(" not in text:
            numbers = list(values.values()) if isinstance(values, dict) else list(values)
            spans.append(numbers[2] - numbers[1])
    assert spans
    assert set(spans) == {1}
