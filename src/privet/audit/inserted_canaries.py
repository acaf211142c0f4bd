"""Made-up rows in the data, each by its own fair coin, that only the released model is asked about: a black box."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from privet.attacks import Access, Reals, Target, confidences
from privet.audit.one_run import guess_membership, one_run
from privet.core import Evidence, InvalidInput, Neighbours, Unit, checked
from privet.core.random import Rng, default_rng
from privet.ensemble import generator

__all__ = ["InsertedCanaries", "insert_canaries"]


@dataclass(frozen=True, eq=False)
class InsertedCanaries:
    """Canaries that are rows like others, and whose coins came up."""

    inputs: Tensor = field(repr=False)
    labels: Tensor = field(repr=False)
    inside: npt.NDArray[np.bool_] = field(repr=False)

    def into(self, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The rows, and the canaries that are in; train on these, with a plan whose unit is add/remove."""
        kept = torch.from_numpy(self.inside)
        return torch.cat([inputs, self.inputs[kept].to(inputs)]), torch.cat([labels, self.labels[kept].to(labels)])

    def scores(self, target: Target) -> Reals:
        """How sure the model is of each canary's label: logit-scaled confidence, or whether it names it at all."""
        if target.access is Access.LABELS:
            return np.asarray((target.labels(self.inputs) == self.labels).double().numpy())
        return confidences(target.scores(self.inputs), self.labels)

    def evidence(
        self,
        target: Target,
        *,
        delta: float,
        guesses: int | None = None,
        confidence: float = 0.95,
        unit: Unit | None = None,
        attack: str = "mislabeled rows, one run",
    ) -> Evidence:
        """What the run cost at least, whatever it did (`one_run`). Unless given, a fifth of the canaries is guessed at.

        A canary that is out is not there at all, so that this is about rows that come and go.
        """
        whose = unit or Unit()
        if whose.neighbours is not Neighbours.ADD_REMOVE:
            problem = f"is {whose}, and a canary that is out is not in the data at all"
            raise InvalidInput("unit", problem, "train with population=, or with sample_rate= and steps=")
        asked = max(1, len(self.inside) // 5) if guesses is None else guesses
        counts = guess_membership(self.scores(target), self.inside, guesses=asked)
        return one_run(len(self.inside), *counts, delta=delta, confidence=confidence, unit=whose, attack=attack)


def insert_canaries(
    inputs: Tensor, *, classes: int, canaries: int, key: str = "privet", rng: Rng | None = None
) -> InsertedCanaries:
    """Canaries shaped like `inputs`, which are public or made up and of which nothing but the range is used.

    Each is noise within the range, with a label drawn at random: a model that is right about one has learned it by
    heart. `key` decides what they look like, and `rng` the coins.
    """
    checked.count("canaries", canaries, least=2)
    checked.count("classes", classes, least=2)
    if not isinstance(inputs, Tensor) or not inputs.is_floating_point() or not len(inputs):
        raise InvalidInput("inputs", "are not rows of real numbers", "give a floating-point tensor, one row an example")
    drawn = generator(key, "insert_canaries")
    low, high = float(inputs.min()), float(inputs.max())
    made = low + (high - low) * torch.rand(canaries, *inputs.shape[1:], generator=drawn)
    labels = torch.randint(classes, (canaries,), generator=drawn)
    coins: Any = (rng or default_rng()).below(2, canaries)
    return InsertedCanaries(made, labels, coins.astype(np.bool_))
