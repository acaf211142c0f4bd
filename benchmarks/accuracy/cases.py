"""What is trained: named sets, their budgets, what they are meant to reach, and what others have published."""

from __future__ import annotations

import copy
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from privet.core.random import SeededRng
from privet.data import Images, Table, named
from privet.training.models import Pictures, choose
from privet.training.recipe import DataKind, recipe

__all__ = ["CASES", "Case", "Outcome", "Trainer", "auc"]

_DATA = Path(os.environ.get("PRIVET_DATA") or Path(__file__).parents[3] / "shared" / "data")


@dataclass(frozen=True)
class Case:
    """One named set at one ε."""

    name: str
    epsilon: float
    delta: float
    floor: float
    """The accuracy, in percent, that is meant to be reached."""
    reference: str
    """What others have published, or what was measured of them."""

    @property
    def title(self) -> str:
        """How the case is called on the command line."""
        return f"{self.name}-{self.epsilon:g}"


CASES = (
    Case("mnist", 0.5, 1e-5, 97.8, "none known"),
    Case("mnist", 1.0, 1e-5, 98.3, "97.93 DPSUR (rejections not charged), 97.78 ScatterNet + CNN"),
    Case("mnist", 2.0, 1e-5, 98.6, "98.70 DPSUR (rejections not charged), 98.39 ScatterNet + CNN"),
    Case("mnist", 3.0, 1e-5, 98.8, "98.88 DPSUR (rejections not charged), 98.7 ScatterNet + linear"),
    Case("adult", 0.5, 1e-5, 85.0, "80 DP-EBM"),
    Case("adult", 1.0, 1e-5, 85.5, "84.48 opacus logistic, 81 DP-EBM, 79.3 diffprivlib; 84.75 linear without privacy"),
    Case("digits", 1.0, 1e-4, 89.0, "none known"),
    Case("digits", 3.0, 1e-4, 92.0, "none known"),
)


@dataclass(frozen=True)
class Outcome:
    """One trained model, on the part that was not trained on."""

    accuracy: float
    auc: float | None
    epsilon: float
    seconds: float
    """Of training alone; features of pictures are there already."""


class Trainer:
    """A named set in memory, with its features, ready to be trained on at any ε."""

    def __init__(self, name: str, folder: Path) -> None:
        found = named(name, _DATA)
        train, test = found.train, found.test
        if isinstance(train, Table) and isinstance(test, Table):
            self._kind, self._classes = DataKind.TABLE, len(train.schema.classes)
            self._rows = train.schema.rows or len(train)
            self._model = choose(train.schema, self._classes, self._rows)
            self._inputs, self._held = torch.from_numpy(train.x), torch.from_numpy(test.x)
        elif isinstance(train, Images) and isinstance(test, Images):
            self._kind, self._classes = DataKind.PICTURES, len(train.classes)
            self._rows = train.rows or len(train)
            self._model = choose(train.x.shape[1:], self._classes, self._rows)
            front = self._model.front
            if not isinstance(front, Pictures):
                raise TypeError("pictures are trained on their features")
            self._inputs, self._held = (front.cached(torch.from_numpy(part.x), folder) for part in (train, test))
        self._targets, self._answers = torch.from_numpy(np.asarray(train.y)), torch.from_numpy(np.asarray(test.y))

    def outcome(self, case: Case, seed: int) -> Outcome:
        """Train a fresh model with all randomness of its own, and test it."""
        begun = time.perf_counter()
        features = self._model.features
        chosen = recipe(self._kind, self._rows, features, self._classes, case.epsilon, case.delta, self._model.family)
        fresh = copy.deepcopy(self._model if self._kind is DataKind.TABLE else self._model.head)
        release = chosen.fit(fresh, (self._inputs, self._targets), rng=SeededRng(seed))
        seconds = time.perf_counter() - begun
        with torch.no_grad():
            outputs = release.value(self._held)
        right = float((outputs.argmax(1) == self._answers).double().mean())
        scores = outputs[:, 1] - outputs[:, 0] if self._classes == 2 else None
        area = None if scores is None else auc(scores, self._answers)
        return Outcome(100 * right, area, chosen.plan.guarantee().epsilon.upper, seconds)


def auc(scores: Tensor, answers: Tensor) -> float:
    """The chance that a row of the second class has a higher score than one of the first; ties count half."""
    first, second = scores[answers == 0].double().sort().values, scores[answers == 1].double()
    below = torch.searchsorted(first, second, right=False) + torch.searchsorted(first, second, right=True)
    return float(below.double().mean() / 2 / len(first))
