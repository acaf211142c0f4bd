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
    """Score examples by how many noisy versions of them the model labels rightly: all that labels alone can tell.

    Args:
        right: [examples, queries], whether each answer was right.

    Returns:
        [examples]: the share of right answers. Higher means that the example was a member.

    Raises:
        InvalidInput: If `right` is no table of truth values.

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
    """Return versions of examples with more and more normal noise, for those who see labels alone.

    A member stays on its side of the decision boundary for longer.

    Args:
        inputs: The examples.
        count: How many versions to make.
        spread: The noise of the last version, in standard deviations of all inputs.
        key: What the noise is drawn from.

    Raises:
        InvalidInput: If `count` is below 1.
    """
    drawn = generator(key, "versions")
    unit = spread * inputs.float().std()
    steps = [(each + 1) / count for each in range(checked.count("count", count))]
    return [inputs + step * unit * torch.randn(inputs.shape, generator=drawn) for step in steps]
