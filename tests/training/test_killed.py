"""`kill -9` at every point of a step and of a save: a run never draws more than its plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from privet.ledger import Ledger, State
from privet.training import checkpoint
from tests.training.resuming import PLAN, POINTS

ROOT = Path(__file__).resolve().parents[2]


# --- other processes


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where one program has done all of it, with a file `said` of what it said; each test looks at its own folder."""
    place = tmp_path_factory.mktemp("killed")
    folders = [place / how for how in ("points", "moments", "fork")]
    for folder in folders:
        folder.mkdir()
        with Ledger(folder / "ledger.db") as ledger:
            ledger.create("clinic", epsilon=200.0, delta=1e-5)
    command = [sys.executable, "-m", "tests.training.resuming", *map(str, folders)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    (place / "said").write_text(done.stdout)
    return place


def told(place: Path, how: str) -> list[dict[str, Any]]:
    """What the program said of one of its parts."""
    return [said for line in (place / "said").read_text().splitlines() if (said := json.loads(line))["how"] == how]


@pytest.mark.parametrize("how", ["points", "moments"])
def test_a_killed_run_never_draws_more_than_its_plan(place: Path, how: str) -> None:
    """`kill -9` at every point of a step and of a save. Catches a step that is made twice, a checkpoint that cannot be
    read, a ledger that does not know that noise was drawn, and a run that cannot be brought to its end.
    """
    ledger = Ledger(place / how / "ledger.db")
    lives = told(place, how)
    assert not [life for life in lives if life["failed"]]
    drawn = [int(line) for line in (place / how / "drawn").read_text().split()]
    total = PLAN.steps or 0
    assert len(set(drawn)) == len(drawn) <= total
    assert drawn == sorted(drawn)
    assert max(drawn) == total - 1
    lines = (place / how / "run.pt.journal").read_text().splitlines()
    assert json.loads(lines[-1].rpartition(" ")[0])["steps"] == total
    saved = checkpoint.read(place / how / "run.pt")
    entry = ledger.entry(saved.record["charge"]["id"])
    assert entry.state is State.COMMITTED
    assert entry.event == PLAN.event()
    assert ledger.verify()
    if how == "points":
        assert [life["point"] for life in lives if life["killed"]] == [life["point"] for life in lives]
        assert {life["point"] for life in lives} == set(POINTS)
        # A life that dies loses what it had written ahead: at most one in a hundred of the plan's steps.
        assert len(drawn) >= total - len(lives) * (total // 100)
    else:
        assert any(life["killed"] for life in lives)  # how many there are depends on how fast the machine is


def test_a_forked_child_does_not_go_on(place: Path) -> None:
    """Catches two processes that both make the next step of one run, and a child that keeps the file locked."""
    assert told(place, "fork") == [{"how": "fork", "refused": True, "steps": 1}]
