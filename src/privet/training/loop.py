"""The training loop: every planned step, with checkpoints, in `fit`, in recipes and in runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from torch import Tensor

    from privet.training.run import Run

__all__ = ["StepFunction", "train_steps"]

StepFunction: TypeAlias = "Callable[[Any], tuple[Tensor, bool]]"
"""From a batch, or a piece of one, to its per-example losses and whether the step is complete."""

_SECONDS_BETWEEN_CHECKPOINTS = 20.0


def train_steps(
    run: Run,
    take_step: StepFunction,
    *,
    after_step: Callable[[float], None] | None = None,
    checkpoint: Path | None = None,
) -> None:
    """Take all steps that a run has left.

    Args:
        run: A run that was attached or resumed.
        take_step: Computes the losses of a batch and calls `Run.step`.
        after_step: Called after each complete step with the mean loss of its batch, which is private.
        checkpoint: Where the run is saved now and then, and when it is interrupted. None saves nothing.
    """
    if checkpoint is not None and not checkpoint.exists():
        run.save(checkpoint)
    saved = time.monotonic()
    total, examples = 0.0, 0
    try:
        for batch in run.batches():
            losses, is_complete = take_step(batch)
            if after_step is not None:
                total, examples = total + float(losses.detach().sum()), examples + len(losses)
            if not is_complete:
                continue
            if after_step is not None:
                after_step(total / max(examples, 1))
                total, examples = 0.0, 0
            if checkpoint is not None and time.monotonic() - saved > _SECONDS_BETWEEN_CHECKPOINTS:
                run.save(checkpoint)
                saved = time.monotonic()
    except KeyboardInterrupt:
        if checkpoint is not None:
            run.save(checkpoint)
        raise
