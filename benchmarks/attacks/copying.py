"""Stealing: how good a copy is against the number of questions, behind several defences."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.attacks.speed import network
from privet.attacks import Access, CopyTraining, GuardedTarget, Target, fidelity_curve, target
from privet.data import Images
from privet.ensemble import Stacked, train
from privet.ensemble.stacked import Networks

TAUGHT, COUNTS, SEED = 5000, (100, 300, 1000, 3000), 0


def copying_part(images: Images, fresh: Images) -> dict[str, Any]:
    """One network, copied from other people's digits."""
    order = np.random.default_rng(SEED).permutation(len(images.x))
    rows, labels = _rows(images, order[:TAUGHT]), torch.from_numpy(np.asarray(images.y)[order[:TAUGHT]]).long()
    questions, test = _rows(images, order[TAUGHT : TAUGHT + COUNTS[-1]]), _rows(fresh, np.arange(len(fresh.x)))
    taught = train(Stacked(network(64), steps=1200, batch_size=64), rows, labels, [np.arange(TAUGHT)], classes=10)
    assert isinstance(taught, Networks)
    model = network(64)
    model.load_state_dict({name: each[0] for name, each in taught.parameters.items()})
    plain = target(model, 10, Access.SCORES)
    held_out = (test, plain.labels(test))
    guards: dict[str, Target] = {
        "scores": plain,
        "probabilities of 2 decimals": GuardedTarget(plain, decimals=2),
        "probabilities of 1 decimal": GuardedTarget(plain, decimals=1),
        "labels alone": GuardedTarget(plain, access=Access.LABELS),
    }
    found = []
    for name, seen in guards.items():
        curve = fidelity_curve(seen, questions, COUNTS, CopyTraining(network(64), steps=1000), held_out=held_out)
        shown = [[round(each, 4) for each in (at.value, at.lower, at.upper)] for at in curve.fidelity]
        found.append({"shows": name, "fidelity": shown})
    accuracy = 100 * float((held_out[1] == torch.from_numpy(np.asarray(fresh.y)).long()).double().mean())
    return {
        "data": f"MNIST: {TAUGHT} pictures taught the target, others are the questions, and 10,000 test pictures judge",
        "seed": SEED,
        "target_accuracy": round(accuracy, 2),
        "questions": list(COUNTS),
        "rows": found,
    }


def _rows(images: Images, chosen: Any) -> Tensor:
    return torch.from_numpy(images.x[chosen]).flatten(1).float() / 255
