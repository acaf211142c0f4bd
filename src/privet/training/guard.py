"""A guard on the optimizer of a run: it refuses steps whose gradients were never clipped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType, WeakKeyDictionary, ref

import torch
from torch.utils.hooks import RemovableHandle

from privet.core import PrivetError

if TYPE_CHECKING:
    from privet.training.step import Step

__all__ = ["RunError", "guard", "unguard"]


class RunError(PrivetError):
    """A run was used in another order than batch, step, batch, step, …, release."""


_GUARDS: WeakKeyDictionary[torch.optim.Optimizer, RemovableHandle] = WeakKeyDictionary()
"""For each optimizer that a run uses, what refuses steps which are not the run's."""


def guard(optimizer: torch.optim.Optimizer, step: Step) -> None:
    """Refuse every step of the optimizer that is not this run's, in place of an earlier run's guard."""
    unguard(optimizer)
    if hasattr(optimizer, "_optimizer_step_pre_hooks"):  # a host's stand-in has none, and nobody else steps it
        _GUARDS[optimizer] = optimizer.register_step_pre_hook(_only_by(ref(step)))


def unguard(optimizer: torch.optim.Optimizer) -> None:
    """Let the optimizer step freely."""
    if optimizer in _GUARDS:
        _GUARDS.pop(optimizer).remove()


def _only_by(step: ReferenceType[Step]) -> Callable[..., None]:
    """Refuses a step of the optimizer that is not this run's: its gradients were never clipped."""

    def hook(*_: Any) -> None:
        own = step()
        if own is not None and not own.stepping:
            problem = "optimizer.step() was called outside of run.step(), with gradients that nobody clipped or noised"
            advice = "leave it out: run.step(losses) does it, and loss.backward() too"
            raise RunError(f"{problem}; {advice}. (Or another run is attached to this optimizer: go on with the last.)")

    return hook
