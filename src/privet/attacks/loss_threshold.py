"""Membership inference from the loss: by itself, or calibrated with models that were not trained on the example."""

from __future__ import annotations

from typing import Any

import numpy as np

from privet.attacks.counting import Reals, checked_scores
from privet.core import InvalidInput

__all__ = ["calibrated_loss", "loss_threshold"]


def loss_threshold(losses: Any) -> Reals:
    """Score examples by minus their loss: a low loss indicates a member (Yeom et al. 2018).

    Args:
        losses: [examples]: losses of the attacked model.

    Returns:
        [examples]: higher means that the example was a member.

    Raises:
        InvalidInput: If there are no losses, or one is NaN.

    >>> loss_threshold([0.1, 2.0]).tolist()
    [-0.1, -2.0]
    """
    return -checked_scores("losses", losses, 1)


def calibrated_loss(scores: Any, references: Any) -> Reals:
    """Score examples by a score minus its mean over models that were not trained on the example (Watson et al. 2022).

    Args:
        scores: [examples]: scores of the attacked model.
        references: [models, examples]: scores of models that were not trained on the examples.

    Returns:
        [examples]: higher means that the example was a member.

    Raises:
        InvalidInput: If `references` is not a table with a row for each model, or `scores` is empty or holds NaN.
    """
    own, others = checked_scores("scores", scores, 1), np.asarray(references, dtype=np.float64)
    if others.ndim != 2 or others.shape[1:] != own.shape or not len(others):
        raise InvalidInput("references", f"have the shape {others.shape}", "give a row for each model")
    return np.asarray(own - others.mean(0))
