"""`kill -9` at every point between reserve and commit: what was drawn is always paid for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from privet.ledger import Ledger, State
from tests.ledger.crashing import EVENT

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("how", ["points", "moments"])
def test_a_killed_process_never_undercharges(ledger: Ledger, url: str, how: str) -> None:
    """Catches a `draw` that returns before its row is on the disk, a charge that a rollback gives back, and a chain or
    sums that a half-done transaction leaves broken. A charge without noise may stay; noise without a charge may not.
    """
    command = [sys.executable, "-m", "tests.ledger.crashing", url, how]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    children = [json.loads(line) for line in done.stdout.splitlines()]
    found = ledger.verify("clinic")
    assert found, found.problems
    entries = {entry.purpose: entry for entry in ledger.show("clinic", last=1000, planned=False).entries}
    least = {"reserved": State.RESERVED, "drawn": State.DRAWING, "committed": State.COMMITTED}
    rank = list(State)
    for child in children:
        entry = entries.get(child["purpose"])
        if child["said"]:
            assert entry is not None, child
            assert rank.index(entry.state) >= rank.index(least[child["said"][-1]]), child
    killed = [child for child in children if child["killed"]]
    if how == "points":
        assert len(killed) > 30
        assert children[-1]["said"] == ["reserved", "drawn", "committed"]
        assert {len(child["said"]) for child in killed} == {0, 1, 2, 3}
    assert ledger.budget("clinic").active == len(entries)
    ledger.reserve("clinic", EVENT).draw()
    for entry in entries.values():
        if entry.state is State.RESERVED:
            ledger.release(entry.id)
    assert ledger.verify("clinic")


def test_the_test_would_notice_a_draw_that_is_not_durable(file_ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted mistake: `draw` in a transaction that is rolled back leaves the entry reserved, and so refundable."""
    charge = file_ledger.reserve("clinic", EVENT)
    monkeypatch.setattr("sqlalchemy.engine.Transaction.commit", lambda self: self.rollback())
    charge.draw()
    monkeypatch.undo()
    assert charge.state is State.DRAWING
    assert file_ledger.entry(charge.id).state is State.RESERVED
