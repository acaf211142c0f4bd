"""Many processes and one budget: nothing is lost, nothing goes over, and the chain holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from privet.core.errors import BudgetExceeded, LedgerError
from privet.core.event import Laplace
from privet.core.unit import Unit
from privet.ledger import Ledger, State, entry_forms
from privet.ledger.filter import Sums, rules_for
from tests.ledger.charging import EVENT

PROCESSES, CHARGES = 8, 200
ROOT = Path(__file__).resolve().parents[2]
BOTH = ["sqlite", "postgres"]


def start(*arguments: str) -> subprocess.Popen[str]:
    """A program of its own, from the root of the repository."""
    command = [sys.executable, "-m", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("busy_url", BOTH, indirect=True)
def test_eight_processes_share_one_budget(busy_url: str) -> None:
    """8 × 200 charges, more than fit: exactly as many are committed as the filter allows, and every one is there.

    Catches a check and an addition that are not one step, a lost update, and two rows in one place of the chain.
    """
    with Ledger(busy_url) as ledger:
        ledger.create("clinic", epsilon=0.5, delta=1e-6)
        rules = rules_for(0.5, 1e-6)
        offer = entry_forms.choose(rules, Unit(), Sums.empty(rules), EVENT, None)
        assert offer is not None
        workers = [start("tests.ledger.charging", busy_url, str(CHARGES)) for _ in range(PROCESSES)]
        answers = [worker.communicate(timeout=600) for worker in workers]
        assert all(worker.returncode == 0 for worker in workers), [error for _, error in answers]
        results = [json.loads(text) for text, _ in answers]
        committed = [id_ for result in results for id_ in result["committed"]]
        aborted = sum(result["aborted"] for result in results)
        refused = sum(result["refused"] for result in results)
        assert len(committed) + aborted + refused == PROCESSES * CHARGES
        assert len(set(committed)) == len(committed)

        fitting = max(limit // cost for limit, cost in zip(rules.limits, offer.amount.orders, strict=True))
        assert fitting - PROCESSES <= len(committed) <= fitting < PROCESSES * CHARGES * 6 // 7
        assert refused > 0
        while ledger.admits("clinic", EVENT):  # what late aborts have left
            with ledger.reserve("clinic", EVENT).drawing() as charge:
                committed.append(charge.id)
        assert len(committed) == fitting
        budget = ledger.budget("clinic")
        assert (budget.active, budget.entries) == (len(committed), len(committed) + aborted)
        shown = ledger.show("clinic", last=PROCESSES * CHARGES, planned=False).entries
        assert {entry.id for entry in shown if entry.state is State.COMMITTED} == set(committed)
        found = ledger.verify("clinic", head=budget.head)
        assert found, found.problems
        assert found.rows == 1 + 3 * len(committed) + 2 * aborted


@pytest.mark.parametrize("busy_url", BOTH, indirect=True)
def test_two_cannot_both_take_the_last_of_it(busy_url: str) -> None:
    """Sixteen threads want what only one can have."""
    with Ledger(busy_url) as ledger:
        ledger.create("clinic", epsilon=1.0, delta=0.0)
        taken, refused = list[str](), list[int]()
        gate = threading.Barrier(16)

        def want(number: int) -> None:
            gate.wait()
            try:
                taken.append(ledger.reserve("clinic", Laplace(1.5)).id)
            except BudgetExceeded:
                refused.append(number)

        threads = [threading.Thread(target=want, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(taken) == 1
        assert len(refused) == 15
        assert ledger.verify("clinic")


@pytest.mark.parametrize("busy_url", BOTH, indirect=True)
def test_reserve_asks_again_under_the_lock(busy_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches an offer that is taken as it was priced, although another ledger took the rest before the lock."""
    with Ledger(busy_url) as ledger, Ledger(busy_url) as faster:
        ledger.create("clinic", epsilon=1.0, delta=0.0)
        choose = entry_forms.choose

        def overtaken(*arguments: Any) -> entry_forms.PricedForm | None:
            offer = choose(*arguments)
            monkeypatch.setattr(entry_forms, "choose", choose)
            faster.reserve("clinic", Laplace(1.5))
            return offer

        monkeypatch.setattr(entry_forms, "choose", overtaken)
        with pytest.raises(BudgetExceeded):
            ledger.reserve("clinic", Laplace(1.5))
        assert len(ledger.show("clinic").entries) == 1


@pytest.mark.parametrize("busy_url", BOTH, indirect=True)
def test_one_of_many_creates_a_budget(busy_url: str) -> None:
    """Eight ledgers on a database without tables: one budget comes to be, and the others hear that it exists."""
    made, told = list[str](), list[str]()
    gate = threading.Barrier(8)

    def create() -> None:
        with Ledger(busy_url) as ledger:
            gate.wait()
            try:
                made.append(ledger.create("clinic", epsilon=1.0, delta=1e-6).head)
            except LedgerError as error:
                told.append(str(error))

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len(told) == 7
    assert all("already" in text for text in told)
    with Ledger(busy_url) as ledger:
        assert ledger.verify()


FORK = """
import os, sys
from privet.core.event import Laplace
from privet.ledger import Ledger

ledger = Ledger(sys.argv[1])
ledger.create("clinic", epsilon=1.0, delta=1e-6)
ledger.reserve("clinic", Laplace(300.0)).draw()
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        for _ in range(10):
            charge = ledger.reserve("clinic", Laplace(300.0))
            charge.draw()
            charge.commit()
        os._exit(0)
    children.append(child)
for _ in range(10):
    ledger.reserve("clinic", Laplace(300.0)).draw()
for child in children:
    assert os.waitpid(child, 0)[1] == 0
ledger.reserve("clinic", Laplace(300.0)).draw()
print(ledger.budget("clinic").active, bool(ledger.verify("clinic")))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("busy_url", BOTH, indirect=True)
def test_a_ledger_may_be_carried_through_a_fork(busy_url: str) -> None:
    """Catches a connection that parent and child share: their words would be mixed, and their locks be lost."""
    done = subprocess.run([sys.executable, "-c", FORK, busy_url], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["42", "True"], done.stderr
