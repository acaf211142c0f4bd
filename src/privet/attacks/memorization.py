"""Memorization of each record: answers of models that were trained on it, compared with those that were not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privet.attacks.counting import Reals
from privet.attacks.shadows import Shadows
from privet.core import InvalidInput

__all__ = ["Memorization", "memorization"]


@dataclass(frozen=True, eq=False)
class Memorization:
    """Memorization of each example: the difference between models that were trained on it and models that were not."""

    correctness: Reals = field(repr=False)
    """Feldman & Zhang 2020: how much likelier a model trained on it is to label it correctly; from −1 to 1."""
    correctness_error: Reals = field(repr=False)
    """The standard error of `correctness`."""
    confidence: Reals = field(repr=False)
    """The same for the probability of the true class, which is more informative where all models are correct."""

    def most(self, count: int) -> list[int]:
        """Return the indices of the most memorized examples, by confidence.

        Where estimates are noisy, the first ones are biased upward (winner's curse).

        Args:
            count: How many examples to return.
        """
        return [int(each) for each in np.argsort(-self.confidence, kind="stable")[:count]]


def memorization(shadows: Shadows, labels: Any) -> Memorization:
    """Compute memorization scores from shadow models that were trained for a membership attack.

    The score of Feldman & Zhang is about training sets with and without one record; models on random halves estimate
    its average over random halves of the data, an approach that they use as well (with subsets of 70 %). The standard
    error is that of a difference of proportions after adding one success and one failure to each side (Agresti & Caffo
    2000), as eight models that agree do not prove that all would.

    Args:
        shadows: Shadow models with their outputs, as `shadows(…)` returns them; at least 2 on each side of every
            example.
        labels: [examples]: the true classes.

    Raises:
        InvalidInput: If there is not one label for each example, the shadow models have no outputs, or an example has
            fewer than 2 models that were trained on it or fewer than 2 that were not.
    """
    inside, named = shadows.inside, np.asarray(labels)
    if named.shape != inside.shape[1:]:
        raise InvalidInput(
            "labels", f"have the shape {named.shape}", f"give one for each of {inside.shape[1]} examples"
        )
    if min(inside.sum(0).min(), (~inside).sum(0).min()) < 2:
        raise InvalidInput("shadows", "have an example with fewer than 2 models on a side", "train more of them")
    right = (shadows.all_outputs.argmax(2) == named).astype(np.float64)
    sure = 1 / (1 + np.exp(-np.clip(shadows.scores[:, :, 0], -700, 700)))
    right_in, right_out = _sides(right, inside)
    sure_in, sure_out = _sides(sure, inside)
    counts = inside.sum(0) + 2, (~inside).sum(0) + 2
    shares = [(mean * (count - 2) + 1) / count for mean, count in zip((right_in, right_out), counts, strict=True)]
    error = np.sqrt(sum(share * (1 - share) / count for share, count in zip(shares, counts, strict=True)))
    return Memorization(right_in - right_out, error, sure_in - sure_out)


def _sides(values: Reals, inside: Any) -> tuple[Reals, Reals]:
    """Return the means over models trained on an example, and over those that were not, as [examples] each."""
    saw, others = (np.where(side, values, 0.0).sum(0) / side.sum(0) for side in (inside, ~inside))
    return saw, others
