"""Runs that stop and go on: everything that counts is in the file, and what does not belong is refused."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from privet.core.errors import InvalidInput, LedgerError
from privet.core.random import SeededRng
from privet.core.unit import Neighbours, Unit, Whose
from privet.ledger import Ledger, State, fingerprint_of
from privet.training import DPSGD, Adaptive, Automatic, BatchSampling, BudgetCharge, PerLayer, UserRows, checkpoint
from privet.training.checkpoint import INSIDE
from privet.training.journal import CheckpointError
from tests.training.resumable import (
    DATA,
    PLAN,
    ROWS,
    Optimizer,
    adam,
    attached,
    built,
    equal,
    go,
    momentum,
    noises,
    resumed,
    saved,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.pt"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger(tmp_path / "ledger.db")
    book.create("clinic", epsilon=30.0, delta=1e-5)
    book.create("other clinic", epsilon=30.0, delta=1e-5)
    return book


# --- what goes on as if nothing had happened


@pytest.mark.parametrize("optimizer", [adam, momentum])
def test_weights_go_on_to_the_last_bit(path: Path, optimizer: Optimizer) -> None:
    """Without noise, with all rows in every batch, and with so few rows that the first batch is not cut: every number
    follows from the state alone. Catches whatever of model, optimizer or average is not saved, or not put back.
    """
    plan = DPSGD(noise_multiplier=0.0, delta=1e-5, clip=0.5, batch_size=3, sample_rate=1.0, steps=10, average=0.8)
    data = (DATA[0][:3], DATA[1][:3])
    whole = go(attached(plan, optimizer, data=data))
    saved(path, plan, steps=4, optimizer=optimizer, data=data)
    run = go(resumed(path, plan, optimizer, data=data))
    assert equal(run.model.state_dict(), whole.model.state_dict())
    assert equal(run.optimizer.state_dict(), whole.optimizer.state_dict())
    assert run._average is not None
    assert whole._average is not None
    assert equal(run._average.state_dict(), whole._average.state_dict())
    assert not equal(run._average.state_dict(), run.model.state_dict())


def test_the_clip_goes_on(path: Path) -> None:
    """An adaptive clip is part of the state. With next to no noise on its count it follows the same way, up to the
    rounding of a first batch that comes in two pieces. Catches a clip that starts again at the plan's.
    """
    kind = Adaptive(count_noise=1e-9, rate=0.5)
    plan = DPSGD(noise_multiplier=0.0, delta=1e-5, clip=20.0, batch_size=ROWS, sample_rate=1.0, steps=8, clipping=kind)
    whole = go(attached(plan))
    first = saved(path, plan, steps=4)
    run = resumed(path, plan)
    assert run.clip == first.clip != plan.clip
    go(run)
    assert run.clip == pytest.approx(whole.clip, rel=1e-9)
    assert equal(run.model.state_dict(), whole.model.state_dict(), 1e-9)


def test_k_and_k_steps_are_2k_on_every_bill(path: Path, ledger: Ledger) -> None:
    """Catches an event, a count or a charge that starts again, that is taken twice, or that is lost at a stop."""
    whole = go(attached(charge=ledger.budget("other clinic")))
    saved(path, steps=6, charge=ledger.budget("clinic"))
    used = ledger.budget("clinic").used
    assert [entry.state for entry in ledger.show("clinic").entries] == [State.DRAWING]
    run = resumed(path, charge=ledger.budget("clinic"))
    assert (run.steps, run.total, run.event, run.unit, run.source) == (6, 12, whole.event, whole.unit, "clinic")
    go(run)
    assert run.steps == whole.steps == 12
    assert list(run.batches()) == []
    one, other = run.release(), whole.release()
    assert one.guarantee == other.guarantee
    assert one.event == other.event
    assert ledger.budget("clinic").used == used == ledger.budget("other clinic").used
    assert [entry.state for entry in ledger.show("clinic").entries] == [State.COMMITTED]
    assert ledger.verify()


def test_a_calibrated_plan_keeps_its_noise(path: Path) -> None:
    """The noise was chosen once, when the run was attached. Catches one that is chosen again, by other code perhaps."""
    plan = DPSGD(epsilon=4.0, delta=1e-5, batch_size=20, steps=12, population=ROWS)
    first = saved(path, plan)
    run = resumed(path, plan)
    assert run.noise_multiplier == first.noise_multiplier > 0
    assert run.plan == first.plan
    assert run.event == first.event


@pytest.mark.parametrize("clipping", [Automatic(0.02), PerLayer(), Adaptive(quantile=0.3)])
def test_every_kind_of_plan_can_be_saved(path: Path, clipping: Any) -> None:
    """Catches a way to clip, or a kind of batches, that a checkpoint does not know again."""
    plan = DPSGD(
        noise_multiplier=1.0, delta=1e-5, batch_size=20, epochs=4, batches=BatchSampling.SHUFFLED, clipping=clipping
    )
    saved(path, plan)
    run = resumed(path, plan)
    assert run.steps == 5
    assert run.unit == Unit(neighbours=Neighbours.ZERO_OUT)
    with pytest.raises(InvalidInput, match="clipping = "):
        resumed(path, replace(plan, clipping=Automatic(0.03)))


def test_users_go_on(path: Path) -> None:
    """Catches a resumed run that protects rows instead of users, or lets a user bring more rows than before."""
    users = np.arange(ROWS) // 3
    plan = DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=5, steps=8, population=20)
    saved(path, plan, users=UserRows(users, cap=2))
    run = resumed(path, plan, users=UserRows(users, cap=2))
    assert run.unit.whose is Whose.USER
    run.close()
    with pytest.raises(InvalidInput, match="users"):
        resumed(path, plan)
    with pytest.raises(InvalidInput, match="cap"):
        resumed(path, plan, users=UserRows(users, cap=3))


def test_a_saved_run_may_just_go_on(path: Path) -> None:
    """Saving changes nothing for the run itself. Catches a save that ends a run, or counts a step."""
    seeded, plain = attached(rng=SeededRng(1)), attached(rng=SeededRng(1))
    for _ in range(3):
        go(seeded, 2).save(path)
        go(plain, 2)
    assert equal(seeded.model.state_dict(), plain.model.state_dict())
    assert seeded.steps == plain.steps == 6
    seeded.close()


def test_a_save_in_the_middle_of_a_step_counts_it(path: Path) -> None:
    """As after an interrupt. Catches a step that is handed out, saved as not begun, and then made again."""
    run = go(attached(), 4)
    next(run.batches())
    run.save(path)
    run.close()
    assert resumed(path).steps == 5


# --- noise


def test_noise_is_never_replayed(path: Path) -> None:
    """With one seed for all lives. Every pair of steps, of one life or of two, has noise with a correlation near 0;
    of 11 · 10 / 2 pairs of 270 normals one is beyond 0.4 with a chance below 1e-9. Catches a stream that starts again.
    """
    plan = DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=20, steps=50, population=ROWS)

    def wide() -> nn.Module:
        return nn.Linear(4, 54).double()

    def sgd(model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=1.0)

    model = wide()
    run = plan.attach(model, sgd(model), DATA, rng=SeededRng(9))
    moves = noises(run, 3)
    run.save(path)
    moves += noises(run, 2)
    run.close()
    for _ in range(3):  # each from the same checkpoint, with what should be the same stream
        again = resumed(path, plan, sgd, model=wide(), rng=SeededRng(9))
        moves += noises(again, 2)
        again.close()
    correlations = np.corrcoef(torch.stack(moves).numpy()) - np.eye(len(moves))
    assert len(moves) == 11
    assert np.abs(correlations).max() < 0.4


def test_randomness_that_may_repeat_itself_is_refused(path: Path) -> None:
    """Catches a generator that says it is seeded, and that nobody can tell to begin elsewhere."""

    class Wrapped:
        kind = SeededRng(1).kind

    saved(path)
    with pytest.raises(InvalidInput, match="repeat the noise"):
        resumed(path, rng=Wrapped())
    assert resumed(path).steps == 5


# --- what is refused


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"noise_multiplier": 2.5}, "noise_multiplier = 2.5, not 3.0"),
        ({"clip": 2.0}, "clip = 2.0"),
        ({"steps": 13}, "steps = 13, not 12"),
        ({"batch_size": 21}, "batch_size"),
        ({"population": 61}, "population"),
        ({"average": 0.5}, "average"),
        ({"delta": 1e-6}, "delta"),
        ({"neighbours": Neighbours.REPLACE}, "neighbours = 'replace"),
        ({"noise_multiplier": None, "epsilon": 3.0}, "epsilon"),
    ],
)
def test_another_plan_is_refused(path: Path, change: dict[str, Any], word: str) -> None:
    """Catches a knob that is not compared: the rest of the run would not be what was paid for."""
    saved(path)
    with pytest.raises(InvalidInput, match="plan is not that of the checkpoint") as found:
        resumed(path, replace(PLAN, **change))
    assert word in str(found.value)
    assert resumed(path).steps == 5


def test_another_number_of_rows_is_refused_where_it_matters(path: Path, tmp_path: Path) -> None:
    """Where the plan counts rows, their number is part of the event and may be said; where it does not, it is private.
    Catches either being treated as the other, and a private number in the error or, in clear, in the file.
    """
    fewer = (DATA[0][:-1], DATA[1][:-1])
    saved(path)
    with pytest.raises(InvalidInput, match="dataset is not the one that the run was attached to") as caught:
        resumed(path, data=fewer)
    assert not any(digit.isdigit() for digit in str(caught.value))
    record = checkpoint.read(path).record
    assert record["units"] is None
    assert record["sampler"] == {"kind": "poisson", "sample_rate": 20 / 60, "steps": 12}
    counting = DPSGD(noise_multiplier=3.0, delta=1e-5, batch_size=20, steps=12)
    other = tmp_path / "counting.pt"
    saved(other, counting)
    with pytest.raises(InvalidInput, match="dataset has 59 units, and the run was attached to one with 60"):
        resumed(other, counting, data=fewer)


def test_another_model_or_optimizer_is_refused(path: Path) -> None:
    """Catches weights loaded into what they do not belong to, and moments given to another parameter's place."""
    saved(path)
    frozen = built()
    next(frozen.parameters()).requires_grad_(False)

    def turned(model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adam(reversed(list(model.parameters())), lr=0.05)

    def split(model: nn.Module) -> torch.optim.Optimizer:
        first, *rest = model.parameters()
        return torch.optim.Adam([{"params": [first]}, {"params": rest}], lr=0.05)

    for model in (built(width=6), built(between=nn.ReLU), built().float(), frozen):
        before = [parameter.clone() for parameter in model.parameters()]
        data = DATA if model.state_dict()["0.weight"].dtype is torch.float64 else (DATA[0].float(), DATA[1].float())
        with pytest.raises(InvalidInput, match="model is not that of the checkpoint"):
            resumed(path, model=model, data=data)
        assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    for optimizer in (momentum, turned, split):
        with pytest.raises(InvalidInput, match="optimizer is not that of the checkpoint"):
            resumed(path, optimizer=optimizer)
    assert resumed(path).steps == 5


def test_the_ledger_must_be_the_runs(path: Path, tmp_path: Path, ledger: Ledger) -> None:
    """Catches a run that goes on without its charge, or under another one, and a refusal that costs something."""
    saved(path, charge=ledger.budget("clinic"))
    head = ledger.head("clinic")
    with pytest.raises(InvalidInput, match="charge is missing, and the run is charged to 'clinic'"):
        resumed(path)
    with pytest.raises(InvalidInput, match="charge is to 'other clinic', and the run"):
        resumed(path, charge=ledger.budget("other clinic"))
    strange = Ledger(tmp_path / "strange.db")
    strange.create("clinic", epsilon=30.0, delta=1e-5)
    with pytest.raises(LedgerError):
        resumed(path, charge=strange.budget("clinic"))
    assert ledger.head("clinic") == head
    free = tmp_path / "free.pt"
    saved(free)
    with pytest.raises(InvalidInput, match="on no bill"):
        resumed(free, charge=ledger.budget("clinic"))
    assert resumed(path, charge=ledger.budget("clinic")).steps == 5


def test_other_data_is_refused(path: Path, tmp_path: Path) -> None:
    """Catches a run that goes on with data that its budget is not for, and a digest of the data in the file."""
    mine, other = fingerprint_of(b"mine"), fingerprint_of(b"other")
    book = Ledger(tmp_path / "bound.db")
    book.create("clinic", epsilon=30.0, delta=1e-5, fingerprint=mine)
    saved(path, charge=BudgetCharge(book.budget("clinic"), fingerprint=mine))
    for wrong in (other, None):
        with pytest.raises(InvalidInput, match="fingerprint"):
            resumed(path, charge=BudgetCharge(book.budget("clinic"), fingerprint=wrong))
    assert mine._digest.hex() not in json.dumps(checkpoint.read(path).record)
    assert resumed(path, charge=BudgetCharge(book.budget("clinic"), fingerprint=mine)).steps == 5


def exchanged(data: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """The first two rows in the other order."""
    order = torch.tensor([1, 0, *range(2, ROWS)])
    return data[0][order], data[1][order]


def touched(data: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """One number of one row is another one."""
    inputs = data[0].clone()
    inputs[37, 2] += 1e-9
    return inputs, data[1]


@pytest.mark.parametrize("change", [exchanged, touched])
@pytest.mark.parametrize("kind", ["columns", "list"])
def test_other_rows_are_refused_without_a_fingerprint(path: Path, change: Any, kind: str) -> None:
    """As many rows as before, and the same model. Catches a run that goes on with another data set, and one that does
    not go on with an equal one in other memory."""

    def made(data: Any) -> Any:
        return tuple(each.clone() for each in data) if kind == "columns" else list(zip(*data, strict=True))

    saved(path, data=made(DATA))
    with pytest.raises(InvalidInput, match="dataset is not the one that the run was attached to"):
        resumed(path, data=made(change(DATA)))
    assert resumed(path, data=made(DATA)).steps == 5


@pytest.mark.filterwarnings("ignore:the loop gives other losses")
def test_rows_that_are_made_when_they_are_read_go_on(path: Path) -> None:
    """Augmented at random, say. Catches a run that is lost because a row is not twice the same."""

    class Augmented(torch.utils.data.Dataset[Any]):
        generator = torch.Generator().manual_seed(5)

        def __init__(self, rows: int = ROWS) -> None:
            self.rows = rows

        def __len__(self) -> int:
            return self.rows

        def __getitem__(self, row: int) -> Any:
            return DATA[0][row] + torch.randn(4, generator=self.generator, dtype=torch.float64), DATA[1][row]

    saved(path, data=Augmented())
    with pytest.raises(InvalidInput, match="dataset is not the one"):
        resumed(path, data=Augmented(ROWS - 1))
    assert resumed(path, data=Augmented()).steps == 5


def test_other_owners_are_refused(path: Path) -> None:
    """Catches rows that are given to other users half-way, by whom they would be clipped."""
    plan, owners = DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=5, steps=8, population=20), np.arange(ROWS) // 3
    saved(path, plan, users=UserRows(owners, cap=2))
    with pytest.raises(InvalidInput, match="rows or users"):
        resumed(path, plan, users=UserRows(np.arange(ROWS) % 20, cap=2))
    assert resumed(path, plan, users=UserRows(torch.from_numpy(owners.copy()), cap=2)).steps == 5


@pytest.mark.parametrize("how", ["cut", "emptied", "bit", "seal", "edited", "model"])
def test_a_damaged_or_edited_file_is_refused(path: Path, how: str) -> None:
    """Catches a file that is read without its checksum, at any place, and one that was written by something else."""
    saved(path)
    whole = path.read_bytes()
    if how == "cut":
        pieces = [whole[:end] for end in (1, 100, len(whole) // 2, len(whole) - 1)]
    elif how == "emptied":
        pieces = [b""]
    elif how == "bit":
        places = np.linspace(0, len(whole) - 100, 200).astype(int)
        pieces = [whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :] for at in places]
    elif how == "seal":
        pieces = [whole[:-1] + b"x", whole + b"\n"]
    else:
        found = torch.load(path, weights_only=True)
        text = found["record"].replace('"steps": 5', '"steps": 0')
        assert text != found["record"]
        torch.save(found | {"record": text} if how == "edited" else built().state_dict(), path)
        pieces = [path.read_bytes()]
    for piece in pieces:
        path.write_bytes(piece)
        with pytest.raises(CheckpointError):
            checkpoint.read(path)
    path.write_bytes(whole)
    assert resumed(path).steps == 5


def test_the_model_does_not_come_out_by_itself(path: Path) -> None:
    """The file is torch's own, with nothing in it that must be executed; but what people write without thinking does
    not load the weights without their bill. Catches a file that needs pickle, and one that looks like a state_dict.
    """
    run = saved(path)
    found = torch.load(path, weights_only=True)
    assert set(found) == {"privet checkpoint", "record", INSIDE}
    assert "not private" in INSIDE
    assert equal(found[INSIDE]["model"], run.model.state_dict())
    with pytest.raises(KeyError):
        found["model"]
    with pytest.raises(RuntimeError, match="without their bill"):
        built().load_state_dict(found)
    if os.name == "posix":
        assert {each.stat().st_mode & 0o077 for each in (path, Path(f"{path}.journal"))} == {0}


def test_what_cannot_be_saved_plainly_is_refused(path: Path) -> None:
    """Catches an object that would be pickled: the file would then execute what is in it. An older file stays."""
    run = saved(path)
    before = path.read_bytes()
    run = resumed(path)
    run.optimizer.param_groups[0]["note"] = np.float64(1)
    with pytest.raises(InvalidInput, match=r"holds a float64 at optimizer\.param_groups"):
        run.save(path)
    assert path.read_bytes() == before
    with pytest.raises(InvalidInput, match="no directory"):
        run.save(path.parent / "nowhere" / "run.pt")
