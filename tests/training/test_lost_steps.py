"""A run over all its lives makes no more steps than were priced, and nobody else steps its optimizer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from privet.core.event import Gaussian
from privet.core.random import SeededRng
from privet.ledger import Ledger
from privet.training import DPSGD, Run, RunError
from privet.training.journal import CheckpointError
from tests.training.conftest import squared
from tests.training.models import filled, normal

PLAN = DPSGD(noise_multiplier=1.0, batch_size=4, sample_rate=0.5, steps=8, delta=1e-3)
ROWS = normal(9, 4).float()


def net() -> nn.Module:
    return filled(nn.Linear(4, 2)).float()


def made(run: Run, model: nn.Module, most: int) -> int:
    """Make so many steps, or as many as there are."""
    done = 0
    for x in run.batches():
        done += run.step(squared(model, x))
        if done == most:
            break
    return done


@pytest.mark.parametrize("lost", [0, 1, 3])
def test_resumed_run_does_not_make_lost_steps_again(tmp_path: Path, lost: int) -> None:
    """Fails when a run that is resumed counts from its checkpoint and not from its journal: steps that were made after
    the last checkpoint, whose weights somebody may have seen, would be made again on the same bill."""
    model = net()
    run = PLAN.attach(model, torch.optim.SGD(model.parameters(), lr=0.1), ROWS, rng=SeededRng(1))
    first = made(run, model, 2)
    run.save(tmp_path / "run.pt")
    after = made(run, model, lost) if lost else 0
    run.close()
    other = net()
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    resumed = PLAN.attach(other, optimizer, ROWS, resume=tmp_path / "run.pt", rng=SeededRng(1))
    assert resumed.steps == first + after
    assert first + after + made(resumed, other, 99) == 8
    resumed.close()


def test_optimizer_steps_by_nobody_but_the_run() -> None:
    """Fails when `optimizer.step()` can be called beside the run: with gradients that nobody clipped or noised."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = PLAN.attach(model, optimizer, ROWS, rng=SeededRng(1))
    before = model.weight.detach().clone() if isinstance(model, nn.Linear) else torch.zeros(0)
    squared(model, ROWS).sum().backward()  # type: ignore[no-untyped-call]
    with pytest.raises(RunError, match=r"optimizer.step\(\) was called outside of run.step\(\)"):
        optimizer.step()
    assert torch.equal(before, model.weight)  # type: ignore[arg-type]
    assert made(run, model, 1) == 1
    with pytest.raises(RunError, match="outside"):
        optimizer.step()
    run.close()
    optimizer.step()  # the run is over, and the optimizer is its owner's again


def test_resumed_run_needs_the_charge_of_its_own_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a run goes on under an entry of the ledger that paid for something else."""
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.create("rows", unit=PLAN.unit(), epsilon=100.0, delta=1e-2)
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        run = PLAN.attach(model, optimizer, ROWS, charge=ledger.budget("rows"), rng=SeededRng(1))
        made(run, model, 1)
        run.save(tmp_path / "run.pt")
        run.close()
        entry = Ledger.entry

        def other(self: Ledger, id_: str) -> Any:
            return replace(entry(self, id_), event=Gaussian(50.0))

        monkeypatch.setattr(Ledger, "entry", other)
        with pytest.raises(CheckpointError, match="for another event than this run's"):
            PLAN.attach(
                model, optimizer, ROWS, resume=tmp_path / "run.pt", charge=ledger.budget("rows"), rng=SeededRng(1)
            )
