"""One data set has one budget, whatever key a ledger is opened with."""

from __future__ import annotations

from pathlib import Path

import pytest

from privet.core.errors import InvalidInput, LedgerError
from privet.core.event import Laplace
from privet.core.unit import Neighbours, Unit
from privet.ledger import Ledger, fingerprint_of

KEYS = (None, b"k" * 32, b"q" * 32)


@pytest.mark.parametrize("first", KEYS)
@pytest.mark.parametrize("second", KEYS)
def test_no_second_budget_with_another_key(first: bytes | None, second: bytes | None, tmp_path: Path) -> None:
    """Catches a fingerprint that depends on the sealing key: every key would give the same data a fresh budget."""
    data = fingerprint_of(b"age\n41\n38\n")
    Ledger(tmp_path / "l.db", key=first).create("clinic", epsilon=1.0, delta=1e-6, fingerprint=data)
    with pytest.raises(LedgerError, match="clinic"):
        Ledger(tmp_path / "l.db", key=second).create("again", epsilon=1.0, delta=1e-6, fingerprint=data)


def test_the_data_is_recognised_without_the_key(tmp_path: Path) -> None:
    """A reader without the key charges the same budget."""
    data = fingerprint_of(b"age\n41\n38\n")
    Ledger(tmp_path / "l.db").create("clinic", epsilon=1.0, delta=1e-6, fingerprint=data)
    assert Ledger(tmp_path / "l.db").reserve("clinic", Laplace(100.0), fingerprint=data).budget == "clinic"


def test_an_event_made_for_another_unit_is_refused(tmp_path: Path) -> None:
    """Noise for a row that is replaced by another says too little of a row that comes or goes."""
    ledger = Ledger(tmp_path / "l.db")
    ledger.create("clinic", epsilon=1.0, delta=1e-6)
    with pytest.raises(InvalidInput, match="unit"):
        ledger.reserve("clinic", Laplace(100.0), unit=Unit(neighbours=Neighbours.REPLACE))
    assert ledger.reserve("clinic", Laplace(100.0), unit=Unit()).budget == "clinic"
    assert len(ledger.show("clinic").entries) == 1
