"""RMIA: robust membership inference (Zarifzadeh, Liu & Shokri 2024)."""

from __future__ import annotations

from typing import Any

import numpy as np

from privet.attacks.counting import Reals
from privet.attacks.shadows import Shadows
from privet.core import checked

__all__ = ["rmia"]


def rmia(scores: Any, shadows: Shadows, *, gamma: float = 1.0, online: bool = True, slope: float = 0.3) -> Reals:
    """Score examples by how often their rise in likelihood beats that of others.

    The rise is p(x | model) / p(x), p(x) being the average over shadow models; offline, over those that did not see x,
    corrected as if others had: ((1 + slope)·p + 1 − slope)/2. The others are all examples.

    Args:
        scores: Logit-scaled confidences of the attacked model, [examples] or [examples, queries].
        shadows: What shadow models say.
        gamma: By which factor a rise must beat another one.
        online: Use models that saw the example, too; else only those that did not.
        slope: The paper's a, of the offline correction.

    Returns:
        [examples]: higher means that the example was a member.

    Raises:
        InvalidInput: If model and shadow models were asked about different examples, or hold NaN.
    """
    checked.positive("gamma", gamma)
    own = _chance(shadows.matching(scores)).mean(1)
    every = _chance(shadows.scores).mean(2)
    outs = np.where(shadows.inside, 0.0, every).sum(0) / np.maximum((~shadows.inside).sum(0), 1)
    if online:
        ins = np.where(shadows.inside, every, 0.0).sum(0) / np.maximum(shadows.inside.sum(0), 1)
        average = (ins + outs) / 2
    else:
        average = ((1 + slope) * outs + (1 - slope)) / 2
    rise = own / np.maximum(average, 1e-300)
    return np.asarray(np.searchsorted(np.sort(rise), rise / gamma, side="right") / len(rise))


def _chance(logits: Reals) -> Reals:
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -700, 700))))
