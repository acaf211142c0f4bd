"""The slow and certain way: one example at a time through plain autograd."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import torch
from torch import Tensor, nn

from privet.training.engine.backward import Engine
from privet.training.engine.calls import Calls
from privet.training.engine.contributions import Contribution
from privet.training.rules import RULES, OperationRule
from tests.training.models import Batch, Case

__all__ = ["Tapped", "assert_exact", "loop", "reference", "sums"]

Loss = Callable[..., Tensor]


def trained(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: each for name, each in model.named_parameters() if each.requires_grad}


def loop(model: nn.Module, loss: Loss, rows: Batch) -> dict[str, Tensor]:
    """(examples, size) for each trained parameter: gradients of batches of one."""
    parameters = trained(model)
    found: dict[str, list[Tensor]] = {name: [] for name in parameters}
    for place in range(len(rows[0])):
        value = loss(model, *(each[place : place + 1] for each in rows))
        grads = torch.autograd.grad(value.sum(), list(parameters.values()), allow_unused=True)
        for (name, parameter), grad in zip(parameters.items(), grads, strict=True):
            plain = torch.zeros_like(parameter) if grad is None else grad.to_dense() if grad.is_sparse else grad
            found[name].append(plain.detach().flatten())
    return {name: torch.stack(each) for name, each in found.items()}


@cache
def reference(case: Case, dtype: torch.dtype) -> dict[str, Tensor]:
    """The loop of a case, in double precision as a result."""
    found = loop(case.model(dtype), case.loss, case.rows(dtype))
    return {name: each.double() for name, each in found.items()}


class Tapped:
    """An engine on a model, without a run around it."""

    def __init__(self, model: nn.Module, rules: Mapping[str, OperationRule] = RULES) -> None:
        self.model, self.parameters = model, trained(model)
        values = list(self.parameters.values())
        self.engine = Engine(values, list(self.parameters), rules)
        self.calls = Calls.of(model, values)

    def parts(self, loss: Loss, rows: Batch, weights: Tensor | None = None) -> dict[str, Contribution | None]:
        self.calls.open()
        try:
            losses = loss(self.model, *rows)
            return dict(zip(self.parameters, self.engine.gradients(losses, weights, self.calls.found), strict=True))
        finally:
            self.calls.close()


def sums(part: Contribution | None, like: Tensor, factors: Tensor) -> Tensor:
    """Σ factor · gradient, flat and in double precision."""
    out = torch.zeros_like(like)
    if part is not None:
        part.add_to(out, factors.to(out.dtype))
    return out.detach().flatten().double()


def assert_exact(tapped: Tapped, loss: Loss, rows: Batch, tolerance: float = 1e-10) -> None:
    """One more batch through an engine that may have seen others, in float64."""
    parts, exact = tapped.parts(loss, rows), loop(tapped.model, loss, rows)
    factors = torch.linspace(0.1, 1.0, len(rows[0]), dtype=torch.float64)
    for name, parameter in tapped.parameters.items():
        part, true = parts[name], exact[name]
        size = float(true.norm(dim=1).max())
        norms = (
            torch.zeros(len(true), dtype=true.dtype)
            if part is None
            else part.squares().value.detach().clamp(min=0).sqrt()
        )
        assert float((norms - true.norm(dim=1)).abs().max()) <= tolerance * size + 1e-14, name
        difference = sums(part, parameter, factors) - factors @ true
        assert float(difference.norm()) <= tolerance * float((factors @ true).norm()) + 1e-14, name
