"""Warnings of a run: what is sound, and probably not what was meant."""

from __future__ import annotations

import warnings

from torch import nn

__all__ = [
    "PrivateWarning",
    "TrainingWarning",
    "warn_of_eval_mode",
    "warn_of_no_gradient",
    "warn_of_rates",
    "warn_of_unrepeatable",
]

_RANDOM = ("drop", "stochasticdepth")
"""Parts of the names of layers, torch's and others', that do something in training mode alone."""


class TrainingWarning(UserWarning):
    """The guarantee holds, and the result is probably not what was meant."""


class PrivateWarning(TrainingWarning):
    """The same, and whether it comes depends on private rows: it is for those who may see them, and is no release."""


def warn_of_eval_mode(model: nn.Module) -> None:
    """Warn where the whole model is in eval mode and has layers that would do something in training mode."""
    names = sorted({type(module).__name__ for module in model.modules() if not model.training and _is_random(module)})
    if names:
        problem = f"the model is trained in eval mode, in which {', '.join(names)} does nothing"
        advice = "call model.train() before the loop; if that is meant, then also .eval() on just these layers"
        warnings.warn(f"{problem}; {advice}", TrainingWarning, stacklevel=6)


def warn_of_no_gradient() -> None:
    """Warn where every loss or gradient of a piece is NaN or infinite."""
    problem = "every loss or gradient of a whole batch is NaN or infinite: each counts as zero, and noise alone is left"
    advice = "stop here and look at inputs, losses and learning rate; whether this comes depends on private rows"
    warnings.warn(f"{problem}, while the budget is spent; {advice}", PrivateWarning, stacklevel=6)


def warn_of_rates() -> None:
    """Warn where the learning rate changes in a pass that is no step."""
    problem = "the learning rate changed in a pass of the loop that is no step (rehearsals and micro-batches are none)"
    warnings.warn(f"{problem}; write: if run.step(losses): scheduler.step()", TrainingWarning, stacklevel=7)


def warn_of_unrepeatable() -> None:
    """Warn where a loop gives other losses for the same rows, so that losses could not be compared."""
    problem = "the loop gives other losses for the same rows, so that it was not checked whether they depend on others"
    advice = "draw random numbers from torch's, numpy's or Python's global generator, and they are repeated"
    warnings.warn(f"{problem} (mixup, means of the batch); {advice}", TrainingWarning, stacklevel=7)


def _is_random(module: nn.Module) -> bool:
    if isinstance(module, (nn.RNNBase, nn.MultiheadAttention)):
        return module.dropout > 0
    if any(part in type(module).__name__.lower() for part in _RANDOM):
        return bool(getattr(module, "p", 1.0))
    return False
