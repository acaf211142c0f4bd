"""Membership from the loss: by itself, or held against models that did not see the example."""

from __future__ import annotations

from typing import Any

import numpy as np

from privet.attacks.counting import Reals, checked_scores
from privet.core import InvalidInput

__all__ = ["calibrated_loss", "loss_threshold"]


def loss_threshold(losses: Any) -> Reals:
    """Score examples by minus their loss: a low loss is a sign of a member (Yeom et al. 2018).

    Args:
        losses: [examples], of the attacked model.

    Returns:
        [examples]: higher means that the example was a member.

    >>> loss_threshold([0.1, 2.0]).tolist()
    [-0.1, -2.0]
    """
    return -checked_scores("losses", losses, 1)


def calibrated_loss(scores: Any, references: Any) -> Reals:
    """Score examples by a score less its mean over models that did not see the example (Watson et al. 2022).

    Args:
        scores: [examples], of the attacked model.
        references: [models, examples], of models that did not see them.

    Returns:
        [examples]: higher means that the example was a member.

    Raises:
        InvalidInput: If `references` is no table with a row for each model.
    """
    own, others = checked_scores("scores", scores, 1), np.asarray(references, dtype=np.float64)
    if others.ndim != 2 or others.shape[1:] != own.shape or not len(others):
        raise InvalidInput("references", f"have the shape {others.shape}", "give a row for each model")
    return np.asarray(own - others.mean(0))
