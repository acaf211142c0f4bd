"""Which neighbors a plan offers, by what is public of its rows; and how many steps it prices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from privet.core.errors import InvalidInput
from privet.core.event import Repeated
from privet.core.unit import Neighbours, Unit
from privet.ledger import Ledger
from privet.training import DPSGD
from privet.training.plan import BatchSampling

GIVEN: dict[str, Any] = {"clip": 1.0, "noise_multiplier": 1.0, "batch_size": 10, "epochs": 3.0, "delta": 1e-5}
COUNTED: dict[str, dict[str, Any]] = {
    "Poisson": {},
    "fixed size": {"batches": BatchSampling.FIXED_SIZE},
    "fixed size of a population": {"batches": BatchSampling.FIXED_SIZE, "population": 100},
    "shuffled": {"batches": BatchSampling.SHUFFLED},
}


@pytest.mark.parametrize("how", COUNTED)
def test_plan_that_counts_its_rows_offers_no_add_remove(how: str) -> None:
    """Catches add/remove for a run whose sampling rate or batches depend on the number of rows: one row more changes
    them, so that the number, which that unit keeps private, shows."""
    plan = DPSGD(**(GIVEN | COUNTED[how]))
    assert plan.counts_rows
    assert plan.unit().neighbours is Neighbours.ZERO_OUT
    assert DPSGD(**(GIVEN | COUNTED[how]), neighbours=Neighbours.REPLACE).unit().neighbours is Neighbours.REPLACE
    with pytest.raises(InvalidInput, match="neighbours is add/remove"):
        DPSGD(**(GIVEN | COUNTED[how]), neighbours=Neighbours.ADD_REMOVE).unit()


@pytest.mark.parametrize("public", [{"population": 100}, {"sample_rate": 0.1, "epochs": None, "steps": 30}], ids=str)
def test_plan_with_a_public_rate_offers_add_remove(public: dict[str, Any]) -> None:
    """Catches a plan that counts rows although nothing of it depends on them."""
    plan = DPSGD(**(GIVEN | public))
    assert plan.unit().neighbours is Neighbours.ADD_REMOVE
    assert plan.event(rows=99) == plan.event(rows=100) == plan.event()


@pytest.mark.parametrize("epochs", [0.25, 1.0, 3.0, 3.14])
def test_plan_prices_as_many_steps_as_it_makes(epochs: float) -> None:
    """Catches a number of steps that is rounded in one way for the price and in another for the run."""
    plan = DPSGD(**(GIVEN | {"epochs": epochs, "population": 97}))
    event = plan.event()
    steps = event.count if isinstance(event, Repeated) else 1
    assert plan.sampler(97).steps_of() == steps


def test_run_is_refused_by_a_budget_of_another_unit(tmp_path: Path) -> None:
    """Catches a run whose noise is for add/remove, charged to a budget that protects a replaced row."""
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(2, 1)
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.create("clinic", epsilon=9.0, delta=1e-3, unit=Unit(neighbours=Neighbours.REPLACE))
        plan = DPSGD(**(GIVEN | {"population": 100}))
        data = (torch.zeros(100, 2), torch.zeros(100))
        with pytest.raises(InvalidInput, match="budget that protects one example, replace"):
            plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.1), data, charge=ledger.budget("clinic"))
        assert not ledger.show("clinic").entries
