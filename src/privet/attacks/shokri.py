"""Attack classifier trained on shadow models (Shokri, Stronati, Song & Shmatikov 2017)."""

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
"""Log-probabilities are clipped to this from below."""


def shokri(outputs: Any, labels: Any, shadows: Shadows, *, learner: Learner | None = None) -> Reals:
    """Score examples with a classifier that was trained on shadow models to recognize members.

    For each class, a separate classifier, as in the paper, learns from the outputs of every shadow model for the
    examples of that class and from whether they were members. Its features are the sorted log-probabilities and that of
    the true class.

    Args:
        outputs: [examples, classes]: scores of the attacked model, before softmax.
        labels: [examples]: the true classes.
        shadows: Shadow models from `shadows(…)`, which keeps their `outputs`.
        learner: How the classifiers are trained; networks with one hidden layer if omitted.

    Returns:
        [examples]: higher means that the example was a member.

    Raises:
        InvalidInput: If the shadow models have no outputs or other examples, or an output is not finite.
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
    """Return the log-probabilities in descending order, followed by that of the true class, as […, classes + 1]."""
    logs = outputs.log_softmax(-1).clamp_min(_LEAST)
    return torch.cat([logs.sort(-1, descending=True).values, logs.gather(-1, labels[..., None])], dim=-1)
