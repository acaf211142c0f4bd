"""A classifier that learned from shadow models what members look like (Shokri, Stronati, Song & Shmatikov 2017)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from privet.attacks.counting import Reals
from privet.attacks.shadows import Shadows
from privet.core import InvalidInput
from privet.ensemble import Learner, Stacked, train

__all__ = ["shokri"]

_HIDDEN = 32
_LEAST = -30.0
"""Log-probabilities below this are taken for it."""


def shokri(outputs: Any, labels: Any, shadows: Shadows, *, learner: Learner | None = None) -> Reals:
    """How sure a classifier is that an example was in, from all that a model says of it.

    For each class a classifier of its own, as in the paper, learns from what every shadow model says of the examples of
    that class and whether they were in it. It sees log-probabilities, sorted, and that of the true class.

    Args:
        outputs: what the attacked model says, [examples, classes], before softmax.
        labels: true classes.
        shadows: made by `shadows(…)`, which keeps their `outputs`.
        learner: how the classifiers learn; if left out, networks with one hidden layer.
    """
    own, named = torch.as_tensor(np.asarray(outputs, dtype=np.float64)), torch.as_tensor(np.asarray(labels)).long()
    if own.shape != shadows.all_outputs.shape[1:]:
        problem = f"have the shape {tuple(own.shape)}, and those of shadow models {shadows.all_outputs.shape[1:]}"
        raise InvalidInput("outputs", problem, "ask both about the same examples")
    if not bool(own.isfinite().all()):
        raise InvalidInput("outputs", "hold NaN or infinite numbers", "find out where the model gives none")
    models, classes = shadows.models, own.shape[1]
    seen = _features(torch.from_numpy(shadows.all_outputs), named.expand(models, -1)).flatten(0, 1)
    mean, spread = seen.mean(0), seen.std(0).clamp_min(1e-6)
    wanted = torch.from_numpy(shadows.inside).long().flatten()
    classed = named.repeat(models)
    rows = [(classed == each).nonzero()[:, 0].numpy() for each in range(classes)]
    network = nn.Sequential(nn.Linear(seen.shape[1], _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, 2))
    usual = learner or Stacked(network, steps=400, batch_size=128, learning_rate=0.01, weight_decay=1e-4)
    taught = train(usual, ((seen - mean) / spread).float(), wanted, rows, classes=2)
    said = taught.scores(((_features(own, named) - mean) / spread).float()).double()
    mine = said[named, torch.arange(len(named))]
    return (mine[:, 1] - mine[:, 0]).numpy()


def _features(outputs: Tensor, labels: Tensor) -> Tensor:
    """[…, classes + 1]: log-probabilities from the highest on, and that of the true class."""
    logs = outputs.log_softmax(-1).clamp_min(_LEAST)
    return torch.cat([logs.sort(-1, descending=True).values, logs.gather(-1, labels[..., None])], dim=-1)
