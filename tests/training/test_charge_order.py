"""The order of a step: batch, journal, ledger, weights, average. Each is told before the next can be seen."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import privet
from privet.core.errors import LedgerError
from privet.core.random import SeededRng
from privet.core.release import Release
from privet.ledger import Ledger
from privet.ledger.charge import Charge
from privet.training import DPSGD, Run
from privet.training.journal import CheckpointError, Journal
from privet.training.sampling import PoissonSampler
from tests.training.conftest import Attach, squared
from tests.training.models import filled, normal

PLAN = DPSGD(noise_multiplier=1.0, batch_size=4, sample_rate=0.5, steps=4, delta=1e-3)
ROWS = normal(9, 4).float()


def net() -> nn.Module:
    return filled(nn.Linear(4, 2)).float()


def weights(model: nn.Module) -> Tensor:
    return torch.cat([each.detach().flatten().clone() for each in model.parameters()])


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    with Ledger(tmp_path / "ledger.db") as found:
        found.create("rows", unit=PLAN.unit(), epsilon=1000.0, delta=1e-2)
        yield found


def attached(model: nn.Module, ledger: Ledger | None = None, plan: DPSGD = PLAN, **more: Any) -> Run:
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    charge = None if ledger is None else ledger.budget("rows")
    return plan.attach(model, optimizer, ROWS, charge=charge, rng=SeededRng(3), **more)


def everything(run: Run, model: nn.Module) -> None:
    for x in run.batches():
        run.step(squared(model, x))


def refused(*_: Any) -> None:
    raise LedgerError("the ledger cannot be reached")


def test_charge_is_told_before_the_weights_change(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the ledger is told after `optimizer.step`: a crash in between would leave a step that nobody paid."""
    model, told, draw = net(), [], Charge.draw
    before = weights(model)

    def noted(self: Charge) -> None:
        told.append(weights(model))
        draw(self)

    monkeypatch.setattr(Charge, "draw", noted)
    everything(attached(model, ledger), model)
    (at,) = told
    assert torch.equal(at, before)
    assert not torch.equal(weights(model), before)


