"""RMIA: robust membership inference (Zarifzadeh, Liu & Shokri 2024)."""

from __future__ import annotations

from typing import Any

import numpy as np

from privet.attacks.counting import Reals
from privet.attacks.shadows import Shadows
from privet.core import checked

__all__ = ["rmia"]


def rmia(scores: Any, shadows: Shadows, *, gamma: float = 1.0, online: bool = True, slope: float = 0.3) -> Reals:
    """Score examples by how often their likelihood ratio exceeds that of other examples.

    The ratio is p(x | model) / p(x), p(x) being the average over shadow models; offline, over those that were not
    trained on x, corrected by ((1 + slope)·p + 1 − slope)/2. It is compared with the ratios of all examples.

    Args:
        scores: Logit-scaled confidences of the attacked model, [examples] or [examples, queries].
        shadows: The scores of shadow models.
        gamma: The factor by which a ratio must exceed another one.
        online: Whether to use shadow models that were trained on the example, too; otherwise only those that were not.
        slope: The paper's a, of the offline correction.

    Returns:
        [examples]: higher means that the example was a member.

    Raises:
        InvalidInput: If the model and the shadow models have scores for different examples, a score is NaN, or `gamma`
            is not positive.
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
