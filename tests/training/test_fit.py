"""The whole loop in one call: what it refuses before anything is drawn, and what it leaves behind."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import privet
from privet.core.errors import InvalidInput, PrivetError
from privet.core.random import SeededRng
from privet.ledger import Ledger
from privet.training import DPSGD, Progress
from tests.training.models import filled, normal

ROWS = 40
DATA = normal(ROWS, 4).float(), torch.arange(ROWS) // 14  # sorted by label
PLAN = DPSGD(noise_multiplier=1.0, delta=1e-3, batch_size=10, steps=3, population=ROWS)
Loss = Callable[[Tensor, Tensor], Tensor]


def entropy(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output, target, reduction="none")


def network() -> nn.Module:
    return filled(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 3))).float()


def fitted(model: nn.Module, loss: Loss = entropy, data: Any = DATA, **given: Any) -> Any:
    given.setdefault("rng", SeededRng(2))
    plan = given.pop("plan", PLAN)
    return privet.fit(model, data, plan, loss=loss, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), **given)


COUPLED: dict[str, Loss] = {
    "contrastive": lambda output, target: F.cross_entropy(
        output @ output.T, torch.arange(len(output)), reduction="none"
    ),
    "over the batch's mean": lambda output, target: entropy(output, target) / entropy(output, target).mean().detach(),
    "over the batch's classes": lambda output, target: entropy(output, target) / target.bincount(minlength=3)[target],
    "over the rows that count": lambda output, target: entropy(output, target) / (target != 2).sum(),
    "centred": lambda output, target: entropy(output - output.mean(0).detach(), target),
    "in another order": lambda output, target: entropy(output, target).flip(0),
    "the mean for everyone": lambda output, target: entropy(output, target).mean().expand(len(target)),
}


@pytest.mark.parametrize("loss", COUPLED)
def test_losses_that_look_at_other_rows(loss: str, tmp_path: Path) -> None:
    """A step is given losses and cannot see what made them; `fit` has the loss itself. Catches a loss that is trained
    with although clipping a row does not bound what it does, and a refusal that costs something."""
    model = network()
    before, state = copy.deepcopy(model.state_dict()), torch.random.get_rng_state()
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.create("clinic", epsilon=30.0, delta=1e-2)
    with pytest.raises(InvalidInput, match=r"loss gives another value for a row .* from that row alone"):
        fitted(model, COUPLED[loss], charge=ledger.budget("clinic"))
    assert ledger.budget("clinic").epsilon_left == pytest.approx(30.0)
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


OWN: dict[str, Loss] = {
    "of each row": entropy,
    "smoothed and weighted": lambda output, target: F.cross_entropy(
        output, target, weight=torch.tensor([1.0, 2.0, 3.0]), label_smoothing=0.1, reduction="none"
    ),
    "not a number": lambda output, target: entropy(output, target) * torch.where(target == 1, torch.nan, 1.0),
    "normalised within a row": lambda output, target: entropy(F.layer_norm(output, (3,)), target),
    "with random numbers": lambda output, target: entropy(output + 0.1 * torch.randn_like(output), target),
}


@pytest.mark.parametrize("loss", OWN)
def test_losses_that_are_each_rows_own(loss: str) -> None:
    """Catches a check that refuses what is sound: dropout, random numbers, NaN."""
    assert fitted(network(), OWN[loss]).guarantee.delta == 1e-3


SHAPES: dict[str, Callable[[Tensor], Any]] = {
    "a mean": lambda losses: losses.mean(),
    "a column": lambda losses: losses[:, None],
    "a number": lambda losses: 0.5,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_losses_of_another_shape(shape: str) -> None:
    with pytest.raises(InvalidInput, match=r"loss gives .* one number for each .* reduction='none'"):
        fitted(network(), lambda output, target: SHAPES[shape](entropy(output, target)))


def test_data_without_targets(tmp_path: Path) -> None:
    """The reservation is given back. Catches one that stays for ever."""
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.create("clinic", epsilon=30.0, delta=1e-2)
    for data, plan in ((DATA[0], PLAN), (DATA, DPSGD(noise_multiplier=1.0, batch_size=10, steps=3, population=ROWS))):
        with pytest.raises(InvalidInput, match=r"pairs|delta is missing"):
            fitted(network(), data=data, plan=plan, charge=ledger.budget("clinic"))
    assert ledger.budget("clinic").epsilon_left == pytest.approx(30.0)


def test_a_callback_that_fails_ends_the_run(tmp_path: Path) -> None:
    """What was drawn stays charged. Catches a charge that is given back although noise was added and seen."""
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.create("clinic", epsilon=30.0, delta=1e-2)

    def stop(progress: Progress) -> None:
        raise PrivetError(f"stopped at {progress.step} of {progress.total}")

    with pytest.raises(PrivetError, match="stopped at 1 of 3"):
        fitted(network(), charge=ledger.budget("clinic"), callbacks=[stop])
    assert ledger.budget("clinic").epsilon_left < 29.0


def test_what_is_checked_costs_no_draw() -> None:
    """The same seed gives the same weights as a loop without the check. Catches numbers taken from the run's stream."""
    model, twin = network(), network()
    for each in (model, twin):
        next(layer for layer in each.modules() if isinstance(layer, nn.Dropout)).eval()
    fitted(model)
    run = PLAN.attach(twin, torch.optim.SGD(twin.parameters(), lr=0.1), DATA, rng=SeededRng(2))
    for x, y in run.batches():
        run.step(entropy(twin(x), y))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_a_model_in_eval_mode_is_trained_in_training_mode(average: float) -> None:
    """And is in eval mode afterwards, as is the average; frozen statistics stay frozen. Catches dropout that is off, a
    mode that is left behind, and BatchNorm that comes back to life."""
    model = network()
    model.insert(1, nn.BatchNorm1d(8))  # type: ignore[operator]
    model.eval()
    seen: list[list[str]] = []

    def look(progress: Progress) -> None:
        seen.append([type(each).__name__ for each in progress.model.modules() if not each.training])

    release = fitted(model, plan=replace(PLAN, average=average), callbacks=[look])
    assert seen == [["BatchNorm1d"]] * 3
    assert not any(each.training for each in (*model.modules(), *release.value.modules()))
    mixed = network()
    layer = next(each for each in mixed.modules() if isinstance(each, nn.Dropout)).eval()
    fitted(mixed)
    assert mixed.training
    assert not layer.training


