"""Every method of the table: what it charges is what its card states, and its run can be opened and used."""

from __future__ import annotations

from pathlib import Path

import pytest

from privet.core.event import Composed
from privet.ledger import Ledger, State
from privet.report import load
from privet.runs import METHODS, open_run
from tests.cli.conftest import Run, clinic, privet
from tests.cli.test_train import done, refused

__all__ = ["clinic", "privet"]

PRIVATE = [name for name, method in METHODS.items() if method.is_private]
SETTINGS = {"dp-sgd": "--epochs 1", "pate": "--public public/patients.csv"}
"""What makes a run short, or is required."""


def test_table_names_methods_as_they_name_themselves() -> None:
    """Fails when a method is found by another name than its plans and requests have."""
    assert [method.name for method in METHODS.values()] == list(METHODS)


@pytest.mark.parametrize("name", PRIVATE)
def test_method_charges_what_its_card_states_and_can_be_used(clinic: Run, name: str) -> None:
    """Fails when a method is not offered, is charged twice or for something else than its card and its stored plan
    state, or leaves a run that cannot be opened, predicted with or shown."""
    method = METHODS[name]
    assert name in refused(clinic("train --method magic"))
    # A budget of the command line protects rows that a trusted place holds.
    charged = "--budget clinic" if method.has_central_trust else ""
    done(clinic("ledger create clinic --epsilon 9 --delta 1e-2"))
    words = f"train patients.csv --schema schema.toml --epsilon 4 --method {name} {SETTINGS.get(name, '')}"
    done(clinic(f"{words} {charged} --out run"))
    card, run = load(Path("run")), open_run("run")
    assert card.method.value == method.title
    assert run.plan.event == card.privacy.event.value
    assert run.guarantee.epsilon.upper <= 4.0
    events = tuple(line.event for line in card.bill.value)
    assert card.privacy.event.value == (events[0] if len(events) == 1 else Composed(events))
    if charged:
        with Ledger("privet-ledger.db") as ledger:
            (entry,) = ledger.show("clinic").entries
        assert entry.state is State.COMMITTED
        assert entry.event == card.privacy.event.value
    assert method.title in Path("run/report.html").read_text()
    assert not Path("run/.privet").exists()
    assert done(clinic("predict run patients.csv")).out.startswith("readmitted\n")
