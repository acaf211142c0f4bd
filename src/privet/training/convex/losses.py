"""Losses of linear models, with the constants that the theorems ask for; inputs have a norm of at most 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from privet.core import checked

__all__ = ["Array", "ConvexLoss", "LogCosh", "Softmax"]

Array: TypeAlias = npt.NDArray[np.float64]


class ConvexLoss(Protocol):
    """A loss of one example's scores: convex, twice differentiable, with a bounded gradient."""

    @property
    def outputs(self) -> int:
        """Number of scores that a model gives for one example."""

    @property
    def lipschitz(self) -> float:
        """Largest norm of the gradient with respect to the scores."""

    @property
    def curvature(self) -> float:
        """Largest eigenvalue of the Hessian with respect to the scores."""

    @property
    def trace(self) -> float:
        """Largest trace of the Hessian."""

    @property
    def rank(self) -> int:
        """Largest rank of the Hessian."""

    @property
    def tails(self) -> int:
        """Number of normal variables that can each make the privacy loss large: see `ObjectivePerturbation`."""

    def slopes(self, scores: Array, targets: npt.NDArray[Any]) -> tuple[float, Array]:
        """Return the sum of the examples' losses, and each example's gradient with respect to its scores.

        Args:
            scores: Scores of the examples, (examples, outputs).
            targets: Target of each example.
        """


@dataclass(frozen=True)
class Softmax:
    """Cross-entropy over some classes: the gradient is p - e_y, the second derivative diag(p) - pp'."""

    classes: int
    curvature: ClassVar[float] = 0.5
    """Where two classes share the probability."""

    def __post_init__(self) -> None:
        checked.count("classes", self.classes, 2)

    @property
    def outputs(self) -> int:
        """One score for each class."""
        return self.classes

    @property
    def lipschitz(self) -> float:
        """√2, rounded up."""
        return float(np.nextafter(np.sqrt(2.0), 2.0))

    @property
    def trace(self) -> float:
        """1 - Σp² is largest where all classes are equally likely."""
        return 1.0 - 1.0 / self.classes

    @property
    def rank(self) -> int:
        """classes - 1: a constant added to all scores has no effect."""
        return self.classes - 1

    @property
    def tails(self) -> int:
        """One for each class other than the right one."""
        return self.classes - 1

    def slopes(self, scores: Array, targets: npt.NDArray[Any]) -> tuple[float, Array]:
        """Return the sum of the cross-entropies, and the gradients p - e_y.

        Args:
            scores: Scores of the examples, (examples, outputs).
            targets: Target of each example.
        """
        rows = np.arange(len(scores))
        logs = scores - logsumexp(scores, axis=1, keepdims=True)
        slopes = np.exp(logs)
        slopes[rows, targets] -= 1.0
        return float(-logs[rows, targets].sum()), slopes


@dataclass(frozen=True)
class LogCosh:
    """log cosh(score - target): like a squared error where it is small, and like an absolute one where it is large.

    The slope is a tanh, which stays below 1, and the second derivative 1 - tanh², the only eigenvalue. Either sign of
    the slope is a tail.
    """

    outputs: ClassVar[int] = 1
    lipschitz: ClassVar[float] = 1.0
    curvature: ClassVar[float] = 1.0
    trace: ClassVar[float] = 1.0
    rank: ClassVar[int] = 1
    tails: ClassVar[int] = 2

    def slopes(self, scores: Array, targets: npt.NDArray[Any]) -> tuple[float, Array]:
        """Return the sum of the losses, and the gradients tanh(score - target).

        Args:
            scores: Scores of the examples, (examples, outputs).
            targets: Target of each example.
        """
        apart = scores[:, 0] - targets
        size = np.abs(apart)
        values = size + np.log1p(np.exp(-2.0 * size)) - np.log(2.0)
        return float(values.sum()), np.tanh(apart)[:, None]
