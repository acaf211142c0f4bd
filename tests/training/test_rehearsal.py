"""Rehearsals of a loop: each pass finds what no other check does, and none of them leaves a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from privet.core.errors import InvalidInput
from privet.training import DPSGD, BatchSampling
from tests.training.models import filled, normal
from tests.training.test_losses import DATA, ROWS, attached, entropy, loop, network

Loss = Callable[[nn.Module, Tensor, Tensor], Tensor]


def blotted(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Every loss is NaN if the last row has a certain label, and no gradient shows it."""
    return entropy(model, x, y) * (torch.nan if len(y) > 1 and int(y[-1]) != int(y[0]) else 1.0)


HIDDEN: dict[str, Loss] = {
    "reference row": lambda m, x, y: entropy(m, x - 0.5 * x[:1], y),
    "last row": lambda m, x, y: entropy(m, x - 0.5 * x[-1:], y),
    "inputs over the number of rows": lambda m, x, y: entropy(m, 20 * x / len(x), y),
    "slightly": lambda m, x, y: entropy(m, x + 0.02 * x.mean(0), y),
    "NaN by another row": blotted,
}


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.filterwarnings("ignore::privet.training.PrivateWarning")
def test_rehearsal_finds_what_only_one_of_its_passes_shows(name: str) -> None:
    """Before the model nothing is in the graph of the losses. Fails when one half of the rows is never exchanged, when
    fewer rows are never tried, when the tolerance is coarse, or when NaN agrees with a number.
    """
    torch.manual_seed(1)
    model = network()
    run = attached(model, 40)
    with pytest.raises(InvalidInput, match=r"^losses (?!have gradients)"):  # their values show it first
        loop(run, model, HIDDEN[name])
    run.close()


class Counting(nn.Module):
    """A model that counts its calls, in a buffer and in an attribute; no row changes either."""

    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.noted = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.noted += 1
        output: Tensor = self.linear(x)
        return output


def test_rehearsal_restores_buffers_and_attributes() -> None:
    """Fails when a pass on exchanged rows, which counts for nothing, leaves something in the model."""
    model = Counting()
    filled(model).float()
    run = attached(model, 16, steps=3)
    for x, y in run.batches():
        before = int(model.calls), model.noted
        rehearsing = run.rehearsing
        run.step(entropy(model, x, y))
        if rehearsing:
            assert (int(model.calls), model.noted) == before
    run.release()


def test_delta_of_attach_is_held_against_the_number_of_rows() -> None:
    """Fails when the warning about a large δ looks at the plan's, which is None here."""
    model = network()
    plan = DPSGD(noise_multiplier=1.0, batch_size=16, steps=2, population=ROWS)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.warns(UserWarning, match="delta"):
        run = plan.attach(model, optimizer, DATA, delta=0.1)
    run.close()


def test_delta_of_attach_is_that_of_the_release() -> None:
    """Fails when the release states its ε at another δ than the run was attached with."""
    model = network()
    plan = DPSGD(noise_multiplier=1.0, delta=1e-3, batch_size=16, steps=1, population=ROWS)
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.1), DATA, delta=1e-7)
    loop(run, model, entropy)
    found: Any = run.release().guarantee
    assert found == plan.guarantee(1e-7)


def test_rehearsal_rows_are_those_of_the_step() -> None:
    """Fails when a rehearsal hands out rows that the step did not draw: they would be seen without being sampled."""
    model = network()
    marked = torch.arange(ROWS).float()[:, None].expand(ROWS, 4) / 50 + 0.001 * normal(ROWS, 4).float()
    plan = DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=16, steps=1, population=ROWS)
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.1), (marked, DATA[1]))
    tried: set[tuple[float, ...]] = set()
    trained: set[tuple[float, ...]] = set()
    for x, y in run.batches():
        (tried if run.rehearsing else trained).update(tuple(row) for row in x.tolist())
        run.step(entropy(model, x, y))
    assert tried
    assert tried <= trained
    run.release()


