"""How much each record is memorized: what models say of it that saw it, less what those say that did not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privet.attacks.counting import Reals
from privet.attacks.shadows import Shadows
from privet.core.errors import InvalidInput

__all__ = ["Memorization", "memorization"]


@dataclass(frozen=True, eq=False)
class Memorization:
    """For each example a difference and its standard error."""

    correctness: Reals = field(repr=False)
    """Feldman & Zhang 2020: how much likelier a model is to label it rightly that saw it; from −1 to 1."""
    correctness_error: Reals = field(repr=False)
    confidence: Reals = field(repr=False)
    """The same of the probability that models give to its class, which says more where all of them are right."""
    confidence_error: Reals = field(repr=False)

    def most(self, count: int) -> list[int]:
        """The examples that are memorized most, by confidence; where many are noisy, the first of them are luckiest."""
        return [int(each) for each in np.argsort(-self.confidence, kind="stable")[:count]]


def memorization(shadows: Shadows, labels: Any) -> Memorization:
    """Memorization scores from shadow models that were trained for a membership attack.

    The score of Feldman & Zhang is about training sets with and without one record; models on random halves estimate
    its average over random halves of the data, which they use as well (with parts of 70 %). Standard errors are those
    of a difference of means: of correctness, a count, after adding a right and a wrong one to each side (Agresti &
    Caffo 2000), as eight models that agree do not prove that all would; of confidence, Welch's.
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
    more, more_error = _difference(right, inside, counted=True)
    surer, surer_error = _difference(sure, inside, counted=False)
    return Memorization(more, more_error, surer, surer_error)


def _difference(said: Reals, inside: Any, *, counted: bool) -> tuple[Reals, Reals]:
    means, variances = [], []
    for side in (inside, ~inside):
        count = side.sum(0)
        mean = np.where(side, said, 0.0).sum(0) / count
        if counted:
            share = (mean * count + 1) / (count + 2)
            variances.append(share * (1 - share) / (count + 2))
        else:
            variances.append(np.where(side, (said - mean) ** 2, 0.0).sum(0) / (count - 1) / count)
        means.append(mean)
    found: Reals = means[0] - means[1]
    error: Reals = np.sqrt(variances[0] + variances[1])
    return found, error
