"""Defenses of a prediction service: labels only, rounded probabilities, a query limit."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from privet.attacks.target import Access, Target
from privet.core import InvalidInput, PrivetError, checked

__all__ = ["GuardedTarget", "TooManyQuestions"]


class TooManyQuestions(PrivetError):
    """Error raised when a query would exceed the query limit of a target."""


class GuardedTarget:
    """Target with a query limit that shows labels or rounded scores.

    Args:
        inner: The target that answers.
        access: Labels only, or scores; never weights.
        decimals: The number of digits that probabilities are rounded to. The scores are then the logarithms of the
            rounded probabilities, where 0 is replaced by half of the last digit.
        limit: The number of rows that are answered in total. A query that would exceed it is refused as a whole.

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
        """Return the predicted class of each row, and count the rows against the limit.

        Args:
            inputs: [rows, …].

        Returns:
            [rows]: the predicted classes.

        Raises:
            TooManyQuestions: If the rows would exceed the query limit; none of them is then answered.
        """
        self._count(len(inputs))
        return self._inner.labels(inputs)

    def scores(self, inputs: Tensor) -> Tensor:
        """Return the target's scores, or logarithms of rounded probabilities, and count the rows against the limit.

        Args:
            inputs: [rows, …].

        Returns:
            [rows, classes].

        Raises:
            InvalidInput: If the target shows only labels.
            TooManyQuestions: If the rows would exceed the query limit; none of them is then answered.
        """
        if self.access is Access.LABELS:
            raise InvalidInput("target", "shows labels alone", "use an attack that needs no more, such as label_only")
        self._count(len(inputs))
        found = self._inner.scores(inputs)
        if self.decimals is None:
            return found
        unit = 10.0**-self.decimals
        return torch.round(found.double().softmax(1) / unit).mul(unit).clamp_min(unit / 2).log()

    def module(self) -> nn.Module:
        """Refuse access to the network.

        Raises:
            InvalidInput: Always.
        """
        raise InvalidInput("target", f"shows {self.access.value} and no gradients", "use an attack on what it says")

    def _count(self, rows: int) -> None:
        if self.limit is not None and self.asked + rows > self.limit:
            left = self.limit - self.asked
            raise TooManyQuestions(f"the target answers {left} more of its {self.limit} rows, and was asked for {rows}")
        self.asked += rows
