"""Questions about columns whose bounds or values have no source are refused, also where the answer is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.ledger import Ledger
from privet.query import Account, AnswerStore, ask
from tests.query.tables import SCHEMA, clinic


def test_stored_answer_is_not_given_for_a_schema_without_sources(tmp_path: Path) -> None:
    """AnswerStore answers are found by what a schema reads, without its sources. Fails when a draft gets one, as if its
    bounds were public."""
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.create("clinic", epsilon=100.0, delta=1e-5)
    account = Account(ledger, "clinic", AnswerStore(tmp_path / "ledger.db.answers"))
    table = clinic(120)
    first = ask(table, "mean(age)", SCHEMA, account=account, epsilon=0.5, rng=SeededRng(1))
    assert first.charged is not None
    with pytest.raises(InvalidInput, match="no source for the bounds or values of 'age'"):
        ask(table, "mean(age)", SCHEMA.without_sources(), account=account, epsilon=0.5, rng=SeededRng(1))
    assert len(ledger.show("clinic").entries) == 1
