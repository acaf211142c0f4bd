"""Model extraction: build a copy of the target from its answers alone."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from privet.attacks.outcome import ConfidenceInterval
from privet.attacks.target import Access, Target
from privet.core import InvalidInput, checked
from privet.ensemble import NetworkTraining, generator, initial_weights

__all__ = ["CopyTraining", "FidelityCurve", "copy_model", "fidelity", "fidelity_curve", "solve_linear_model"]

_LINEAR = 1e-3
"""Tolerance for a linear model's answers to fresh queries, in standard deviations of its answers."""
_FRESH = 4


def solve_linear_model(target: Target, features: int, *, key: str = "privet") -> nn.Linear:
    """Return the exact weights of a linear or logistic model, by solving equations (Tramèr et al. 2016).

    It takes features + 1 queries: zeros, and each unit vector. If the target gives logarithms of probabilities in place
    of scores, weights are determined up to what softmax cannot show, a vector added to those of all classes; they are
    returned with a mean of zero over classes, so that both give the same copy. Four further queries check whether
    the target is linear at all.

    Args:
        target: The attacked model; it must show scores.
        features: The number of input features.
        key: Seed of the queries that check for linearity.

    Raises:
        InvalidInput: If `features` is below 1, or the target shows only labels, is not linear, or rounds its answers.
    """
    count = checked.count("features", features)
    probes = torch.cat([torch.zeros(1, count), torch.eye(count)])
    fresh = torch.randn(_FRESH, count, generator=generator(key, "solve_linear_model"))
    answers = target.scores(torch.cat([probes, fresh])).double()
    # Softmax is invariant to a constant added to all classes of a row.
    level = answers - answers.mean(1, keepdim=True)
    bias, weights = level[0], (level[1 : count + 1] - level[0]).T
    missed = level[count + 1 :] - (fresh.double() @ weights.T + bias)
    if float(missed.abs().max()) > _LINEAR * max(float(level.std()), 1e-12):
        problem = "is not linear, or rounds its answers"
        raise InvalidInput("target", problem, "use copy_model, with many queries")
    found = nn.Linear(count, target.classes)
    with torch.no_grad():
        found.weight.copy_(weights)
        found.bias.copy_(bias)
    return found


@dataclass(frozen=True)
class CopyTraining(NetworkTraining):
    """Settings for training a copy: one network with Adam and a cosine learning-rate schedule that ends at zero."""

    steps: int = 1000
    batch_size: int = 64

    def fit(self, rows: Tensor, probabilities: Tensor) -> nn.Module:
        """Return a network that was trained to predict these probabilities.

        Args:
            rows: The inputs.
            probabilities: [rows, classes]: the answers of the target.
        """
        stream = generator(self.key, "copy_model")
        network = deepcopy(self.model)
        network.load_state_dict(initial_weights(self.model, stream), strict=False)
        optimizer = torch.optim.Adam(network.parameters(), lr=self.learning_rate)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.steps)
        for _ in range(self.steps):
            at = torch.randint(0, len(rows), (self.batch_size,), generator=stream)
            optimizer.zero_grad()
            torch.autograd.backward(F.cross_entropy(network(rows[at]), probabilities[at]))
            optimizer.step()
            schedule.step()
        return network.eval()


def copy_model(target: Target, questions: Tensor, student: CopyTraining) -> nn.Module:
    """Return a copy of any target: a student trained on its answers (Tramèr et al. 2016, Orekondy et al. 2019).

    It learns probabilities where the target shows scores, and classes where it shows only labels.

    Args:
        target: The attacked model.
        questions: The queries: [rows, …].
        student: The student network and how it is trained.

    Raises:
        InvalidInput: If there are no queries.
    """
    if not len(questions):
        raise InvalidInput("questions", "are none", "give rows to ask about")
    return student.fit(questions, _answers(target, questions).to(questions.dtype))


def fidelity(target: Target, copy: nn.Module, rows: Tensor, *, confidence: float = 0.95) -> ConfidenceInterval:
    """Return how often a copy predicts the same class as the target.

    Args:
        target: The attacked model.
        copy: The copy.
        rows: Rows that the copy was not trained on.
        confidence: The coverage of the interval.

    Raises:
        InvalidInput: If `confidence` is not between 0 and 1.
    """
    return _agreed(target.labels(rows), copy, rows, confidence)


@dataclass(frozen=True)
class FidelityCurve:
    """Fidelity as a function of the number of queries."""

    questions: tuple[int, ...]
    fidelity: tuple[ConfidenceInterval, ...]


def fidelity_curve(
    target: Target,
    questions: Tensor,
    counts: Sequence[int],
    student: CopyTraining,
    *,
    held_out: tuple[Tensor, Tensor],
    confidence: float = 0.95,
) -> FidelityCurve:
    """Return the fidelity of copies that were trained on increasing numbers of queries.

    The target is queried once, for the largest number.

    Args:
        target: The attacked model.
        questions: The queries: [rows, …]; each copy uses the first of them.
        counts: The numbers of queries to try.
        student: The student network and how it is trained.
        held_out: Rows, and the classes that the undefended target predicts for them. The evaluator knows them, so that
            they do not count against the target's query limit.
        confidence: The coverage of each interval.

    Raises:
        InvalidInput: If `counts` is empty, or holds a number below 1 or above the number of queries, or `confidence` is
            not between 0 and 1.
    """
    wanted = tuple(checked.count("counts", count) for count in counts)
    if not wanted or max(wanted) > len(questions):
        raise InvalidInput("counts", f"go up to {max(wanted, default=0)}", f"there are {len(questions)} questions")
    answers = _answers(target, questions[: max(wanted)]).to(questions.dtype)
    rows, named = held_out
    copies = (student.fit(questions[:count], answers[:count]) for count in wanted)
    return FidelityCurve(wanted, tuple(_agreed(named, copy, rows, confidence) for copy in copies))


def _answers(target: Target, questions: Tensor) -> Tensor:
    if target.access is Access.LABELS:
        return F.one_hot(target.labels(questions), target.classes).double()
    return target.scores(questions).double().softmax(1)


def _agreed(named: Tensor, copy: nn.Module, rows: Tensor, confidence: float) -> ConfidenceInterval:
    with torch.no_grad():
        same = int((copy(rows).argmax(1) == named).sum())
    return ConfidenceInterval.of_share(same, len(rows), confidence)
