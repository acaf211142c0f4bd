"""Sixteen shadow models at once, and the same sixteen one after the other, in turns."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from privet.data import Images
from privet.ensemble import Stacked, train

HIDDEN, MODELS, STEPS, BATCH, RATE, TURNS, SEED = (64, 128, 256), 16, 300, 64, 0.003, 5, 0


def network(hidden: int) -> nn.Module:
    """784-hidden-10."""
    return nn.Sequential(nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, 10))


def at_once(rows: Tensor, labels: Tensor, members: list[Tensor], hidden: int) -> float:
    """Seconds for all of them by `privet.ensemble`."""
    begun = time.perf_counter()
    learner = Stacked(network(hidden), steps=STEPS, batch_size=BATCH, learning_rate=RATE)
    train(learner, rows, labels, [each.numpy() for each in members], classes=10)
    return time.perf_counter() - begun


def in_a_loop(rows: Tensor, labels: Tensor, members: list[Tensor], hidden: int) -> float:
    """Seconds for the same by an ordinary loop: a module, Adam, a cosine, batches of its own rows in drawn orders."""
    begun = time.perf_counter()
    drawn = torch.Generator().manual_seed(SEED)
    for own in members:
        model = network(hidden)
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
        rounds = -(-STEPS * BATCH // len(own))
        order = torch.cat([own[torch.randperm(len(own), generator=drawn)] for _ in range(rounds)])
        for batch in torch.split(order[: STEPS * BATCH], BATCH):
            optimizer.zero_grad()
            F.cross_entropy(model(rows[batch]), labels[batch]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            falling.step()
    return time.perf_counter() - begun


def speed_part(images: Images) -> dict[str, Any]:
    """Medians of turns, for each number of hidden units."""
    drawn = np.random.default_rng(SEED)
    chosen = drawn.permutation(len(images.x))[:5000]
    rows = torch.from_numpy(images.x[chosen]).flatten(1).float() / 255
    labels = torch.from_numpy(np.asarray(images.y)[chosen]).long()
    members = [torch.from_numpy(np.flatnonzero(drawn.random(5000) < 0.5)) for _ in range(MODELS)]
    found = []
    for hidden in HIDDEN:
        turns = [
            (at_once(rows, labels, members, hidden), in_a_loop(rows, labels, members, hidden)) for _ in range(TURNS + 1)
        ][1:]  # the first is to get warm
        ours, others = (statistics.median(turn[way] for turn in turns) for way in (0, 1))
        found.append(
            {
                "network": f"784-{hidden}-10",
                "at_once_seconds": round(ours, 3),
                "loop_seconds": round(others, 3),
                "times_as_fast": round(others / ours, 2),
                "of_each_turn": [round(loop / once, 2) for once, loop in turns],
            }
        )
    fixed = {"models": MODELS, "steps": STEPS, "batch_size": BATCH, "turns": TURNS, "seed": SEED}
    return fixed | {"rows": found}
