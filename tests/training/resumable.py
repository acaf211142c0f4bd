"""Runs to save and to resume: a small model, its data, and what the tests do with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from privet.core.random import SeededRng
from privet.training import DPSGD, Run

__all__ = [
    "DATA",
    "PLAN",
    "ROWS",
    "Optimizer",
    "adam",
    "attached",
    "built",
    "crashed",
    "equal",
    "go",
    "momentum",
    "noises",
    "resumed",
    "saved",
]

ROWS = 60
DATA = (
    torch.randn(ROWS, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64),
    torch.randn(ROWS, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64),
)
PLAN = DPSGD(noise_multiplier=3.0, batch_size=20, steps=12, population=ROWS, delta=1e-5)
Optimizer = Callable[[nn.Module], torch.optim.Optimizer]


def adam(model: nn.Module) -> torch.optim.Optimizer:
    """With moments."""
    return torch.optim.Adam(model.parameters(), lr=0.05)


def momentum(model: nn.Module) -> torch.optim.Optimizer:
    """With a velocity."""
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)


def built(width: int = 5, between: type[nn.Module] = nn.Tanh) -> nn.Module:
    """The same weights each time."""
    model = nn.Sequential(nn.Linear(4, width), between(), nn.Linear(width, 2)).double()
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return model


def go(run: Run, steps: int | None = None) -> Run:
    """Make so many steps, or all that are left."""
    last = run.total if steps is None else run.steps + steps
    if run.steps < last:
        for x, y in run.batches():
            if run.step(((run.model(x) - y) ** 2).sum(1)) and run.steps >= last:
                break
    return run


def attached(plan: DPSGD = PLAN, optimizer: Optimizer = adam, **given: Any) -> Run:
    """A new run, with a seed unless it has a generator of its own."""
    model = built()
    given.setdefault("rng", SeededRng(11))
    return plan.attach(model, optimizer(model), given.pop("data", DATA), **given)


def resumed(path: Path, plan: DPSGD = PLAN, optimizer: Optimizer = adam, **given: Any) -> Run:
    """A run that goes on, with the same seed unless it has a generator of its own."""
    given.setdefault("rng", SeededRng(11))
    model = given.pop("model", None) or built()
    return plan.attach(model, optimizer(model), given.pop("data", DATA), resume=path, **given)


def saved(path: Path, plan: DPSGD = PLAN, steps: int = 5, **given: Any) -> Run:
    """A run that made some steps, was saved and ended."""
    run = go(attached(plan, **given), steps)
    run.save(path)
    run.close()
    return run


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for part in parts for tensor in _tensors(part)]


def equal(one: Any, other: Any, tolerance: float = 0.0) -> bool:
    """Whether all tensors in two nested states are equal."""
    pairs = list(zip(_tensors(one), _tensors(other), strict=True))
    return len(pairs) > 3 and all(torch.allclose(a, b, rtol=tolerance, atol=tolerance) for a, b in pairs)


def noises(run: Run, steps: int) -> list[Tensor]:
    """What each step added to the weights if the data has no say: the noise."""
    found, before = [], torch.cat([p.detach().flatten() for p in run.model.parameters()])
    last = run.steps + steps
    for x, _ in run.batches():
        if run.step(0.0 * run.model(x).sum(1)):
            now = torch.cat([p.detach().flatten() for p in run.model.parameters()])
            found.append(now - before)
            before = now
            if run.steps == last:
                break
    return found


def crashed(run: Run) -> None:
    """Let go of the files as a dead process does: without a last word."""
    assert run._store._journal is not None
    run._store._journal.close()
