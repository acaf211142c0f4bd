"""Terms of a run's charge: its event, its unit, its share of δ, and the block that it may cost."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from privet.accounting import epsilon as price
from privet.core.errors import InvalidInput
from privet.core.event import Approximate, Event, Gaussian, Poisson, Repeated, Sampled
from privet.core.unit import Neighbours, Unit
from privet.ledger import Ledger

pytest.importorskip("torch")

from privet.runs import directory, payment
from privet.runs.inputs import TrainingInputs
from privet.runs.methods import MethodBudget, MethodPlan
from privet.runs.plan import RunPlan, make_plan, require_within
from privet.runs.request import TrainRequest


def one_line(event: Event, unit: Unit = Unit()) -> RunPlan:
    """Plan with one line."""
    method = MethodPlan("output", event, unit, "the model")
    return RunPlan(unit, 1e-5, "", MethodBudget(1.0, 1e-5, unit), (method,))


@pytest.fixture
def begun(tmp_path: Path) -> directory.InterruptedRun:
    """Run of `Gaussian(4)` that was reserved with the budget "clinic", and interrupted."""
    asked = TrainRequest(budget="clinic", ledger=str(tmp_path / "ledger.db"))
    with Ledger(asked.ledger) as ledger:
        ledger.create("clinic", epsilon=9.0, delta=1e-3)
        ledger.create("other", epsilon=9.0, delta=1e-3)
        charge = ledger.reserve("clinic", Gaussian(4.0), unit=Unit(), resumable=True)
    paid = (directory.StoredCharge(charge.id, charge.token or ""),)
    return directory.InterruptedRun(asked, "privet train", paid, directory.RunIdentity("", "", "", ""), None)


def resume(
    begun: directory.InterruptedRun, bill: RunPlan, tmp_path: Path, asked: TrainRequest | None = None
) -> tuple[Event, ...]:
    place: directory.RunDirectory = directory.RunDirectory(tmp_path / "run")
    with payment._resumed(asked or begun.request, place, bill, begun) as charges:
        return tuple(charge.event for charge in charges.each)


def test_resume_draws_for_the_event_that_the_ledger_holds(begun: directory.InterruptedRun, tmp_path: Path) -> None:
    """Catches a run that resumes with less noise, another unit or another budget than its charge paid for.

    The run directory is the user's own and can be edited consistently; only the ledger knows what was charged.
    """
    wrong = (one_line(Gaussian(3.0)), one_line(Repeated(Gaussian(4.0), 2)))
    for bill in (*wrong, one_line(Gaussian(4.0), Unit(neighbours=Neighbours.REPLACE))):
        with pytest.raises(InvalidInput, match="is not what was charged"):
            resume(begun, bill, tmp_path)
    elsewhere = TrainRequest(budget="other", ledger=begun.request.ledger)
    with pytest.raises(InvalidInput, match="is not what was charged"):
        resume(begun, one_line(Gaussian(4.0)), tmp_path, elsewhere)
    assert resume(begun, one_line(Gaussian(4.0)), tmp_path) == (Gaussian(4.0),)


@pytest.mark.parametrize("compare", [(), ("objective",)])
def test_delta_is_split_between_methods(compare: tuple[str, ...]) -> None:
    """Catches methods that each take the whole δ: together they then cost more than the δ that the bill states."""
    asked = TrainRequest(method="output", compare=compare, delta=1e-4)
    inputs: Any = TrainingInputs.of(asked)
    bill = make_plan(asked, inputs, None)
    assert bill.delta == 1e-4
    assert bill.share.delta * len(asked.private_methods) <= bill.delta
    models = [event for what, event in bill.lines if what.startswith("the model")]
    assert len(models) == len(asked.private_methods)
    for event in models:
        # What a method may cost is met at its own share of δ, which leaves the rest to the others.
        assert price(event, bill.share.delta, unit=bill.unit).epsilon.upper <= bill.share.model_epsilon * (1 + 1e-9)
        assert price(event, bill.share.delta / 2, unit=bill.unit).epsilon.upper > bill.share.model_epsilon


@pytest.mark.parametrize("event", [Gaussian(2.0), Repeated(Sampled(Gaussian(1.0), by=Poisson(0.01)), 100)], ids=str)
def test_plan_must_cost_no_more_than_its_block_at_the_upper_end(event: Event) -> None:
    """Catches a plan that is compared with its block by the lower end of ε, or with something to spare."""
    delta = 1e-5
    upper = price(event, delta, unit=Unit()).epsilon.upper
    require_within(event, Approximate(upper, delta, Neighbours.ADD_REMOVE), Unit())
    below = Approximate(math.nextafter(upper, 0.0), delta, Neighbours.ADD_REMOVE)
    with pytest.raises(InvalidInput, match="above the"):
        require_within(event, below, Unit())
