"""Attribute inference: a sensitive column of a row, from the model and all other columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from privet.attacks.outcome import ConfidenceInterval
from privet.attacks.pool import Pool
from privet.attacks.target import Access, Target
from privet.core import InvalidInput, checked
from privet.ensemble import Learner, Ridge, train_one

__all__ = ["Attribute", "AttributeInference", "attributes", "infer_attribute"]


@dataclass(frozen=True, eq=False)
class Attribute:
    """A sensitive column: where it is in a row, which values it can have, and how common they are."""

    columns: tuple[int, ...]
    """The places in a row that it takes: one for a number, several for a value of which each has a place."""
    values: Tensor
    """[values, places]: what stands there."""
    prior: Tensor
    """[values]: how common each is, from public knowledge or from rows that are neither members nor outsiders."""

    def __post_init__(self) -> None:
        values, prior = torch.as_tensor(self.values).double(), torch.as_tensor(self.prior).double()
        if values.ndim != 2 or values.shape[1] != len(self.columns) or len(values) < 2:
            raise InvalidInput("values", f"have the shape {tuple(values.shape)}", "give 2 or more, a row for each")
        if prior.shape != values.shape[:1] or not bool((prior > 0).all()):
            raise InvalidInput("prior", "is not one positive number for each value")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "prior", prior / prior.sum())

    def truth(self, inputs: Tensor) -> Tensor:
        """[rows]: which value each row has."""
        same = (inputs[:, list(self.columns)].double()[:, None] == self.values).all(2)
        if not bool(same.any(1).all()):
            raise InvalidInput("values", "lack one that a row has", "name all values of the column")
        return same.int().argmax(1)

    def put(self, inputs: Tensor, value: int) -> Tensor:
        """The rows as they would be with this value."""
        found = inputs.clone()
        found[:, list(self.columns)] = self.values[value].to(inputs.dtype)
        return found


@dataclass(frozen=True)
class AttributeInference:
    """How often the sensitive value was inferred, and what of that the model gave away of its members."""

    members: ConfidenceInterval
    """Of members, with the model."""
    outsiders: ConfidenceInterval
    """Of outsiders, with the model: what it tells of everybody, in the training data or not."""
    leaked: ConfidenceInterval
    """Members less outsiders: what it tells of those alone who were in the training data."""
    imputed: ConfidenceInterval
    """Of members, without the model: what anybody can infer who knows the population."""


def infer_attribute(
    target: Target, inputs: Tensor, labels: Tensor, attribute: Attribute, confusion: Any = None
) -> Tensor:
    """[rows, values]: log-probabilities of the sensitive value (Fredrikson et al. 2014; Yeom et al. 2018).

    By Bayes: how common a value is, times how likely the model finds the row's true label if the value is put in. Where
    the target shows labels alone, that likelihood is `confusion`[named class, true class], P(true | named); if it is
    left out, the target is taken to be right in nine cases of ten.
    """
    spoken = []
    for value in range(len(attribute.values)):
        rows = attribute.put(inputs, value)
        if target.access is Access.LABELS:
            table = _usual(target.classes) if confusion is None else torch.as_tensor(np.asarray(confusion)).double()
            spoken.append(table[target.labels(rows), labels].clamp_min(1e-12).log())
        else:
            spoken.append(-F.cross_entropy(target.scores(rows).double(), labels.long(), reduction="none"))
    return (torch.stack(spoken, dim=1) + attribute.prior.log()).log_softmax(1)


def attributes(
    target: Target,
    pool: Pool,
    attribute: Attribute,
    *,
    reference: tuple[Tensor, Tensor] | None = None,
    learner: Learner | None = None,
    confidence: float = 0.95,
) -> AttributeInference:
    """Infer a sensitive column of members and of outsiders, and say what of it is leakage.

    A model that works knows its population: what it lets one infer of outsiders as well is no breach of any member's
    privacy, however well it works. What is told of members alone is. The honest baseline knows no model at all: it
    imputes the value by a classifier from the other columns and the label that learned from `reference` rows (Jayaraman
    & Evans 2022), or guesses the most common one where there are none.

    Intervals are exact for independent rows (Clopper & Pearson 1934); that of the difference is made of two, with half
    of the error each, and holds at least as often as it says. Members of one training are not quite independent.
    """
    half = (1 + checked.confidence("confidence", confidence)) / 2
    truth = attribute.truth(pool.inputs)
    with_model = infer_attribute(target, pool.inputs, pool.labels, attribute).argmax(1) == truth
    without = _imputed(pool, attribute, reference, learner) == truth
    inside = torch.from_numpy(pool.inside)
    members, outsiders = _share(with_model[inside], confidence), _share(with_model[~inside], confidence)
    near, far = _share(with_model[inside], half), _share(with_model[~inside], half)
    leaked = ConfidenceInterval(members.value - outsiders.value, near.lower - far.upper, near.upper - far.lower)
    return AttributeInference(members, outsiders, leaked, _share(without[inside], confidence))


def _imputed(
    pool: Pool, attribute: Attribute, reference: tuple[Tensor, Tensor] | None, learner: Learner | None
) -> Tensor:
    if reference is None:
        return attribute.prior.argmax().expand(len(pool.labels))
    rows, labels = reference
    seen, asked = (_others(x, y, attribute, pool.labels) for x, y in ((rows, labels), (pool.inputs, pool.labels)))
    mean, spread = seen.mean(0), seen.std(0).clamp_min(1e-6)
    truth, values = attribute.truth(rows), len(attribute.values)
    model = train_one(learner or Ridge(1.0), (seen - mean) / spread, truth, classes=values)
    return model.scores((asked - mean) / spread)[0].argmax(1)


def _others(inputs: Tensor, labels: Tensor, attribute: Attribute, known: Tensor) -> Tensor:
    """All other columns, and a place for each label."""
    kept = [place for place in range(inputs.shape[1]) if place not in attribute.columns]
    named = F.one_hot(labels.long(), int(max(known.max(), labels.max())) + 1)
    return torch.cat([inputs[:, kept].float(), named.float()], dim=1)


def _usual(classes: int) -> Tensor:
    return torch.eye(classes).double() * (0.9 - 0.1 / (classes - 1)) + 0.1 / (classes - 1)


def _share(right: Tensor, confidence: float) -> ConfidenceInterval:
    return ConfidenceInterval.of_share(int(right.sum()), len(right), confidence)
