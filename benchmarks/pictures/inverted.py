"""Classes out of models: faces, where a class is a person, and digits, where it is not; with and without DP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.pictures.networks import DATA, hidden, softmax, trained
from privet.attacks import Access, at_least, at_most, target
from privet.attacks.inversion import Descent, Inversion, invert
from privet.attacks.likeness import correlation, ssim
from privet.attacks.pictures import montage, png
from privet.core.random import SeededRng
from privet.data import named
from privet.training import DPSGD, UserRows, fit

__all__ = ["classes", "faces"]

METHODS = (
    Descent(),
    Descent(blur=0.5),
    Descent(steps=100, learning_rate=0.003),
    Descent(steps=100, learning_rate=0.003, blur=1.0),
)
"""The one that shows most is taken, by the truth, which no attacker has. Blurring helps where weights are noisy."""
SHOWN = Path(__file__).parents[2] / "docs" / "images" / "classes.png"


@dataclass(frozen=True, eq=False)
class Set:
    """Rows to train on and rows to judge by."""

    rows: Tensor
    labels: Tensor
    held: Tensor
    held_labels: Tensor
    classes: int

    def means(self, *, held: bool) -> Tensor:
        """[classes, 1, height, width]"""
        rows, labels = (self.held, self.held_labels) if held else (self.rows, self.labels)
        return torch.stack([rows[labels == each].mean(0) for each in range(self.classes)])


def faces(out: Path) -> dict[str, Any]:
    """40 people, seven pictures each to train on and three to recognise them by."""
    stored = np.load(DATA / "faces" / "olivetti.npz")
    pictures = torch.from_numpy(stored["images"]).float()[:, None] / 255
    labels = torch.from_numpy(stored["labels"]).long()
    late = torch.arange(400) % 10 >= 7
    data = Set(pictures[~late], labels[~late], pictures[late], labels[late], 40)
    makers: dict[str, Callable[[], nn.Module]] = {
        "softmax": lambda: softmax(4096, 40, "faces"),
        "one hidden layer": lambda: hidden(4096, 40, "faces", 100),
    }
    grey = torch.full((40, 1, 64, 64), 0.5)
    average = data.means(held=False).mean(0).expand(40, -1, -1, -1)
    found: dict[str, Any] = {
        "before": {"grey": _judged(grey, data), "average face": _judged(average, data)},
        "chance": 1 / 40,
        "models": [],
    }
    rows = [list(data.means(held=False)[:10])]
    for name, make in makers.items():
        plain = make()
        trained(plain, data.rows, data.labels, steps=300, batch=280, rate=1e-3, key="faces")
        found["models"].append(_measured(name, "none", plain, data, rows))
        if name == "softmax":
            found["scores_alone"] = _scores_alone(plain, data)
        for epsilon in (8.0, 100.0):
            for unit in ("example", "person"):
                network, guarantee = _private(make(), data, epsilon, person=unit == "person")
                found["models"].append(_measured(name, f"{unit}: {guarantee}", network, data, rows))
    out.mkdir(parents=True, exist_ok=True)
    (out / "faces.png").write_bytes(png(montage(rows)))
    return found


def classes(_: Path) -> dict[str, Any]:
    """Ten digits of MNIST: what is shown is what a seven looks like, and nobody's seven."""
    both = named("mnist", DATA)
    train, test = (
        (torch.from_numpy(np.asarray(part.x)).float()[:, None] / 255, torch.from_numpy(np.asarray(part.y)))
        for part in (both.train, both.test)
    )
    data = Set(*train, *test, 10)
    rows = [list(data.means(held=False))]
    plain = hidden(784, 10, "classes", 64)
    trained(plain, data.rows, data.labels, steps=2000, batch=256, rate=1e-3, key="classes")
    found: dict[str, Any] = {"chance": 0.1, "models": [_measured("one hidden layer", "none", plain, data, rows)]}
    network = hidden(784, 10, "classes", 64)
    plan = DPSGD(epsilon=8.0, delta=1e-5, clip=1.0, batch_size=256, epochs=5, population=60_000)
    release = fit(
        network,
        (data.rows, data.labels),
        plan,
        loss=lambda said, label: F.cross_entropy(said, label, reduction="none"),
        optimizer=torch.optim.SGD(network.parameters(), lr=1.0, momentum=0.5),
        rng=SeededRng(0),
    )
    found["models"].append(_measured("one hidden layer", f"example: {release.guarantee}", network, data, rows))
    SHOWN.write_bytes(png(montage(rows)))
    return found


def _private(network: nn.Module, data: Set, epsilon: float, *, person: bool) -> tuple[nn.Module, str]:
    """All rows, or all people, in every step. δ is 1e-4, below 1/280 and 1/40."""
    units, owners = (data.classes, data.labels) if person else (len(data.rows), None)
    release = fit(
        network,
        (data.rows, data.labels),
        DPSGD(epsilon=epsilon, delta=1e-4, clip=1.0, batch_size=units, steps=100),
        loss=lambda said, label: F.cross_entropy(said, label, reduction="none"),
        optimizer=torch.optim.SGD(network.parameters(), lr=0.5, momentum=0.9),
        users=None if owners is None else UserRows(owners, cap=7),
        rng=SeededRng(0),
    )
    return network, str(release.guarantee)


def _measured(name: str, privacy: str, network: nn.Module, data: Set, rows: list[list[Tensor]]) -> dict[str, Any]:
    with torch.no_grad():
        right = float((network(data.held).argmax(1) == data.held_labels).float().mean())
    tried = [invert(target(network, data.classes), data.rows.shape[1:], method=method) for method in METHODS]
    judged = [_judged(made.pictures, data) for made in tried]
    best = max(range(len(METHODS)), key=lambda place: (judged[place]["recognised"], judged[place]["ssim"]))
    rows.append(list(tried[best].pictures[:10]))
    found = {"model": name, "privacy": privacy, "accuracy": round(right, 4), **judged[best]}
    found |= {"confidence": round(float(tried[best].confidences.mean()), 3), "method": repr(METHODS[best])}
    print(found, flush=True)
    return found


def _judged(pictures: Tensor, data: Set) -> dict[str, Any]:
    """Likeness to the training rows' means; and whose held-out rows' mean each is nearest to, by correlation."""
    own = data.means(held=False)
    common = own.mean(0)
    apart, others = pictures - pictures.mean(0), data.means(held=True) - common
    near = torch.tensor([[correlation(one, other) for other in others] for one in apart]).argmax(1)
    hits, trials = int((near == torch.arange(data.classes)).sum()), data.classes
    return {
        "ssim": round(float(np.mean([ssim(one, other) for one, other in zip(pictures, own, strict=True)])), 3),
        "correlation": round(float(np.mean([correlation(a, b) for a, b in zip(pictures, own, strict=True)])), 3),
        "recognised": round(hits / trials, 3),
        "recognised_interval": [round(at_least(hits, trials, 0.025), 3), round(at_most(hits, trials, 0.025), 3)],
    }


def _scores_alone(network: nn.Module, data: Set) -> dict[str, Any]:
    """The first three people, by questions alone; and by slopes, with the same steps."""
    method = Descent(steps=10, learning_rate=2.0)

    def made(access: Access) -> Inversion:
        return invert(target(network, 40, access), (1, 64, 64), labels=[0, 1, 2], method=method)

    black, white = made(Access.SCORES), made(Access.WEIGHTS)
    apart = float((black.pictures - white.pictures).abs().max())
    return {
        "people": 3,
        "questions": black.queries,
        "confidence": [round(float(each), 3) for each in black.confidences],
        "largest_difference_from_slopes": round(apart, 5),
    }
