"""Membership from labels alone (Choquette-Choo, Tramèr, Carlini & Papernot 2021)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from privet.attacks.counting import Reals
from privet.core import InvalidInput, checked
from privet.ensemble import generator

__all__ = ["label_only", "noisy_versions"]


def label_only(right: Any) -> Reals:
    """Score examples by the share of their noisy versions that the model labels correctly.

    Args:
        right: [examples, queries]: whether each answer was correct.

    Returns:
        [examples]: the share of correct answers. Higher means that the example was a member.

    Raises:
        InvalidInput: If `right` is not a table of truth values.

    >>> label_only([[True, True], [True, False]]).tolist()
    [1.0, 0.5]
    """
    answers = np.asarray(right)
    if answers.ndim != 2 or answers.dtype != np.bool_ or not answers.size:
        raise InvalidInput(
            "right", f"has the shape {answers.shape}", "say of each example and version whether it was right"
        )
    return np.asarray(answers.mean(1))


def noisy_versions(inputs: Tensor, count: int, *, spread: float = 0.5, key: str = "privet") -> list[Tensor]:
    """Return versions of examples with increasing normal noise, for attackers who see only labels.

    A member stays on its side of the decision boundary for longer.

    Args:
        inputs: The examples.
        count: The number of versions.
        spread: The noise of the last version, in standard deviations of all inputs.
        key: Seed of the noise.

    Raises:
        InvalidInput: If `count` is below 1.
    """
    drawn = generator(key, "versions")
    unit = spread * inputs.float().std()
    steps = [(each + 1) / count for each in range(checked.count("count", count))]
    return [inputs + step * unit * torch.randn(inputs.shape, generator=drawn) for step in steps]
