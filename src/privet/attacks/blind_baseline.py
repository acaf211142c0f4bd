"""A baseline that never sees the model: do members and outsiders differ by themselves?"""

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
    """How well members are told from outsiders by the examples alone (Das, Zhang & Tramèr 2024).

    If the interval of `auc()` lies above 0.5, the two are not from one population: an attack on the model can then look
    strong although the model leaks nothing, and what counts is what it finds beyond this baseline. If it does not, a
    better classifier might still see a difference.

    A classifier learns from one half of both and is scored on the other half, which makes up the outcome: given the
    classifier, its scores are independent, as the interval presumes. (Folds that take turns use all rows, but share
    them, and the error of any interval grows: threefold in a trial.) It is given the rows, their squares, waves of them
    in drawn directions, and labels; `learner` takes the place of the usual ridge regression.
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