def two(one: int, other: int) -> None:
    """A callback that is none."""


@pytest.mark.parametrize(
    ("callbacks", "words"),
    [(print, "is of the type builtin_function_or_method, and not a list"), ([two], "has two, which"), ([3], "has 3,")],
)
def test_callbacks_that_cannot_be_called(callbacks: Any, words: str, tmp_path: Path) -> None:
    """Catches an error of Python's after the first step, when the whole plan is paid for."""
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.create("clinic", epsilon=30.0, delta=1e-2)
    with pytest.raises(InvalidInput, match=f"callbacks {words}"):
        fitted(network(), charge=ledger.budget("clinic"), callbacks=callbacks)
    assert not ledger.show("clinic").entries
    fitted(network(), callbacks=[lambda *told: None, str])


class Sequences(nn.Module):
    """A recurrent network as torch makes it by default: time comes first."""

    def __init__(self, batch_first: bool) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTM(4, 6, batch_first=batch_first), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.head(self.cell(x)[0])
        return output


def test_time_comes_first_in_a_recurrent_network() -> None:
    """Rows come first in the data, and the network takes them for moments. Catches words about contrastive losses
    alone."""
    data = normal(ROWS, 5, 4).float(), torch.arange(ROWS * 5).view(ROWS, 5) % 3

    def loss(output: Tensor, target: Tensor) -> Tensor:
        return entropy(output.transpose(1, 2), target).mean(1)

    with pytest.raises(InvalidInput, match=r"comes first in what cell is given, make it with batch_first=True"):
        fitted(Sequences(batch_first=False), loss, data)
    fitted(Sequences(batch_first=True), loss, data)
