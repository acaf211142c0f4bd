"""Stealing: a model like the target, from its answers alone."""

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
"""How far a linear model's answer to a fresh question may be from what was solved, in deviations of its answers."""
_FRESH = 4


def solve_linear_model(target: Target, features: int, *, key: str = "privet") -> nn.Linear:
    """The exact weights of a linear or logistic model, by solving equations (Tramèr et al. 2016).

    features + 1 questions: zeros, and each unit vector. If the target gives probabilities in place of scores (their
    logarithms), weights are found up to what softmax cannot show, a vector added to those of all classes; they are
    returned with a mean of zero over classes, so that both give the same copy. Four further questions find out whether
    the target is linear at all.
    """
    count = checked.count("features", features)
    probes = torch.cat([torch.zeros(1, count), torch.eye(count)])
    fresh = torch.randn(_FRESH, count, generator=generator(key, "solve_linear_model"))
    answers = target.scores(torch.cat([probes, fresh])).double()
    # Softmax does not see what is added to all classes of a row.
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
    """Training of a copy: one network by Adam, with a learning rate that falls to zero as a cosine."""

    steps: int = 1000
    batch_size: int = 64

    def fit(self, rows: Tensor, probabilities: Tensor) -> nn.Module:
        """Return a network that was trained to give these probabilities.

        Args:
            rows: The inputs.
            probabilities: [rows, classes], as the target gives them.
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
    """A copy of any target: a student that learns from its answers (Tramèr et al. 2016, Orekondy et al. 2019).

    It learns probabilities where the target shows scores, and classes where it shows labels alone.
    """
    if not len(questions):
        raise InvalidInput("questions", "are none", "give rows to ask about")
    return student.fit(questions, _answers(target, questions).to(questions.dtype))


def fidelity(target: Target, copy: nn.Module, rows: Tensor, *, confidence: float = 0.95) -> ConfidenceInterval:
    """How often a copy names the class that the target names, on rows that it did not learn from."""
    return _agreed(target.labels(rows), copy, rows, confidence)


@dataclass(frozen=True)
class FidelityCurve:
    """Fidelity against questions."""

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
    """How good copies are that were made from the first few questions, and from more and more of them.

    The target is asked once about the most of them. `held_out` are rows and the classes that the undefended target
    names for them: whoever judges the copy knows these, and its limit on questions is not spent on them.
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
