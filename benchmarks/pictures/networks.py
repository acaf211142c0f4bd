"""The networks that are attacked, and how they are trained."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from privet.ensemble.seeding import generator, initial_weights

__all__ = ["DATA", "convolutions", "hidden", "softmax", "spread", "trained"]

DATA = Path(os.environ.get("PRIVET_DATA") or Path(__file__).parents[3] / "shared" / "data")


def begun(network: nn.Module, key: str) -> nn.Module:
    """With the weights that torch gives a new network, drawn by a key."""
    network.load_state_dict(initial_weights(network, generator(key, "network")))
    return network


def convolutions(act: Callable[[], nn.Module], key: str) -> nn.Module:
    """Three convolutions and a last layer, 13,426 parameters: the network of Zhu et al. 2019, for MNIST."""
    layers = [nn.Conv2d(1, 12, 5, 2, 2), act(), nn.Conv2d(12, 12, 5, 2, 2), act(), nn.Conv2d(12, 12, 5, 1, 2), act()]
    return begun(nn.Sequential(*layers, nn.Flatten(), nn.Linear(588, 10)), key)


def spread(network: nn.Module, key: str) -> nn.Module:
    """With weights uniform on ±1/2, as in that paper: they make the search easy."""
    drawn = generator(key, "spread")
    with torch.no_grad():
        for each in network.parameters():
            each.uniform_(-0.5, 0.5, generator=drawn)
    return network


def softmax(pixels: int, classes: int, key: str) -> nn.Module:
    """Softmax regression."""
    return begun(nn.Sequential(nn.Flatten(), nn.Linear(pixels, classes)), key)


def hidden(pixels: int, classes: int, key: str, width: int = 300) -> nn.Module:
    """One layer of hidden sigmoids."""
    layers = [nn.Flatten(), nn.Linear(pixels, width), nn.Sigmoid(), nn.Linear(width, classes)]
    return begun(nn.Sequential(*layers), key)


def trained(network: nn.Module, rows: Tensor, labels: Tensor, *, steps: int, batch: int, rate: float, key: str) -> None:
    """Ordinary training, by Adam."""
    drawn = generator(key, "batches")
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    for _ in range(steps):
        some = torch.randint(len(rows), (batch,), generator=drawn) if batch < len(rows) else torch.arange(len(rows))
        optimizer.zero_grad()
        torch.autograd.backward(F.cross_entropy(network(rows[some]), labels[some]))
        optimizer.step()
    optimizer.zero_grad()
