"""ClipBKD: the poisoned point that clipping hides least (Jagielski, Ullman & Oprea 2020), for audits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import expm1
from typing import Any

import torch
from torch import Tensor

from privet.attacks.shadows import confidences
from privet.attacks.target import Target
from privet.core import Evidence, InvalidInput, Neighbours, Unit, checked
from privet.ensemble import Ridge, train_one

__all__ = ["ClipBKD", "clipbkd", "for_one_record"]


@dataclass(frozen=True, eq=False)
class ClipBKD:
    """Two data sets, one of them with copies of a poisoned row, and a score that tells models trained on them apart."""

    inputs: Tensor = field(repr=False)
    labels: Tensor = field(repr=False)
    point: Tensor = field(repr=False)
    """The poisoned row."""
    label: int
    """Its label: the class that it resembles least."""
    copies: int

    @property
    def absent(self) -> tuple[Tensor, Tensor]:
        """The data set without the poisoned row."""
        return self.inputs, self.labels

    @property
    def present(self) -> tuple[Tensor, Tensor]:
        """The data set followed by the copies of the poisoned row."""
        added = self.point.expand(self.copies, *self.point.shape)
        return torch.cat([self.inputs, added]), torch.cat(
            [self.labels, self.labels.new_full((self.copies,), self.label)]
        )

    @property
    def unit(self) -> Unit:
        """Neighboring relation of the two data sets: `copies` records added.

        Compute the guarantee of the run for this unit: it is the one that `many_runs(…, unit=…)` on scores can refute.
        A plan that depends on the number of rows (one without `population=`, or `sample_rate=` and `steps=`) has no
        such guarantee, and its runs on these two data sets differ for another reason.
        """
        return Unit(neighbours=Neighbours.ADD_REMOVE, records=self.copies)

    def score(self, of: Target) -> float:
        """Return the model's confidence in the label of the poisoned point minus that of a blank row.

        It is higher for models that were trained with the point.

        Args:
            of: The attacked model.

        Raises:
            InvalidInput: If the target shows only labels.
        """
        asked = torch.stack([self.point, torch.zeros_like(self.point)])
        own, blank = confidences(of.scores(asked), torch.tensor([self.label, self.label]))
        return float(own - blank)


def clipbkd(
    inputs: Any, labels: Any, *, classes: int, copies: int = 1, length: float | None = None, label: int | None = None
) -> ClipBKD:
    """Construct the poisoned point for a data set.

    The point lies in the direction in which the rows differ least from 0 (their last right singular vector). Rows
    hardly move weights in that direction, so that the effect of the poison remains, even after its gradient was
    clipped; a trigger in a direction of high variance would be drowned out. The data, the point and the label are fixed
    before any run, so that audits with them are sound however they were chosen.

    Args:
        inputs: [rows, …]: floating-point features; images are flattened.
        labels: Whole numbers from 0 to classes − 1.
        classes: The number of classes.
        copies: How many copies of the point are added.
        length: The norm of the point; the mean norm of the rows if omitted, as a longer one would stand out.
        label: The label of the point; if omitted, the class to which a ridge regression on the data gives the lowest
            score.

    Raises:
        InvalidInput: If the inputs are not rows of finite floating-point numbers, `copies` is below 1, `length` is not
            positive, or `label` is no class.
    """
    given, named = torch.as_tensor(inputs), torch.as_tensor(labels)
    checked.count("copies", copies)
    if given.ndim < 2 or not given.dtype.is_floating_point or not len(given) or not given.isfinite().all():
        raise InvalidInput("inputs", "are not rows of finite floating-point numbers", "make features of them first")
    flat = given.reshape(len(given), -1).double()
    # The eigenvectors of XᵀX are X's right singular vectors, complete even if there are fewer rows than columns.
    direction = torch.linalg.eigh(flat.T @ flat).eigenvectors[:, 0]
    norm = float(flat.norm(dim=1).mean()) if length is None else checked.positive("length", length)
    point = norm * direction
    called = label
    if called is None:
        fitted = train_one(Ridge(), flat, named, classes=classes)
        called = int(fitted.scores(point[None])[0, 0].argmin())
    elif not 0 <= called < checked.count("classes", classes, least=2):
        raise InvalidInput("label", f"is {called}, of {classes} classes", f"give a number from 0 to {classes - 1}")
    return ClipBKD(given, named, point.reshape(given.shape[1:]).to(given.dtype), called, copies)


def for_one_record(evidence: Evidence) -> Evidence:
    """Convert evidence about k records added together into evidence about one record.

    Were the run (ε₁, δ₁)-private for one record with ε₁ < ε̂/k, it would be (kε₁, δ₁·(e^(kε₁) − 1)/(e^ε₁ − 1))-private
    for k of them (Vadhan 2017, Lemma 2.2), that δ being at most δ₁·(e^ε̂ − 1)/(e^(ε̂/k) − 1). With
    δ₁ = δ·(e^(ε̂/k) − 1)/(e^ε̂ − 1) it is at most the δ of the evidence, which contradicts ε̂. So ε is at least ε̂/k
    at that smaller δ₁: dividing ε̂ and keeping δ would claim too much. Comparing the evidence for the unit of k records
    with the accountant's ε for k records (`ClipBKD.unit`) loses nothing, and is the better test.

    Args:
        evidence: A lower bound on ε for a unit of k records.

    Returns:
        The lower bound ε̂/k for one record, at a smaller δ.

    >>> found = for_one_record(Evidence(3.0, 1e-3, 0.95, "clipbkd", 100, Unit(records=3)))
    >>> round(found.epsilon, 6), round(found.delta * 1e5, 3), found.unit.records
    (1.0, 9.003, 1)
    """
    k, whole = evidence.unit.records, evidence.epsilon
    delta = evidence.delta * expm1(whole / k) / expm1(whole) if whole else evidence.delta / k
    return replace(evidence, epsilon=whole / k, delta=delta, unit=replace(evidence.unit, records=1))
