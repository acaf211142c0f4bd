"""Passes that are no steps: nothing that they write stays in the model, and losses are those of the drawn rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import privet
from privet.core.errors import InvalidInput
from privet.training import DPSGD, Run, TrainingWarning
from privet.training.state import Attributes
from tests.training.test_losses import DATA, ROWS, attached, entropy, loop, network

X, Y = DATA


class Normalized(nn.Module):
    """A layer that shifts by the mean of the first rows that it sees (activation normalization, as in flow models)."""

    def __init__(self, flag: Callable[[Any], Any]) -> None:
        super().__init__()
        self.linear, self.shift = nn.Linear(X.shape[1], 3), nn.Parameter(torch.zeros(X.shape[1]))
        self.done = flag(self)

    def forward(self, x: Tensor) -> Tensor:
        if not self._is_done():
            with torch.no_grad():
                self.shift.copy_(-x.mean(0))
        out: Tensor = self.linear(x + self.shift)
        return out

    def _is_done(self) -> bool:
        if isinstance(self.done, list):
            done, self.done[0] = self.done[0], True
        elif isinstance(self.done, dict):
            done, self.done["done"] = self.done["done"], True
        elif isinstance(self.done, set):
            done = "open" not in self.done
            self.done.discard("open")
        else:
            done, self.done = self.done, True
        return bool(done)


FLAGS: dict[str, Callable[[Any], Any]] = {
    "list": lambda _: [False],
    "dict": lambda _: {"done": False},
    "set": lambda _: {"open"},
    "attribute": lambda _: False,
}


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("way", ["loop", "fit", "selftest"])
def test_model_that_initializes_itself_from_rows_is_refused(flag: str, way: str) -> None:
    """Fails when a mean of private rows is released as a weight, because it was taken in a pass that is no step."""
    torch.manual_seed(3)
    model = Normalized(FLAGS[flag])
    loss = nn.CrossEntropyLoss(reduction="none")

    def train() -> None:
        if way == "fit":
            plan = DPSGD(noise_multiplier=1.0, delta=1e-3, batch_size=16, steps=3, population=ROWS)
            privet.fit(model, DATA, plan, loss=loss, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
        elif way == "selftest":
            attached(model, 16).selftest(lambda batch: loss(model(batch[0]), batch[1]))
        else:
            loop(attached(model, 16), model, entropy)

    with pytest.raises(InvalidInput, match=r"model has changed its parameter 'shift'"):
        train()
    assert not model.shift.detach().any()


def test_loop_that_sets_a_weight_from_its_first_batch_is_refused() -> None:
    """Fails when the logit of a private mean is released as a bias."""
    model = nn.Linear(X.shape[1], 3)
    before = model.bias.detach().clone()
    run = attached(model, 16)
    seen: list[Tensor] = []

    def start(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        if not seen:
            seen.append(y)
            with torch.no_grad():
                model.get_parameter("bias").copy_(torch.bincount(y, minlength=3).float())
        return entropy(model, x, y)

    with pytest.raises(InvalidInput, match=r"model has changed its parameter 'bias'"):
        loop(run, model, start)
    run.close()
    assert torch.equal(model.bias, before)


def test_containers_of_a_model_are_restored() -> None:
    """Fails when something that a pass put into a list, dict or set of the model stays there."""
    model = nn.Linear(2, 2)
    holder: dict[str, Any] = {"a": [1, 2], "b": (3, 4), "t": torch.zeros(2), "s": {1, 2}}
    model.__dict__["kept"] = holder
    before = Attributes.of(model)
    holder["a"][0] = 9
    holder["b"] = (9, 9)
    holder["t"].add_(1)
    holder["s"].discard(1)
    holder["new"] = 5
    before.put_back()
    assert (holder["a"], holder["b"], holder["s"], set(holder)) == ([1, 2], (3, 4), {1, 2}, {"a", "b", "t", "s"})
    assert not torch.as_tensor(holder["t"]).any()


def elsewhere(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return X[: len(x)], Y[: len(x)]


def drawn_again(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    places = torch.randint(0, ROWS, (len(x),))
    return X[places], Y[places]


def other_targets(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x, Y[: len(x)]


@pytest.mark.parametrize("rows", [elsewhere, drawn_again, other_targets])
def test_losses_of_other_rows_than_those_drawn_are_refused(rows: Callable[[Tensor, Tensor], Any]) -> None:
    """Fails when rows that nobody sampled are trained on at the price of sampled ones."""
    torch.manual_seed(5)
    model = network()
    run = attached(model, 24)
    with pytest.raises(InvalidInput, match="losses are not those of the rows that were drawn"):
        loop(run, model, lambda m, x, y: entropy(m, *rows(x, y)))
    run.close()


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("data", [(torch.ones_like(X), Y), (X, torch.zeros_like(Y))])
def test_losses_of_rows_that_are_alike_are_trained_on(data: tuple[Tensor, Tensor], dropout: float) -> None:
    """Fails when rows that do not differ, in inputs or in targets, pass for rows from elsewhere."""
    torch.manual_seed(7)
    model = network(dropout)
    plan = DPSGD(noise_multiplier=1.0, delta=1e-3, batch_size=24, steps=4, population=ROWS)
    run: Run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.1), data)
    loop(run, model, entropy)
    run.release()


def test_loop_that_cannot_be_compared_is_told_so() -> None:
    """Fails when nothing is said although nothing could be checked."""
    own = torch.Generator().manual_seed(1)
    model = network()
    run = attached(model, 24, steps=2)
    with pytest.warns(TrainingWarning, match="gives other losses for the same rows"):
        loop(run, model, lambda m, x, y: entropy(m, x + torch.randn(x.shape, generator=own), y))
    run.release()


def test_schedule_by_passes_is_told() -> None:
    """Fails when a schedule that counts passes for steps runs out without a word."""
    model = network()
    plan = DPSGD(noise_multiplier=1.0, delta=1e-3, batch_size=24, steps=2, population=ROWS)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    run = plan.attach(model, optimizer, DATA)

    def scheduled(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        optimizer.param_groups[0]["lr"] *= 0.9
        return entropy(model, x, y)

    with pytest.warns(TrainingWarning, match=r"if run\.step"):
        loop(run, model, scheduled)
    run.release()