def test_rehearsal_tries_fewer_rows_with_dropout_too() -> None:
    """Fails when a loop that draws random numbers is never tried with fewer rows, in eval mode."""
    torch.manual_seed(1)
    model = network(0.3)
    run = attached(model, 40)
    with pytest.raises(InvalidInput, match=r"^losses"):
        loop(run, model, HIDDEN["inputs over the number of rows"])
    run.close()


def test_rehearsal_refusal_is_repeated_where_only_a_rehearsal_sees_it() -> None:
    """In the third step no examination is due. Fails when a refusal that the graph does not show is forgotten there,
    so that whoever catches the error trains with coupled rows.
    """
    torch.manual_seed(1)
    model = network()
    run = attached(model, 40)
    before = [each.detach().clone() for each in model.parameters()]
    for _ in range(5):
        with pytest.raises(InvalidInput, match=r"when the other rows of the batch change"):
            loop(run, model, HIDDEN["last row"])
    assert all(map(torch.equal, before, model.parameters()))
    run.close()


def scaled(model: nn.Module, x: Tensor, y: Tensor, factor: Callable[[Tensor], Tensor]) -> Tensor:
    """Losses whose gradients a factor of the batch scales, and whose values it does not."""
    losses = entropy(model, x, y)
    weights = factor(losses.detach())
    return weights * losses + ((1 - weights) * losses).detach()


def hooked(model: nn.Module, x: Tensor, y: Tensor, hook: Callable[[Tensor], Tensor]) -> Tensor:
    output = model(x)
    output.register_hook(hook)
    return nn.functional.cross_entropy(output, y, reduction="none")


HIDDEN_IN_GRADIENTS: dict[str, Loss] = {
    "softmax of the losses": lambda m, x, y: scaled(m, x, y, lambda losses: 5 * losses.softmax(0)),
    "mean of the losses": lambda m, x, y: scaled(m, x, y, lambda losses: losses / losses.mean()),
    "hook by the number of rows": lambda m, x, y: hooked(m, x, y, lambda gradient: gradient / len(gradient)),
}


@pytest.mark.parametrize("name", HIDDEN_IN_GRADIENTS)
def test_rehearsal_compares_gradients_where_values_agree(name: str) -> None:
    """Fails when only the losses' values are compared: a factor that is detached from them scales every row's gradient
    by something of the batch, after which clipping bounds nothing.
    """
    torch.manual_seed(1)
    model = network()
    run = attached(model, 40)
    with pytest.raises(InvalidInput, match=r"^losses have gradients that change"):
        loop(run, model, HIDDEN_IN_GRADIENTS[name])
    run.close()


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_rehearsal_finds_chunks_of_every_size(size: int) -> None:
    """32 of 64 rows are rehearsed. Fails when rows are exchanged in halves that chunks of them fill exactly; dropout
    leaves the check with fewer rows to eval mode, where this loop mixes nothing.
    """
    torch.manual_seed(1)
    model = network(0.3)
    plan = DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=64, steps=4, batches=BatchSampling.FIXED_SIZE)
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.1), DATA)

    def chunked(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        mixed = torch.cat([part - part.mean(0) if model.training else part for part in torch.split(x, size)])
        return entropy(model, mixed, y)

    with pytest.raises(InvalidInput, match=r"^losses"):
        loop(run, model, chunked)
    run.close()


def test_rehearsal_finds_targets_of_other_rows_with_dropout_too() -> None:
    """Fails when random numbers of the model's own hide that targets are looked up by their place in the data set."""
    torch.manual_seed(1)
    model = network(0.3)
    run = attached(model, 40)
    with pytest.raises(InvalidInput, match=r"^losses are not those of the rows that were drawn"):
        loop(run, model, lambda m, x, y: entropy(m, x, DATA[1][: len(x)]))
    run.close()
