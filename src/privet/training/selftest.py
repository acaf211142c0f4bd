"""Is privacy really on? Checks on the user's own objects, without a release and without changing anything."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from privet.core import InvalidInput
from privet.core.random import SeededRng
from privet.training.accumulate import GradientSum
from privet.training.coupling import untouched
from privet.training.engine.backward import Engine
from privet.training.engine.contributions import Contribution, Dense
from privet.training.rehearsal import rehearse
from privet.training.state import modes_restored
from privet.training.tail import Tail

if TYPE_CHECKING:
    from privet.training.step import Step

__all__ = ["Check", "SelfTest", "selftest"]

_FALSE_ALARM = 6.0
"""A sound run fails a check of the noise with the probability that a normal exceeds this: 2e-9."""


@dataclass(frozen=True)
class Check:
    """One thing that was measured."""

    what: str
    passed: bool
    measured: float
    expected: str

    def __str__(self) -> str:
        return f"{'ok  ' if self.passed else 'FAIL'} {self.what}: {self.measured:.6g}, expected {self.expected}"


@dataclass(frozen=True)
class SelfTest:
    """What a self-test found; it is internal, for the gradients of a few rows are behind it."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def __str__(self) -> str:
        return "\n".join(map(str, self.checks))


def selftest(step: Step, losses_of: Callable[[Any], Tensor] | None, read: Callable[[Any], Any], rows: int) -> SelfTest:
    """Measure the noise, the clip and the parameters of a run's step; with `losses_of`, the gradients of a few rows.

    Losses that a run would refuse are refused here, too.
    """

    def few(row: int | None) -> Any:
        return read(list(range(min(3, rows))) if row is None else [row])

    refusal = None
    own, before = _twin(step), [parameter.grad for parameter in step.parameters]
    try:
        checks = [_noise(own), _clip(own), _parameters(own)]
        if losses_of is not None:
            # In eval mode, for dropout would give a row other gradients alone than among others.
            with untouched(step.model), modes_restored(step.model, evaluate=True):
                checks.append(_gradients(own, losses_of, few))
                refusal = rehearse(step.model, losses_of, read, rows)
    finally:
        for parameter, gradient in zip(step.parameters, before, strict=True):
            parameter.grad = gradient
    found = SelfTest(tuple(checks))
    if found.passed and refusal is not None:
        raise refusal
    return found


def _twin(step: Step) -> Step:
    """A step on the same model, optimizer and processes, with sums, counts, knowledge and a seed's numbers of its own.

    So a run goes on as if nobody had asked, even from the middle of a step.
    """
    own = copy.copy(step)
    own.sum = GradientSum(step.parameters, wide=step.grid is not None)
    own.engine = Engine(step.engine.parameters, step.engine.names, step.engine.rules)
    own.calls = copy.copy(step.calls)
    own.rng = step.rng.child("selftest") if isinstance(step.rng, SeededRng) else step.rng
    return own


def _noise(step: Step) -> Check:
    """Zero gradients: what is released is noise of deviation σ · clip / batch size."""
    step.begin()
    step.total(0.0)  # over all processes, of which one draws it
    std = (step.plan.noise_multiplier or 0.0) * step.clip / (step.plan.batch_size or 1)
    measured = float(step.sum.flat.double().square().mean().sqrt())
    room = _FALSE_ALARM / sqrt(2 * max(1, step.sum.flat.numel()))
    return Check(
        "deviation of the noise without gradients",
        abs(measured - std) <= room * std,
        measured,
        f"{std:.6g} within {100 * room:.2g} %",
    )


def _clip(step: Step) -> Check:
    """One enormous example: it moves the sum by no more than the clip."""
    parts: list[Contribution | None] = [
        Dense(torch.full((1, p.numel()), 1e6, dtype=v.dtype, device=v.device)) for p, v in _pairs(step)
    ]
    step.sum.flat.zero_()
    step.add_clipped(parts)
    moved = float(torch.linalg.vector_norm(step.sum.flat.double())) * (
        1 if step.grid is not None else step.plan.batch_size or 1
    )
    return Check("how far one huge example moves the sum", 0 < moved <= step.clip, moved, f"at most {step.clip:.6g}")


def _parameters(step: Step) -> Check:
    """The optimizer holds exactly the parameters that are clipped."""
    held = [p for group in step.optimizer.param_groups for p in group["params"] if p.requires_grad]
    same = {id(p) for p in held} == {id(p) for p in step.parameters}
    return Check(
        "parameters that the optimizer changes",
        same and bool(held),
        len(held),
        f"{len(step.parameters)}, the clipped ones",
    )


def _gradients(step: Step, losses_of: Callable[[Any], Tensor], few: Any) -> Check:
    """The engine's norms for a few rows, against autograd on each of them alone."""
    step.watch()
    losses = _each(losses_of(few(None)))
    calls = step.calls.found
    step.calls.close()
    Tail.of(losses, {node for call in calls if call.outermost for node in call.edges_nodes()}).require_unscaled()
    parts = step.engine.gradients(losses, None, calls)
    squares = torch.stack([part.squares().value.double() for part in parts if part is not None]).sum(0)
    errors = []
    for row in range(len(losses)):
        alone = _each(losses_of(few(row)))
        gradients = torch.autograd.grad(alone.sum(), step.parameters, allow_unused=True)
        square = sum(float(g.double().square().sum()) for g in gradients if g is not None)
        errors.append(abs(float(squares[row]) - square) / max(square, 1e-30))
    # Unlike Python's `max`, this one lets no NaN disappear: rows that give none were not compared with anything.
    worst = float(torch.tensor(errors, dtype=torch.float64).max())
    expected = "at most 0.001" if worst == worst else "a number: these rows' losses or gradients are none (NaN)"
    return Check("largest relative error of a squared gradient norm", worst <= 1e-3, worst, expected)


def _each(losses: object) -> Tensor:
    if not isinstance(losses, Tensor) or losses.dim() != 1:
        problem = "gives no tensor with one number for each row"
        raise InvalidInput("loss", problem, "give a function from a batch to losses, such as with reduction='none'")
    return losses


def _pairs(step: Step) -> list[tuple[Tensor, Tensor]]:
    return list(zip(step.parameters, step.sum.views, strict=True))
