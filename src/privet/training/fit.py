"""The whole loop in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from privet.core.errors import InvalidInput
from privet.core.random import Rng
from privet.core.release import Release
from privet.training.coupling import check_losses
from privet.training.data import Rows
from privet.training.performance import Performance
from privet.training.plan import DPSGD

if TYPE_CHECKING:
    import torch

    from privet.ledger import Ledger
    from privet.ledger.fingerprint import Fingerprint

__all__ = ["Progress", "fit"]

_ENOUGH = 32
"""Rows that the loss is tried on."""


@dataclass(frozen=True)
class Progress:
    """What a callback is told after each step. Nothing in it depends on the data but through what was released."""

    step: int
    total: int
    model: nn.Module


def fit(
    model: nn.Module,
    dataset: Any,
    plan: DPSGD,
    *,
    loss: Callable[[Any, Any], Tensor],
    optimizer: torch.optim.Optimizer,
    callbacks: Sequence[Callable[[Progress], None]] = (),
    ledger: Ledger | None = None,
    budget: str | None = None,
    fingerprint: Fingerprint | None = None,
    purpose: str = "training",
    users: Any = None,
    cap: int = 1,
    collate_fn: Any = None,
    performance: Performance | None = None,
    rng: Rng | None = None,
    delta: float | None = None,
) -> Release[nn.Module]:
    """Train `model` privately on pairs (input, target).

    Args:
        model: any module; it is trained in place and stays what it is.
        dataset: pairs of tensors, or a data set of pairs, with a length.
        plan: the public knobs.
        loss: from the model's output and the target to one loss for each example (`reduction="none"`).
        optimizer: any optimizer of `model`'s parameters.
        callbacks: called after each step, for learning-rate schedules and progress bars.
        ledger, budget, fingerprint, purpose, users, cap, collate_fn, performance, rng: as for `DPSGD.attach`.
        delta: for the release's guarantee; the plan's by default.

    Guarantee: that of `plan`, for `plan.unit()` (see `DPSGD`), provided that `loss` looks at each example by itself.
    That is tried out before the first step, on a few rows of which half are exchanged; a refusal costs nothing.
    """
    run = plan.attach(
        model,
        optimizer,
        dataset,
        ledger,
        budget=budget,
        fingerprint=fingerprint,
        purpose=purpose,
        users=users,
        cap=cap,
        collate_fn=collate_fn,
        performance=performance,
        rng=rng,
    )
    try:
        run.guarantee(delta)  # before any work: without a δ there would be no release
        with run.world.together():
            _check(model, Rows.of(dataset, collate_fn=collate_fn), loss)
        for inputs, target in run.batches():
            if run.step(loss(model(inputs), target)):
                for callback in callbacks:
                    callback(Progress(run.steps, run.total, model))
        return run.release(delta)
    finally:
        run.close()  # gives back what was reserved, if nothing was drawn; after a release it does nothing


def _check(model: nn.Module, rows: Rows, loss: Callable[[Any, Any], Tensor]) -> None:
    """Refuse data and losses that cannot be used, before anything is drawn."""
    few = min(len(rows), _ENOUGH)
    # From all over the data set, which may be sorted by its labels.
    batch = rows.batch([row * len(rows) // few for row in range(few)])
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        raise InvalidInput("dataset", "does not give pairs of input and target", "write the loop with plan.attach")
    check_losses(lambda batch: loss(model(batch[0]), batch[1]), batch, few, model)
