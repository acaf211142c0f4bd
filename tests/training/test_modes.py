"""Modes in which the same model runs otherwise: activations computed again, and numbers of fewer bits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from privet.core.errors import InvalidInput
from privet.training import Run
from tests.training.conftest import Attach, gradient, squared, trained_on
from tests.training.models import Described, described, filled, normal
from tests.training.reference import Tapped, loop


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("below", [True, False])
def test_checkpointed_blocks(reentrant: bool, below: bool, attach: Attach) -> None:
    """Activations that are computed again: exact, or refused by name. Catches blocks whose parameters are out of sight
    of the graph and would be taken for unused, so that they get noise and nothing else.
    """

    def forward(m: Any, x: Tensor) -> Tensor:
        hidden = m.first(x) if below else x.clone().requires_grad_()
        out: Tensor = m.last(checkpoint(m.block, hidden, use_reentrant=reentrant))
        return out

    def block() -> nn.Module:
        return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 4))

    model = filled(described(forward, first=lambda: nn.Linear(4, 4), block=block, last=lambda: nn.Linear(4, 2))())
    model.get_submodule("first").requires_grad_(below)
    plain = Described(lambda m, x: m.last(m.block(m.first(x) if below else x)), **dict(model.named_children()))
    exact = torch.cat(list(loop(plain, squared, (normal(5, 4).float(),)).values()), 1)
    run: Run = attach(model, normal(5, 4).float(), clip=1e3)
    try:
        trained_on(run, model)
    except InvalidInput as error:
        message = str(error)
    else:
        message = ""
    difference = gradient(model) - exact.sum(0) if not message else torch.zeros(1)
    assert "checkpoint" in message or float(difference.norm()) <= 1e-5 * float(exact.sum(0).norm())


class Small(nn.Module):
    """A convolution, a normalisation, an embedding, positions, attention's products: all that autocast treats apart."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, 8)
        self.scale = nn.Parameter(torch.ones(8))
        self.norm = nn.LayerNorm(8)
        self.conv = nn.Conv1d(8, 8, 3, padding=1)
        self.group = nn.GroupNorm(2, 8)
        self.line = nn.Linear(8, 5)

    def forward(self, index: Tensor) -> Tensor:
        hidden = self.norm(self.table(index)) * self.scale
        hidden = F.gelu(self.group(self.conv(hidden.transpose(1, 2)))).transpose(1, 2)
        out: Tensor = self.line(hidden)
        return out


def test_autocast() -> None:
    """Pitfall 25. Products in bfloat16, norms and sums in float32. Catches sums that are rounded to 8 bits."""
    model = filled(Small()).float()
    index = torch.randint(9, (6, 7), generator=torch.Generator().manual_seed(1))

    def loss(model: nn.Module, index: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output: Tensor = model(index)
        return output.float().flatten(1).square().sum(1)

    tapped = Tapped(model)
    parts, exact = tapped.parts(loss, (index,)), loop(model, loss, (index,))
    factors = torch.linspace(0.1, 1.0, 6)
    for name, parameter in tapped.parameters.items():
        part = parts[name]
        assert part is not None
        squares = part.squares()
        assert squares.value.dtype == squares.slack.dtype == torch.float32
        out = torch.zeros_like(parameter)
        part.add_to(out, factors)
        # The batch may take another path through bfloat16 than one row does: 2^-8 a rounding.
        true = (factors @ exact[name]).view_as(out)
        assert float((out - true).norm()) <= 0.02 * float(true.norm()), name
        # The norm that clips is the norm of what is summed, to float32's precision.
        for row in range(6):
            alone = torch.zeros_like(parameter)
            part.add_to(alone, torch.eye(6)[row])
            assert float(alone.double().norm()) == pytest.approx(float(squares.value[row].double().sqrt()), rel=1e-4), (
                name
            )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_weights_of_other_types(dtype: torch.dtype, attach: Attach) -> None:
    """The sum and its noise are in float32 at least; the gradient has the weight's own type, as optimizers ask."""
    model = filled(nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))).to(dtype)
    run = attach(model, normal(9, 4).to(dtype), noise_multiplier=1.0)
    trained_on(run, model)
    assert run._step.sum.flat.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert all(p.grad is not None and p.grad.dtype == dtype for p in model.parameters())
