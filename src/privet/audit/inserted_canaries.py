"""Black-box canaries: synthetic rows, each inserted by its own fair coin; only the released model is queried."""

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
    """Canaries that are ordinary rows, and the coins that decided which of them are included."""

    inputs: Tensor = field(repr=False)
    labels: Tensor = field(repr=False)
    inside: npt.NDArray[np.bool_] = field(repr=False)

    def into(self, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rows and labels with the included canaries appended.

        Train on the result, with a plan whose unit is add/remove.

        Args:
            inputs: The rows to train on.
            labels: The label of each row.
        """
        kept = torch.from_numpy(self.inside)
        return torch.cat([inputs, self.inputs[kept].to(inputs)]), torch.cat([labels, self.labels[kept].to(labels)])

    def scores(self, target: Target) -> Reals:
        """Return how sure the model is of each canary's label.

        Args:
            target: The released model, with the access that the adversary has.

        Returns:
            The logit-scaled confidence of each canary's label; with access to labels alone, 1 where the model predicts
            the canary's label and 0 elsewhere.
        """
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
        """Return a lower bound on the run's ε that assumes nothing about the run (`one_run`).

        An excluded canary is not in the data at all, so that the bound is for rows that are added or removed.

        Args:
            target: The released model, with the access that the adversary has.
            delta: The δ at which ε is stated.
            guesses: The number of canaries to guess at, fixed before any coin is seen; a fifth of them by default.
            confidence: The probability that the bound is right.
            unit: The unit of the run, with add/remove neighbors; one example by default.
            attack: The name of the attack in the evidence.

        Raises:
            InvalidInput: If `unit` has other neighbors than add/remove, or there are more guesses than canaries.
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
    """Return synthetic canaries of the shape of `inputs`, each included by its own fair coin.

    Each is noise within the range of `inputs`, with a label drawn at random: a model that predicts it has memorized it.

    Args:
        inputs: Public or synthetic rows, [rows, …]. Only their shape and range are used.
        classes: The number of classes that labels are drawn from.
        canaries: The number of canaries, at least 2.
        key: The key that the canaries' inputs and labels follow from.
        rng: The source of the coins; the secure generator by default.

    Raises:
        InvalidInput: If `inputs` is not a floating-point tensor with rows, or `classes` or `canaries` is below 2.
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
