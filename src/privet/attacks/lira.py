"""LiRA: the likelihood-ratio attack (Carlini, Chien, Nasr, Song, Terzis & Tramèr 2022)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from privet.attacks.counting import Reals
from privet.attacks.shadows import Shadows

__all__ = ["lira"]

_LEAST_SPREAD = 1e-6


def lira(scores: Any, shadows: Shadows, *, online: bool = True, fixed_variance: bool | None = None) -> Reals:
    """Score examples by the likelihood ratio of the model's confidence, between members and non-members.

    Args:
        scores: Logit-scaled confidences of the attacked model, [examples] or [examples, queries].
        shadows: The scores of shadow models.
        online: Whether to use shadow models that were trained on the example, too; otherwise only those that were not.
        fixed_variance: Whether to use one variance for all examples; if omitted, for fewer than 64 models on a side.

    Returns:
        [examples]: higher means that the example was a member.

    Raises:
        InvalidInput: If the model and the shadow models have scores for different examples, a score is NaN, or an
            example has no shadow model on a side.
    """
    own = shadows.matching(scores)
    outs, means_out = shadows.side(inside=False)
    ins, means_in = shadows.side(inside=True)
    few = min(int(shadows.inside.sum(0).min()), int((~shadows.inside).sum(0).min())) < 64
    fixed = few if fixed_variance is None else fixed_variance
    spread_out = _spread(outs, fixed)
    if not online:
        return np.asarray(((own - means_out) / spread_out).mean(axis=1))
    ratio = norm.logpdf(own, means_in, _spread(ins, fixed)) - norm.logpdf(own, means_out, spread_out)
    return np.asarray(ratio.mean(axis=1))


def _spread(scores: Reals, fixed: bool) -> Reals:
    """Return standard deviations from each example's own mean, pooled over all examples or separate."""
    squares = np.nansum((scores - np.nanmean(scores, axis=0)) ** 2, axis=0)
    free = (~np.isnan(scores)).sum(0) - 1.0
    if fixed:
        squares, free = squares.sum(0), free.sum(0)
    return np.asarray(np.sqrt(np.maximum(squares / np.maximum(free, 1.0), _LEAST_SPREAD**2)))