def test_charge_that_is_refused_leaves_weights_average_and_state(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a ledger that cannot be told comes too late: weights, average, momentum or clip have moved by then."""
    model = net()
    plan = DPSGD(noise_multiplier=1.0, batch_size=4, sample_rate=0.5, steps=4, delta=1e-3, average=0.5)
    run = attached(model, ledger, plan)
    before = weights(model)
    monkeypatch.setattr(Charge, "draw", refused)
    with pytest.raises(LedgerError):
        everything(run, model)
    assert torch.equal(weights(model), before)
    assert run._average is not None
    assert torch.equal(weights(run._average), before)
    assert not run.optimizer.state
    assert run.clip == plan.clip


def test_charge_is_told_before_the_weights_change_in_fit(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the whole loop in one call."""
    model = net()
    before = weights(model)
    monkeypatch.setattr(Charge, "draw", refused)
    with pytest.raises(LedgerError):
        privet.fit(
            model,
            (ROWS, torch.zeros(9, 2)),
            PLAN,
            loss=lambda output, target: (output - target).square().sum(1),
            optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
            charge=ledger.budget("rows"),
            rng=SeededRng(3),
        )
    assert torch.equal(weights(model), before)


def test_journal_is_told_before_each_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a step is written down after its weights changed, or after its batch was handed out: whoever resumes
    after a crash would make it a second time."""
    model, begin = net(), Journal.begin
    run = attached(model, journal=tmp_path / "run.journal")
    run.save(tmp_path / "run.pt")
    told: list[tuple[int, Tensor]] = []
    seen: list[int] = []

    def noted(self: Journal, number: int, sampler: Any) -> None:
        begin(self, number, sampler)
        told.append((number, weights(model)))
        assert self.steps > number

    monkeypatch.setattr(Journal, "begin", noted)
    after: list[Tensor] = [weights(model)]
    for x in run.batches():
        seen.append(len(told))
        if run.step(squared(model, x)):
            after.append(weights(model))
    run.close()
    assert [number for number, _ in told] == list(range(PLAN.steps or 0))
    for (_, at), known in zip(told, after, strict=False):
        assert torch.equal(at, known)  # those of the step before, and none of its own
    assert seen[0] == 1


def test_journal_that_cannot_be_written_ends_the_run_before_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when rows of a step reach the loop although the disk does not know of the step."""
    model = net()
    run = attached(model, journal=tmp_path / "run.journal")
    run.save(tmp_path / "run.pt")
    before = weights(model)

    def full(*_: Any) -> None:
        raise CheckpointError("the disk is full")

    monkeypatch.setattr(Journal, "begin", full)
    with pytest.raises(CheckpointError):
        next(run.batches())
    assert torch.equal(weights(model), before)
    run.close()


def test_charge_is_committed_before_the_model_is_released(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a model leaves whose charge the ledger could not commit."""
    model = net()
    run = attached(model, ledger)
    everything(run, model)
    monkeypatch.setattr(Charge, "commit", refused)
    with pytest.raises(LedgerError):
        run.release(1e-3)


# --- Empty batches ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 1, 2, 40])
def test_poisson_empty_batches_are_as_likely_as_the_event_says(rows: int) -> None:
    """Fails when an empty batch is drawn again, once, 50 times or for ever: no batch would be empty.

    5,000 batches, of which (1 − q)^rows are empty; six deviations: a false alarm once in 5e8 tries.
    """
    rate, steps = 0.02, 5000
    sampler, rng = PoissonSampler(rate, steps, rows), SeededRng(5, rows)
    empty = sum(not sampler.draw(step, rng).units for step in range(steps))
    chance = (1 - rate) ** rows
    assert abs(empty - steps * chance) <= 6 * math.sqrt(steps * chance * (1 - chance))


class Counted(SeededRng):
    """Notes how many random words were asked for."""

    def __init__(self) -> None:
        super().__init__(8)
        self.words_drawn = 0

    def words(self, n: int) -> Any:
        self.words_drawn += n
        return super().words(n)


def test_poisson_draws_once_whatever_comes_of_it() -> None:
    """Fails when the number of draws depends on whether a batch is empty: exactly one byte decides most rows."""
    sampler, rng = PoissonSampler(2.0**-8, 400, 8), Counted()
    for step in range(400):
        before = rng.words_drawn
        sampler.draw(step, rng)
        open_rows = rng.words_drawn - before - 1
        assert 0 <= open_rows <= 8  # one word for eight rows, and one for each row that a byte left open


class Scripted(PoissonSampler):
    """Says beforehand which batches are empty; whoever draws a step twice is found out."""

    def draw(self, step: int, rng: Any) -> Any:
        drawn: list[int] = self.__dict__.setdefault("_drawn", [])
        assert step not in drawn, "a step was drawn twice"
        drawn.append(step)
        found = np.arange(0 if step % 2 == 0 else 3, dtype=np.int64)
        return type(super().draw(step, rng)).of_rows(found)


def test_run_takes_an_empty_batch_as_a_step_of_noise(attach: Attach) -> None:
    """Fails when a run draws an empty batch again or leaves it out: each of its steps moves the weights by noise."""
    model = net()
    run = attach(
        model,
        ROWS,
        noise_multiplier=5.0,
        batch_size=2,
        sample_rate=0.5,
        steps=6,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
    )
    run.sampler = Scripted(0.5, 6, len(ROWS))
    done, before = 0, weights(model)
    for x in run.batches():
        if run.step(squared(model, x)):
            done += 1
            assert not torch.equal(weights(model), before)
            before = weights(model)
    assert done == run.steps == 6


# --- Averages of weights ---------------------------------------------------------------------------------------------


def averaged(decay: float, steps: int, seed: int = 3, data: Tensor = ROWS) -> tuple[Release[nn.Module], list[Tensor]]:
    """The release of a run, and the weights before the first and after each step."""
    plan = DPSGD(noise_multiplier=1.0, batch_size=4, sample_rate=0.5, steps=steps, delta=1e-3, average=decay)
    model = net().double()
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=1.0), data.double(), rng=SeededRng(seed))
    seen = [weights(model)]
    seen.extend(weights(model) for x in run.batches() if run.step(squared(model, x)))
    return run.release(1e-3), seen


@pytest.mark.parametrize("decay", [0.5, 0.99])
@pytest.mark.parametrize("seed", [3, 4])
def test_average_follows_from_released_weights_alone(decay: float, seed: int) -> None:
    """Fails when the average takes in anything that was not released: weights before the noise, the number of rows in
    a batch, gradients, or a step that is not counted. It is computed again here from the weights after each step."""
    release, seen = averaged(decay, 7, seed)
    slow = seen[0].clone()
    for step, fast in enumerate(seen[1:], start=1):
        kept = min(decay, step / (step + 9))
        slow = kept * slow + (1 - kept) * fast
    assert torch.allclose(weights(release.value), slow, rtol=0, atol=1e-12)
    assert not torch.allclose(slow, seen[-1])


def test_average_is_the_same_function_on_neighboring_rows() -> None:
    """Fails when the average's weights depend on the rows: from the same released weights, neighbors get the same."""
    for data in (ROWS, ROWS[:-1], ROWS[:1]):
        release, seen = averaged(0.9, 5, 6, data)
        slow = seen[0].clone()
        for step, fast in enumerate(seen[1:], start=1):
            kept = min(0.9, step / (step + 9))
            slow = kept * slow + (1 - kept) * fast
        assert torch.allclose(weights(release.value), slow, rtol=0, atol=1e-12)


def test_average_of_buffers_is_a_copy() -> None:
    """Fails when buffers are averaged, or are those of another step than the last."""

    class Kept(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = net()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            found: Tensor = self.inner(x)
            return found

    model = Kept()
    plan = DPSGD(noise_multiplier=1.0, batch_size=4, sample_rate=0.5, steps=3, delta=1e-3, average=0.9)
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=1.0), ROWS, rng=SeededRng(3))
    for x in run.batches():
        if run.step(squared(model, x)):
            model.get_buffer("calls").fill_(float(run.steps))
    value = run.release(1e-3).value
    assert float(value.get_buffer("calls")) == 2.0  # as it was when the last step was complete
