"""What a membership attacker sees: the model's answers about a pool of examples, and shadow models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from privet.attacks.counting import Reals, checked_scores
from privet.attacks.label_only import noisy_versions
from privet.attacks.pool import Pool
from privet.attacks.shadows import Bits, Shadows, confidences
from privet.attacks.target import Target
from privet.core import InvalidInput

__all__ = ["AttackerView"]


@dataclass(frozen=True, eq=False)
class AttackerView:
    """Target and pool, with each answer computed once. What the target does not show raises `InvalidInput`."""

    target: Target
    pool: Pool
    shadows: Shadows | None = None
    """Shadow models for the examples of the pool, in its order."""
    versions: int = 24
    """How many noisy versions of each example are labeled, beside the example itself."""
    key: str = "privet"

    @cached_property
    def right(self) -> Bits:
        """[examples, 1 + versions]: whether the target labels each version correctly."""
        noisy = noisy_versions(self.pool.inputs, self.versions, key=self.key)
        labels = [self.target.labels(each) == self.pool.labels for each in (self.pool.inputs, *noisy)]
        return np.asarray(torch.stack(labels, dim=1).numpy())

    @cached_property
    def outputs(self) -> Tensor:
        """[examples, classes]: the target's scores, before softmax."""
        return self.target.scores(self.pool.inputs)

    @cached_property
    def confidences(self) -> Reals:
        """[examples]: logit-scaled confidence in the true class."""
        return checked_scores("scores", confidences(self.outputs, self.pool.labels), 1)

    @cached_property
    def losses(self) -> Reals:
        """[examples]: the cross-entropy of the target."""
        return np.logaddexp(0.0, -self.confidences)

    @cached_property
    def shadow_models(self) -> Shadows:
        """The shadow models on the examples themselves, without further queries."""
        if self.shadows is None:
            raise InvalidInput("shadows", "are missing", "train some by shadows(…)")
        return Shadows(self.shadows.scores[:, :, 0], self.shadows.inside, self.shadows.outputs)

    @cached_property
    def reference_losses(self) -> Reals:
        """[1, examples]: minus the mean loss of the shadow models that did not see an example."""
        given = self.shadow_models
        _, means = Shadows(-np.logaddexp(0.0, -given.scores), given.inside).side(inside=False)
        return means.T
