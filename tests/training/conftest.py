"""Short private runs for the tests of a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from privet.core.random import Rng, SeededRng
from privet.training import DPSGD, Flat, Performance, Run, step
from privet.training.clipping import Clipping
from privet.training.native import loops
from tests.training.models import filled

__all__ = ["Attach"]

FLAT = Flat()
Attach = Callable[..., Run]


@pytest.fixture
def attach() -> Attach:
    """Attach a plan with a public sample rate; every row is in every batch unless a test says otherwise."""

    def attached(
        model: nn.Module,
        data: Any,
        *,
        noise_multiplier: float = 0.0,
        clip: float = 1.0,
        batch_size: int = 1,
        sample_rate: float = 1.0,
        steps: int = 1,
        clipping: Clipping = FLAT,
        performance: Performance | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        users: Any = None,
        rng: Rng | None = None,
    ) -> Run:
        plan = DPSGD(
            clip=clip,
            noise_multiplier=noise_multiplier,
            batch_size=batch_size,
            sample_rate=sample_rate,
            steps=steps,
            clipping=clipping,
            delta=1e-5,
        )
        return plan.attach(
            model,
            optimizer or torch.optim.SGD(model.parameters(), lr=0.0),
            data,
            users=users,
            performance=performance,
            rng=rng or SeededRng(11),
        )

    return attached


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """Every noise that a step asks for, as (how many, which deviation); none is added."""
    asked: list[tuple[int, float]] = []

    def fill(tensor: Tensor, std: float, rng: Rng) -> None:
        asked.append((tensor.numel(), std))
        tensor.zero_()

    monkeypatch.setattr(step, "fill", fill)
    return asked


@pytest.fixture
def network() -> nn.Module:
    """Two linear layers, away from their special first values."""
    return filled(nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))).float()


def squared(model: nn.Module, x: Tensor) -> Tensor:
    """One loss a row."""
    output: Tensor = model(x)
    return output.flatten(1).square().sum(1)


def trained_on(run: Run, model: nn.Module, loss: Callable[[nn.Module, Tensor], Tensor] = squared) -> None:
    """All steps of a run on rows without labels."""
    for x in run.batches():
        run.step(loss(model, x))


def gradient(model: nn.Module) -> Tensor:
    """What the optimizer was given, as one vector."""
    return torch.cat([p.grad.detach().flatten() for p in model.parameters() if p.grad is not None])


@pytest.fixture(params=[True, False], ids=["compiled", "torch"])
def loops_or_not(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """With the compiled loops, and without."""
    if not request.param:
        monkeypatch.setattr(loops, "_kernels", None)
    return bool(request.param)
