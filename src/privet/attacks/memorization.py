"""How much each record is memorized: what models say of it that saw it, less what those say that did not."""

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
    """Memorization of each example: how models that saw it differ from those that did not."""

    correctness: Reals = field(repr=False)
    """Feldman & Zhang 2020: how much likelier a model is to label it rightly that saw it; from −1 to 1."""
    correctness_error: Reals = field(repr=False)
    """The standard error of `correctness`."""
    confidence: Reals = field(repr=False)
    """The same of the probability that models give to its class, which says more where all of them are right."""

    def most(self, count: int) -> list[int]:
        """The examples that are memorized most, by confidence; where many are noisy, the first of them are luckiest."""
        return [int(each) for each in np.argsort(-self.confidence, kind="stable")[:count]]


def memorization(shadows: Shadows, labels: Any) -> Memorization:
    """Memorization scores from shadow models that were trained for a membership attack.

    The score of Feldman & Zhang is about training sets with and without one record; models on random halves estimate
    its average over random halves of the data, which they use as well (with parts of 70 %). The standard error is that
    of a difference of shares after adding a right and a wrong one to each side (Agresti & Caffo 2000), as eight models
    that agree do not prove that all would.
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
    """[examples]: the means over models that saw an example, and over those that did not."""
    saw, others = (np.where(side, values, 0.0).sum(0) / side.sum(0) for side in (inside, ~inside))
    return saw, others
