"""Digits of MNIST out of one gradient: by three methods, from several networks, before and after defences."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.pictures.networks import DATA, convolutions, hidden, spread, trained
from privet.attacks import ModelTarget, target
from privet.attacks.gradient_sharing import add_gradient_noise, clip_gradient, largest_entries, squared_norm
from privet.attacks.gradients import match_gradient, shared_gradient
from privet.attacks.likeness import psnr, ssim
from privet.attacks.matching import DLG, IDLG, Cosine, MatchingMethod, Reconstruction
from privet.attacks.pictures import montage, png
from privet.core.random import SeededRng
from privet.data import named
from privet.training import DPSGD

__all__ = ["PLAN", "measured"]

PLAN = DPSGD(epsilon=8.0, delta=1e-5, clip=1.0, batch_size=256, epochs=20, population=60_000)
SHAPE = (1, 28, 28)
SHOWN = Path(__file__).parents[2] / "docs" / "images" / "gradients.png"
Gradient = tuple[Tensor, ...]


@dataclass(frozen=True, eq=False)
class Case:
    """A network, what is done to its gradient, and an attack."""

    name: str
    network: str
    method: MatchingMethod
    defence: Callable[[Gradient, int], Gradient] = lambda gradient, _: gradient
    partial: bool = False
    restarts: int = 1
    shown: bool = False


def digits() -> tuple[Tensor, Tensor]:
    """The first picture of each class in the test file: nobody chose them."""
    test = named("mnist", DATA).test
    y = torch.from_numpy(np.asarray(test.y))
    first = [int((y == each).nonzero()[0]) for each in range(10)]
    return torch.from_numpy(np.asarray(test.x)[first]).float()[:, None] / 255, y[first]


def networks() -> dict[str, ModelTarget]:
    """All with ten classes; `trained` has seen 200 batches of 64."""
    train = named("mnist", DATA).train
    rows, labels = torch.from_numpy(np.asarray(train.x)).float()[:, None] / 255, torch.from_numpy(np.asarray(train.y))
    taught = convolutions(nn.Tanh, "tanh")
    trained(taught, rows, labels, steps=200, batch=64, rate=1e-3, key="taught")
    found = {
        "tanh": convolutions(nn.Tanh, "tanh"),
        "sigmoid, spread weights": spread(convolutions(nn.Sigmoid, "sigmoid"), "sigmoid"),
        "relu": convolutions(nn.ReLU, "relu"),
        "tanh, trained": taught,
        "one hidden layer": hidden(784, 10, "hidden", 64),
    }
    return {name: target(network, 10) for name, network in found.items()}


def cases(plan: DPSGD) -> list[Case]:
    """What is measured."""

    def cut(gradient: Gradient, _: int) -> Gradient:
        return clip_gradient(gradient, plan.clip)

    def private(gradient: Gradient, place: int) -> Gradient:
        return add_gradient_noise(gradient, plan, rng=SeededRng(place))

    def quiet(part: float) -> Callable[[Gradient, int], Gradient]:
        weak = replace(plan, noise_multiplier=part)
        return lambda gradient, place: add_gradient_noise(gradient, weak, rng=SeededRng(place))

    def few(share: float) -> Callable[[Gradient, int], Gradient]:
        return lambda gradient, _: largest_entries(gradient, share)

    return [
        Case("DLG", "tanh", DLG(200), shown=True),
        Case("Cosine, clip 1", "tanh", Cosine(200), cut, shown=True),
        Case("IDLG, largest 10 %, zeros left alone", "tanh", IDLG(200), few(0.1), partial=True, shown=True),
        Case("DLG, the plan's clip and noise", "tanh", DLG(100), private, restarts=3, shown=True),
        Case("Cosine, the plan's clip and noise", "tanh", Cosine(100), private, restarts=3, shown=True),
        Case("IDLG", "tanh", IDLG(200)),
        Case("Cosine", "tanh", Cosine(200)),
        Case("DLG", "tanh, trained", DLG(200)),
        Case("Cosine", "tanh, trained", Cosine(200)),
        Case("DLG", "relu", DLG(200)),
        Case("Cosine", "relu", Cosine(200)),
        Case("DLG", "one hidden layer", DLG(200)),
        Case("DLG, the plan's clip and noise", "one hidden layer", DLG(100), private, restarts=3),
        Case("Cosine, the plan's clip and noise", "one hidden layer", Cosine(100), private, restarts=3),
        Case("IDLG, the plan's clip and noise", "tanh", IDLG(100), private, restarts=3),
        Case("DLG", "sigmoid, spread weights", DLG(200)),
        Case("DLG, clip 1", "tanh", DLG(100), cut),
        Case("IDLG, largest 10 %", "tanh", IDLG(100), few(0.1)),
        Case("IDLG, largest 1 %, zeros left alone", "tanh", IDLG(100), few(0.01), partial=True),
        *(Case(f"Cosine, clip 1, noise {part:g}", "tanh", Cosine(100), quiet(part)) for part in (1e-4, 1e-3, 1e-2)),
    ]


def measured(_: Path) -> dict[str, Any]:
    """Every case on ten digits; and a gradient of four at once."""
    plan = PLAN.calibrated()
    pictures, labels = digits()
    seen, rows, found = networks(), [list(pictures[:, 0])], []
    for case in cases(plan):
        begun, rebuilt = time.process_time(), []
        for place in range(10):
            own = shared_gradient(seen[case.network], pictures[place : place + 1], labels[place : place + 1])
            told = case.defence(own, place)
            made = match_gradient(
                seen[case.network], told, SHAPE, method=case.method, partial=case.partial, restarts=case.restarts
            )
            rebuilt.append(made)
        found.append(_row(case, rebuilt, pictures, labels, time.process_time() - begun))
        print({key: value for key, value in found[-1].items() if key != "psnr"}, flush=True)
        rows += [[each.pictures[0, 0] for each in rebuilt]] if case.shown else []
    SHOWN.parent.mkdir(exist_ok=True)
    SHOWN.write_bytes(png(montage(rows)))
    return {
        "plan": repr(PLAN),
        "noise_multiplier": round(plan.noise_multiplier or 0.0, 4),
        "guarantee": str(plan.guarantee()),
        "lengths_of_gradients": {name: _lengths(each, pictures, labels) for name, each in seen.items()},
        "cases": found,
        "four_at_once": _four(seen["tanh"], pictures[:4], labels[:4]),
        "shown": ["the digits", *(f"{case.name} ({case.network})" for case in cases(plan) if case.shown)],
    }


def _row(case: Case, rebuilt: list[Reconstruction], pictures: Tensor, labels: Tensor, seconds: float) -> dict[str, Any]:
    """Pixels are cut to between 0 and 1 first, which everybody knows them to be."""
    pairs = [(made.pictures[0].clamp(0, 1), true) for made, true in zip(rebuilt, pictures, strict=True)]
    likeness = [ssim(made, true) for made, true in pairs]
    return {
        "case": case.name,
        "network": case.network,
        "method": repr(case.method),
        "restarts": case.restarts,
        "ssim": [round(each, 3) for each in likeness],
        "psnr": [round(min(psnr(made, true), 99.0), 1) for made, true in pairs],
        "at_least_0.9": sum(each >= 0.9 for each in likeness),
        "largest": round(max(likeness), 3),
        "labels_right": int(
            sum(int(made.labels[0]) == int(label) for made, label in zip(rebuilt, labels, strict=True))
        ),
        "distance": float(f"{np.median([made.distance for made in rebuilt]):.2g}"),
        "cpu_seconds_each": round(seconds / len(rebuilt), 2),
    }


def _lengths(seen: ModelTarget, pictures: Tensor, labels: Tensor) -> list[float]:
    every = [shared_gradient(seen, pictures[each : each + 1], labels[each : each + 1]) for each in range(len(labels))]
    return [round(float(squared_norm(each)) ** 0.5, 2) for each in every]


def _four(seen: ModelTarget, pictures: Tensor, labels: Tensor) -> dict[str, Any]:
    """The order of a batch is not in its gradient: the best one is taken, by the truth."""
    made = match_gradient(seen, shared_gradient(seen, pictures, labels), SHAPE, method=DLG(400), examples=4)
    orders = (
        [ssim(made.pictures[place].clamp(0, 1), true) for place, true in zip(order, pictures, strict=True)]
        for order in permutations(range(4))
    )
    best = max(orders, key=sum)
    return {"method": "DLG", "ssim": [round(each, 3) for each in best], "labels": sorted(made.labels.tolist())}
