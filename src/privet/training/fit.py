"""The whole loop in one call."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from privet.core import InvalidInput, Release
from privet.core.random import Rng
from privet.training.coupling import check_losses
from privet.training.data import Rows, spread
from privet.training.loop import train_steps
from privet.training.performance import Performance
from privet.training.plan import DPSGD
from privet.training.state import modes_restored
from privet.training.validate import running_statistics

if TYPE_CHECKING:
    import torch

    from privet.ledger import Budget
    from privet.training.budget_charge import BudgetCharge
    from privet.training.rules import OperationRule
    from privet.training.sampling import Ids, UserRows

__all__ = ["Progress", "fit"]


@dataclass(frozen=True)
class Progress:
    """Progress of a run, for callbacks. It depends on the data only through released values."""

    step: int
    """Number of steps so far, from 1 on."""
    total: int
    """Steps of the plan."""
    model: nn.Module
    """The current model; with `average=`, not yet the copy that will be released."""


def fit(
    model: nn.Module,
    dataset: Any,
    plan: DPSGD,
    *,
    loss: Callable[[Any, Any], Tensor],
    optimizer: torch.optim.Optimizer,
    callbacks: Sequence[Callable[[Progress], None]] = (),
    charge: BudgetCharge | Budget | None = None,
    users: UserRows | Ids | None = None,
    collate_fn: Any = None,
    performance: Performance | None = None,
    rules: Mapping[str, OperationRule] | None = None,
    rng: Rng | None = None,
    delta: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Release[nn.Module]:
    """Train `model` privately on pairs (input, target).

    Args:
        model: Any module, trained in place. One in eval mode is put into training mode and back again, except for
            layers with running statistics, which stay frozen.
        dataset: Pairs of tensors, or a data set of pairs, with a length.
        plan: The public settings of the run.
        loss: Function from the model's output and the target to one loss for each example (`reduction="none"`).
        optimizer: Any optimizer of `model`'s parameters.
        callbacks: Functions of a `Progress`, called after each step, for learning-rate schedules and progress bars.
        charge: The budget to charge, or a `BudgetCharge`; None charges no budget.
        users: The user of each row, or `UserRows`, where users are protected instead of rows.
        collate_fn: Function that makes a batch of rows, as in torch's `DataLoader`.
        performance: Options that change neither the result nor the guarantee.
        rules: Gradient rules for further operations.
        rng: A seeded generator for tests, which taints the release.
        delta: δ of the release's guarantee; the plan's by default.
        checkpoint: Path where the run is saved every 20 seconds and when it is interrupted. If the file exists, the run
            resumes from it, with the same model, optimizer, data set, users and charge.

    Returns:
        The trained model and its guarantee.

    Raises:
        InvalidInput: An argument cannot be used for private training; nothing is charged then.
        BudgetExceeded: The plan does not fit into the budget.

    Guarantee: that of `plan`, for `plan.unit()` (see `DPSGD`), provided that `loss` looks at each example by itself.
    That is tried out before the first step, on a few rows of which half are exchanged; a refusal costs nothing.
    """
    if not isinstance(plan, DPSGD):
        problem = f"is of the type {type(plan).__name__}"
        raise InvalidInput("plan", problem, "give privet.DPSGD(…), after the model and the data set")
    _check_callbacks(callbacks)
    if not isinstance(model, nn.Module):
        raise InvalidInput("model", f"is a {type(model).__name__}", "give the torch.nn.Module that is to be trained")
    with modes_restored(model):
        _to_training(model)
        path = None if checkpoint is None else Path(checkpoint)
        run = plan.attach(
            model,
            optimizer,
            dataset,
            charge=charge,
            users=users,
            resume=path if path is not None and path.exists() else None,
            collate_fn=collate_fn,
            performance=performance,
            rules=rules,
            rng=rng,
            delta=delta,
        )

        def take_step(batch: Any) -> tuple[Tensor, bool]:
            inputs, target = batch
            losses = loss(model(inputs), target)
            return losses, run.step(losses)

        def after_step(_: float) -> None:
            for callback in callbacks:
                callback(Progress(run.steps, run.total, model))

        try:
            with run.world.together():
                _check(model, Rows.of(dataset, collate_fn=collate_fn), loss)
            train_steps(run, take_step, after_step=after_step if callbacks else None, checkpoint=path)
            release = run.release()
        finally:
            run.close()  # gives back what was reserved, if nothing was drawn; after a release it does nothing
    for released, module in zip(release.value.modules(), model.modules(), strict=True):
        released.training = module.training  # an average of the weights is a copy
    return release


def _check_callbacks(callbacks: Any) -> None:
    """Refuse what could only fail after the first step, when there is something to pay for."""
    if callable(callbacks) or not isinstance(callbacks, Iterable):
        problem = f"is of the type {type(callbacks).__name__}, and not a list"
        raise InvalidInput("callbacks", problem, "give a list of functions: callbacks=[report]")
    for callback in callbacks:
        try:
            inspect.signature(callback).bind(None)
        except TypeError:  # not callable, or not with one argument
            problem = f"has {getattr(callback, '__name__', repr(callback))}, which cannot be called with one argument"
            raise InvalidInput("callbacks", problem, "give functions of one Progress (step, total, model)") from None
        except ValueError:  # some of Python's own functions do not say what they take
            continue


def _to_training(model: nn.Module) -> None:
    """Put a model in eval mode into training mode, except for layers with running statistics, which stay frozen."""
    if not model.training:
        frozen = [module for module in model.modules() if not module.training]
        model.train()
        for module in frozen:
            if running_statistics(module):
                module.training = False


def _check(model: nn.Module, rows: Rows, loss: Callable[[Any, Any], Tensor]) -> None:
    """Refuse data and losses that cannot be used, before anything is drawn."""
    few = spread(len(rows))
    batch = rows.batch(few)
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        raise InvalidInput("dataset", "does not give pairs of input and target", "write the loop with plan.attach")
    try:
        check_losses(lambda batch: loss(model(batch[0]), batch[1]), batch, len(few), model)
    except InvalidInput as error:
        late = [name or "the model" for name, module in model.named_modules() if _time_first(module)]
        if not late:
            raise
        advice = f"or, if the batch comes first in what {', '.join(late)} is given, make it with batch_first=True"
        raise InvalidInput(error.argument, error.problem, f"{error.advice}; {advice}") from error


def _time_first(module: nn.Module) -> bool:
    """Whether the second axis counts the rows in what a layer takes, which is torch's default for these."""
    return isinstance(module, (nn.RNNBase, nn.MultiheadAttention)) and not module.batch_first
