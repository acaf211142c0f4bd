"""Membership: was this example in the training data? Each attack scores examples; higher means that it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor

from privet.attacks.counting import Reals, scores_of
from privet.attacks.outcome import Outcome
from privet.attacks.pool import Pool
from privet.attacks.shadows import Bits, Shadows, confidences
from privet.attacks.shokri import shokri
from privet.attacks.target import Access, Target
from privet.core import checked
from privet.core.errors import InvalidInput
from privet.ensemble.drawing import generator

__all__ = ["calibrated", "label_only", "lira", "loss_threshold", "membership", "noisy_versions", "rmia"]

_LEAST_SPREAD = 1e-6


def membership(
    target: Target, pool: Pool, shadows: Shadows | None = None, *, versions: int = 24, key: str = "privet"
) -> tuple[Outcome, ...]:
    """Every attack that what is seen of the target allows: labels alone, its scores, shadow models besides.

    `shadows` were asked about the rows of the pool, in its order. `versions` are asked by the label-only attack.
    """
    noisy = noisy_versions(pool.inputs, versions, key=key)
    right = torch.stack([target.labels(each) == pool.labels for each in (pool.inputs, *noisy)], dim=1)
    found = [pool.outcome("label-only", label_only(right.numpy()))]
    if target.access is Access.LABELS:
        return tuple(found)
    outputs = target.scores(pool.inputs)
    own = scores_of("scores", confidences(outputs, pool.labels), 1)
    losses = np.logaddexp(0.0, -own)
    found.append(pool.outcome("loss threshold", loss_threshold(losses)))
    if shadows is not None:
        single = Shadows(shadows.scores[:, :, 0], shadows.inside)
        said = Shadows(-np.logaddexp(0.0, -shadows.scores[:, :, 0]), shadows.inside)
        _, others = _sides(said, inside=False)
        scored = {
            "calibrated loss": calibrated(loss_threshold(losses), others.T),
            "shadow classifier": shokri(outputs, pool.labels, shadows),
            "LiRA": lira(own, single),
            "LiRA, offline": lira(own, single, online=False),
            "RMIA": rmia(own, single),
        }
        found.extend(pool.outcome(name, scores) for name, scores in scored.items())
    return tuple(found)


def noisy_versions(inputs: Tensor, count: int, *, spread: float = 0.5, key: str = "privet") -> list[Tensor]:
    """Versions of examples for those who see labels alone: the same with more and more normal noise.

    The last has noise of `spread` deviations of all inputs. A member stays on its side of the boundary for longer.
    """
    drawn = generator(key, "versions")
    unit = spread * inputs.float().std()
    steps = [(each + 1) / count for each in range(checked.count("count", count))]
    return [inputs + step * unit * torch.randn(inputs.shape, generator=drawn) for step in steps]


def loss_threshold(losses: Any) -> Reals:
    """A low loss is a sign of a member (Yeom et al. 2018).

    >>> loss_threshold([0.1, 2.0]).tolist()
    [-0.1, -2.0]
    """
    return -scores_of("losses", losses, 1)


def calibrated(scores: Any, references: Any) -> Reals:
    """What the model says, less what models say on average that did not see the example (Watson et al. 2022).

    `references` are [models, examples].
    """
    own, others = scores_of("scores", scores, 1), np.asarray(references, dtype=np.float64)
    if others.ndim != 2 or others.shape[1:] != own.shape or not len(others):
        raise InvalidInput("references", f"have the shape {others.shape}", "give a row for each model")
    found: Reals = own - others.mean(0)
    return found


def lira(scores: Any, shadows: Shadows, *, online: bool = True, fixed_variance: bool | None = None) -> Reals:
    """The likelihood ratio of what the model says of an example, if it was in and if it was not (Carlini et al. 2022).

    Args:
        scores: logit-scaled confidences of the attacked model, [examples] or [examples, queries].
        shadows: what shadow models say.
        online: use models that saw the example, too; else only those that did not.
        fixed_variance: one variance for all examples; if left out, for fewer than 64 models on a side.
    """
    own = _own(scores, shadows)
    outs, means_out = _sides(shadows, inside=False)
    ins, means_in = _sides(shadows, inside=True)
    few = min(int(shadows.inside.sum(0).min()), int((~shadows.inside).sum(0).min())) < 64
    fixed = few if fixed_variance is None else fixed_variance
    spread_out = _spread(outs, fixed)
    if not online:
        return _mean((own - means_out) / spread_out)
    spread_in = _spread(ins, fixed)
    ratio = norm.logpdf(own, means_in, spread_in) - norm.logpdf(own, means_out, spread_out)
    return _mean(ratio)


def rmia(scores: Any, shadows: Shadows, *, gamma: float = 1.0, online: bool = True, slope: float = 0.3) -> Reals:
    """How often an example's rise in likelihood beats that of others (Zarifzadeh, Liu & Shokri 2024).

    The rise is p(x | model) / p(x), p(x) being the average over shadow models; offline, over those that did not see x,
    corrected as if others had: ((1 + slope)·p + 1 − slope)/2. The others are all examples.
    """
    checked.positive("gamma", gamma)
    own = _chance(_own(scores, shadows)).mean(1)
    every = _chance(shadows.scores).mean(2)
    outs = np.where(shadows.inside, 0.0, every).sum(0) / np.maximum((~shadows.inside).sum(0), 1)
    if online:
        ins = np.where(shadows.inside, every, 0.0).sum(0) / np.maximum(shadows.inside.sum(0), 1)
        average = (ins + outs) / 2
    else:
        average = ((1 + slope) * outs + (1 - slope)) / 2
    rise = own / np.maximum(average, 1e-300)
    ordered = np.sort(rise)
    found: Reals = np.searchsorted(ordered, rise / gamma, side="right") / len(rise)
    return found


def label_only(right: Any) -> Reals:
    """How many versions of an example the model labels rightly (Choquette-Choo et al. 2021): all that one can ask who
    sees labels alone. `right` is [examples, queries].

    >>> label_only([[True, True], [True, False]]).tolist()
    [1.0, 0.5]
    """
    found = np.asarray(right)
    if found.ndim != 2 or found.dtype != np.bool_ or not found.size:
        raise InvalidInput(
            "right", f"has the shape {found.shape}", "say of each example and version whether it was right"
        )
    means: Reals = found.mean(1)
    return means


def _own(scores: Any, shadows: Shadows) -> Reals:
    found = np.asarray(scores, dtype=np.float64)
    found = found[:, None] if found.ndim == 1 else found
    if found.shape != shadows.scores.shape[1:]:
        problem = f"have the shape {found.shape}, and shadow models say {shadows.scores.shape[1:]}"
        raise InvalidInput("scores", problem, "ask both about the same examples and versions")
    if np.isnan(found).any():
        raise InvalidInput("scores", "hold NaN", "find out where the model gives no number")
    return found


def _sides(shadows: Shadows, *, inside: bool) -> tuple[Reals, Reals]:
    """What one side says, NaN where a model is on the other; and its mean for each example."""
    chosen: Bits = shadows.inside if inside else ~shadows.inside
    if not chosen.any(0).all():
        side = "saw" if inside else "did not see"
        raise InvalidInput("shadows", f"have an example that no model {side}", "train more of them")
    said = np.where(chosen[:, :, None], shadows.scores, np.nan)
    return said, np.nanmean(said, axis=0)


def _spread(said: Reals, fixed: bool) -> Reals:
    """Deviations from each example's own mean, of all examples together or of each by itself."""
    squares = np.nansum((said - np.nanmean(said, axis=0)) ** 2, axis=0)
    free = (~np.isnan(said)).sum(0) - 1.0
    if fixed:
        squares, free = squares.sum(0), free.sum(0)
    spread: Reals = np.sqrt(np.maximum(squares / np.maximum(free, 1.0), _LEAST_SPREAD**2))
    return spread


def _mean(ratios: Reals) -> Reals:
    found: Reals = ratios.mean(axis=1)
    return found


def _chance(logits: Reals) -> Reals:
    found: Reals = 1 / (1 + np.exp(-np.clip(logits, -700, 700)))
    return found
