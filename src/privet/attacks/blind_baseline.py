"""Baseline that never sees the model: can members be told from non-members by the examples alone?"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor
from torch.nn import functional as F

from privet.attacks.outcome import Outcome
from privet.attacks.pool import Pool
from privet.core import InvalidInput
from privet.ensemble import Learner, RandomFeatures, Ridge, generator, train

__all__ = ["blind_baseline"]

_WAVES = 256


def blind_baseline(pool: Pool, *, learner: Learner | None = None, key: str = "privet") -> Outcome:
    """Score how well members can be told from non-members by the examples alone (Das, Zhang & Tramèr 2024).

    If the interval of `auc()` lies above 0.5, the two are not from one population: an attack on the model can then look
    strong although the model leaks nothing, and only what it achieves beyond this baseline counts. If it does not, a
    better classifier might still see a difference.

    A classifier is trained on one half of both groups and scores the other half, which makes up the outcome: given the
    classifier, its scores are independent, as the interval assumes. (Cross-validation would use all rows, but its folds
    share training rows, and the error of any interval grows: threefold in an experiment.) The classifier sees the rows,
    their squares, random Fourier features, and the labels.

    Args:
        pool: Members and non-members, at least 4 of each.
        learner: How the classifier is trained; ridge regression if omitted.
        key: Seed of the split and of the random features.

    Returns:
        The classifier's scores for the held-out halves.

    Raises:
        InvalidInput: If there are fewer than 4 members or fewer than 4 non-members.
    """
    inside = torch.from_numpy(pool.inside)
    fewest = int(min(inside.sum(), (~inside).sum()))
    if fewest < 4:
        raise InvalidInput(
            "pool", f"has {fewest} members or outsiders", "half of them are to learn from: give 4 or more"
        )
    drawn = generator(key, "blind")
    learned = torch.zeros(len(inside), dtype=torch.bool)
    for side in (inside, ~inside):
        rows = side.nonzero()[:, 0]
        learned[rows[torch.randperm(len(rows), generator=drawn)[: len(rows) // 2]]] = True
    features = _features(pool.inputs, pool.labels, key)
    usual = learner or Ridge(penalty=0.1 * int(learned.sum()))
    taught = train(usual, features, inside.long(), [learned.nonzero()[:, 0].numpy()], classes=2)
    said = taught.scores(features[~learned])[0].double()
    scores, among = (said[:, 1] - said[:, 0]).numpy(), pool.inside[~learned.numpy()]
    return Outcome("blind baseline", scores[among], scores[~among])


def _features(inputs: Tensor, labels: Tensor, key: str) -> Tensor:
    rows = inputs.flatten(1).float()
    level = (rows - rows.mean(0)) / rows.std(0).clamp_min(1e-6)
    waves = RandomFeatures(level.shape[1], _WAVES, width=sqrt(level.shape[1]), key=key)(level) * sqrt(_WAVES)
    squares = level.clamp(-5, 5) ** 2
    named = F.one_hot(labels - labels.min()).float()
    return torch.cat([level, squares - squares.mean(0), waves, named], dim=1)
