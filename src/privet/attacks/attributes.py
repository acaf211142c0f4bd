"""Attribute inference: predict a sensitive column of a row from the model and all other columns."""

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
    """Sensitive column: its position in a row, its possible values, and how common they are."""

    columns: tuple[int, ...]
    """Positions in a row that it occupies: one for a number, several for a one-hot encoded value."""
    values: Tensor
    """[values, positions]: the encoding of each value."""
    prior: Tensor
    """[values]: how common each value is, from public knowledge or from rows that are not attacked."""

    def __post_init__(self) -> None:
        values, prior = torch.as_tensor(self.values).double(), torch.as_tensor(self.prior).double()
        if values.ndim != 2 or values.shape[1] != len(self.columns) or len(values) < 2:
            raise InvalidInput("values", f"have the shape {tuple(values.shape)}", "give 2 or more, a row for each")
        if prior.shape != values.shape[:1] or not bool((prior > 0).all()):
            raise InvalidInput("prior", "is not one positive number for each value")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "prior", prior / prior.sum())

    def truth(self, inputs: Tensor) -> Tensor:
        """Return which value each row has.

        Args:
            inputs: [rows, columns], with the sensitive column.

        Returns:
            [rows]: the index into `values`.

        Raises:
            InvalidInput: If a row has a value that is not in `values`.
        """
        same = (inputs[:, list(self.columns)].double()[:, None] == self.values).all(2)
        if not bool(same.any(1).all()):
            raise InvalidInput("values", "lack one that a row has", "name all values of the column")
        return same.int().argmax(1)

    def put(self, inputs: Tensor, value: int) -> Tensor:
        """Return a copy of the rows in which the sensitive column has the given value.

        Args:
            inputs: [rows, columns]; it is not changed.
            value: The index into `values`.
        """
        found = inputs.clone()
        found[:, list(self.columns)] = self.values[value].to(inputs.dtype)
        return found


@dataclass(frozen=True)
class AttributeInference:
    """Accuracy of attribute inference, and how much of it the model leaks about its members."""

    members: ConfidenceInterval
    """Accuracy for members, with the model."""
    outsiders: ConfidenceInterval
    """Accuracy for non-members, with the model: what it reveals about anybody, in the training data or not."""
    leaked: ConfidenceInterval
    """Accuracy for members minus accuracy for non-members: what it reveals only about the training data."""
    imputed: ConfidenceInterval
    """Accuracy for members, without the model: what anybody who knows the population can infer."""


def infer_attribute(
    target: Target, inputs: Tensor, labels: Tensor, attribute: Attribute, confusion: Any = None
) -> Tensor:
    """Return log-probabilities of the sensitive value of each row (Fredrikson et al. 2014; Yeom et al. 2018).

    By Bayes' rule, the probability of a value is proportional to its prior times the probability that the model gives
    to the row's true label when the row has this value.

    Args:
        target: The attacked model.
        inputs: [rows, columns]; the sensitive column is overwritten, so that its content does not matter.
        labels: [rows]: the true classes, which the attacker knows.
        attribute: The sensitive column.
        confusion: [predicted class, true class]: P(true | predicted), used where the target shows only labels. If
            omitted, the target is assumed to be right in nine cases out of ten.

    Returns:
        [rows, values]: log-probabilities.
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
    """Infer a sensitive column of members and non-members, and measure how much of the accuracy is leakage.

    A useful model describes its population: what it allows one to infer about non-members as well is no breach of any
    member's privacy, however accurate it is. What it reveals only about members is. The baseline does not use the
    model: it imputes the value with a classifier of the other columns and the label, trained on `reference` rows
    (Jayaraman & Evans 2022), or guesses the most common value if there are none.

    Intervals are exact for independent rows (Clopper & Pearson 1934). The interval of the difference combines two, each
    with half of the error, and its coverage is at least the stated one. Members of one training run are not quite
    independent.

    Args:
        target: The attacked model.
        pool: Members and non-members.
        attribute: The sensitive column.
        reference: Inputs and labels of further rows from the same population, to train the baseline on.
        learner: How the baseline is trained; ridge regression if omitted.
        confidence: The coverage of each interval.

    Raises:
        InvalidInput: If `confidence` is not between 0 and 1, or a row has a value that is not in `attribute.values`.
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
    """Return all other columns, followed by the one-hot encoded label."""
    kept = [place for place in range(inputs.shape[1]) if place not in attribute.columns]
    named = F.one_hot(labels.long(), int(max(known.max(), labels.max())) + 1)
    return torch.cat([inputs[:, kept].float(), named.float()], dim=1)


def _usual(classes: int) -> Tensor:
    return torch.eye(classes).double() * (0.9 - 0.1 / (classes - 1)) + 0.1 / (classes - 1)


def _share(right: Tensor, confidence: float) -> ConfidenceInterval:
    return ConfidenceInterval.of_share(int(right.sum()), len(right), confidence)
