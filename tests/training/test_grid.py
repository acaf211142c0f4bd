"""Training with noise on a grid: exact multiples of a power of two, the right deviation, and nothing else changes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import privet
from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.training import Adaptive
from privet.training.grid import ASSUMPTION, Grid

ROWS = torch.linspace(-1.0, 1.0, 60 * 7).view(60, 7)


def run_with(model: nn.Module, **knobs: object) -> privet.training.Run:
    plan = privet.DPSGD(delta=1e-5, batch_size=20, steps=3, noise="lattice", **knobs)  # type: ignore[arg-type]
    return plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.0), ROWS, rng=SeededRng(3))


def stepped(model: nn.Module, run: privet.training.Run, scale: float) -> Tensor:
    for rows in run.batches():
        run.step(scale * model(rows.to(next(model.parameters()).dtype)).square().sum(1))
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


def test_gradients_lie_on_the_grid() -> None:
    """Catches noise that is added in floating point, or a division before the sum is on the grid."""
    model = nn.Linear(7, 400).double()
    run = run_with(model, noise_multiplier=1.0)
    found = stepped(model, run, 1.0) * 20
    grid = run._step.grid
    assert grid is not None
    steps = found / grid.lattice.step
    assert float((steps - steps.round()).abs().max()) < 1e-3
    assert ASSUMPTION in run.guarantee().assumptions
    assert "continuous (floating-point) noise" not in run.guarantee().assumptions


def test_deviation_without_gradients() -> None:
    """Halved or doubled noise is caught; a sound run fails with probability below 1e-9 (six deviations)."""
    model = nn.Linear(7, 400)
    found = stepped(model, run_with(model, noise_multiplier=2.0, clip=0.5), 0.0).double()
    assert float(found.std()) == pytest.approx(2.0 * 0.5 / 20, rel=6 / (2 * found.numel()) ** 0.5)


def test_one_row_moves_the_sum_by_the_clip() -> None:
    """Catches a clip that is dropped, or applied to float32 norms only."""
    model = nn.Linear(7, 3)
    run = run_with(model, noise_multiplier=1.0, clip=0.3)
    assert run.selftest(lambda rows: model(rows).square().sum(1)).passed


def test_the_grid_costs_little() -> None:
    """The deviation is above noise_multiplier · clip, by less than a thousandth for a million parameters."""
    plan = privet.DPSGD(noise_multiplier=1.1, batch_size=256, epochs=1, population=60_000, noise="lattice")  # type: ignore[arg-type]
    assert 1.1 < Grid.of(plan, 1_000_000).deviation < 1.1 * 1.001


def test_refused() -> None:
    """Where nothing is proven."""
    with pytest.raises(InvalidInput, match="clipping"):
        run_with(nn.Linear(7, 3), noise_multiplier=1.0, clipping=Adaptive())
    with pytest.raises(InvalidInput, match="noise_multiplier"):
        run_with(nn.Linear(7, 3), noise_multiplier=0.0)
