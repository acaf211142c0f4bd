"""Defenses of a service: labels alone, rounded probabilities, a limit on questions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from privet.attacks.target import Access, Target
from privet.core import InvalidInput, PrivetError, checked

__all__ = ["GuardedTarget", "TooManyQuestions"]


class TooManyQuestions(PrivetError):
    """A target has answered as many rows as it is willing to."""


class GuardedTarget:
    """A target behind a counter: it shows less, rounds what it shows, and stops after so many rows.

    Args:
        inner: the target that answers.
        access: labels alone, or scores; never weights.
        decimals: digits of the probabilities that are kept. What it then says are their logarithms, 0 being taken for
            half of the last digit.
        limit: rows that are answered in all. A question that would go beyond it is refused as a whole.

    >>> from privet.attacks.target import ModelTarget
    >>> shy = GuardedTarget(ModelTarget(nn.Linear(2, 3), 3), limit=5)
    >>> _ = shy.labels(torch.zeros(4, 2))
    >>> shy.asked
    4
    """

    def __init__(
        self, inner: Target, *, access: Access = Access.SCORES, decimals: int | None = None, limit: int | None = None
    ) -> None:
        if checked.member("access", access, Access) is Access.WEIGHTS:
            raise InvalidInput("access", "is weights", "a guarded target shows labels or scores")
        if inner.access is Access.LABELS and access is Access.SCORES:
            raise InvalidInput("access", "is scores, and the target shows labels alone", "ask for labels")
        self._inner = inner
        self.access: Access = access
        """Labels, or scores."""
        self.classes: int = inner.classes
        """The number of classes."""
        self.asked = 0
        """The number of rows that were answered so far."""
        self.decimals = None if decimals is None else checked.count("decimals", decimals, least=0)
        self.limit = None if limit is None else checked.count("limit", limit, least=0)

    def labels(self, inputs: Tensor) -> Tensor:
        """The class that it names."""
        self._count(len(inputs))
        return self._inner.labels(inputs)

    def scores(self, inputs: Tensor) -> Tensor:
        """What it says, or logarithms of rounded probabilities."""
        if self.access is Access.LABELS:
            raise InvalidInput("target", "shows labels alone", "use an attack that needs no more, such as label_only")
        self._count(len(inputs))
        found = self._inner.scores(inputs)
        if self.decimals is None:
            return found
        unit = 10.0**-self.decimals
        return torch.round(found.double().softmax(1) / unit).mul(unit).clamp_min(unit / 2).log()

    def module(self) -> nn.Module:
        """Nobody is shown the network."""
        raise InvalidInput("target", f"shows {self.access.value} and no gradients", "use an attack on what it says")

    def _count(self, rows: int) -> None:
        if self.limit is not None and self.asked + rows > self.limit:
            left = self.limit - self.asked
            raise TooManyQuestions(f"the target answers {left} more of its {self.limit} rows, and was asked for {rows}")
        self.asked += rows
