"""Targets of attacks: what an attacker sees of a model, from its labels to its weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from privet.core import InvalidInput, Release, checked

__all__ = ["Access", "ModelTarget", "Target", "class_labels", "losses", "network_of", "target"]

_TOGETHER = 4096
"""Number of rows in one batch."""


class Access(Enum):
    """Access that an attacker has to a model."""

    LABELS = "labels"
    """The class that it names, and nothing else."""
    SCORES = "scores"
    """A number for each class, before softmax; losses follow from them."""
    WEIGHTS = "weights"
    """The model itself, with its gradients: a white box."""


class Target(Protocol):
    """Model under attack. Methods that need more access than the attacker has raise `InvalidInput`."""

    @property
    def classes(self) -> int:
        """Number of classes."""
        ...

    @property
    def access(self) -> Access:
        """Access that the attacker has."""
        ...

    def labels(self, inputs: Tensor) -> Tensor:
        """Return the predicted class of each row.

        Args:
            inputs: [rows, …].

        Returns:
            [rows]: the predicted classes.
        """
        ...

    def scores(self, inputs: Tensor) -> Tensor:
        """Return the scores of each row, before softmax.

        Args:
            inputs: [rows, …].

        Returns:
            [rows, classes].

        Raises:
            InvalidInput: If the target shows only labels.
        """
        ...

    def module(self) -> nn.Module:
        """Return the network itself.

        Raises:
            InvalidInput: If the target does not show its weights.
        """
        ...


@dataclass(frozen=True, eq=False)
class ModelTarget:
    """Network in this process as a target; it is queried in evaluation mode."""

    network: nn.Module = field(repr=False)
    classes: int
    access: Access = Access.WEIGHTS

    def __post_init__(self) -> None:
        checked.count("classes", self.classes, least=2)
        checked.member("access", self.access, Access)

    def labels(self, inputs: Tensor) -> Tensor:
        """Return the class with the highest score for each row.

        Args:
            inputs: [rows, …].

        Returns:
            [rows]: the predicted classes.

        Raises:
            InvalidInput: If the network does not return one score for each row and class.
        """
        return self._asked(inputs).argmax(1)

    def scores(self, inputs: Tensor) -> Tensor:
        """Return the network's output, before softmax.

        Args:
            inputs: [rows, …].

        Returns:
            [rows, classes].

        Raises:
            InvalidInput: If the target shows only labels, or the network does not return one score for each row and
                class.
        """
        if self.access is Access.LABELS:
            raise InvalidInput("target", "shows labels alone", "use an attack that needs no more, such as label_only")
        return self._asked(inputs)

    def module(self) -> nn.Module:
        """Return the network, for attacks that need gradients.

        Raises:
            InvalidInput: If the target does not show its weights.
        """
        if self.access is not Access.WEIGHTS:
            raise InvalidInput("target", f"shows {self.access.value} and no gradients", "use an attack on what it says")
        return self.network

    def _asked(self, inputs: Tensor) -> Tensor:
        modes = [(layer, layer.training) for layer in self.network.modules()]
        self.network.eval()
        try:
            with torch.no_grad():
                parts = [self.network(part) for part in torch.split(inputs, _TOGETHER)] if len(inputs) else []
        finally:
            for layer, mode in modes:
                layer.training = mode
        found = torch.cat(parts) if parts else torch.zeros(0, self.classes)
        if found.shape != (len(inputs), self.classes):
            problem = f"answers {len(inputs)} rows with the shape {tuple(found.shape)}"
            raise InvalidInput("target", problem, f"it must say {self.classes} numbers for each row")
        return found


def target(model: nn.Module | Release[nn.Module], classes: int, access: Access = Access.WEIGHTS) -> ModelTarget:
    """Return a network, or the release of one, as an attacker sees it.

    Args:
        model: The network, or its release.
        classes: The number of classes.
        access: What the attacker sees.

    Raises:
        InvalidInput: If `classes` is below 2, or `access` is not known.

    >>> seen = target(nn.Linear(2, 3), 3, Access.LABELS)
    >>> seen.labels(torch.zeros(4, 2)).shape
    torch.Size([4])
    """
    return ModelTarget(model.value if isinstance(model, Release) else model, classes, access)


def network_of(of: Target) -> nn.Module:
    """Return the network of a white-box target.

    Args:
        of: The target.

    Raises:
        InvalidInput: If the target does not show its weights, or has no method `module()` that returns a network.
    """
    given = getattr(of, "module", None)
    if of.access is not Access.WEIGHTS and given is None:
        raise InvalidInput("target", f"shows {of.access.value} and no gradients", "use an attack on what it says")
    found = given() if callable(given) and not isinstance(given, nn.Module) else None
    if not isinstance(found, nn.Module):
        problem = f"has access = {of.access.value}, and no method module() that returns a torch.nn.Module"
        raise InvalidInput("target", problem, "give it one, or say access = Access.SCORES")
    return found


def class_labels(labels: Any, classes: int, count: int | None = None) -> Tensor:
    """Return labels as a flat tensor of classes.

    Args:
        labels: Whole numbers from 0 to classes - 1.
        classes: The number of classes.
        count: How many labels there must be; at least one, if left out.

    Raises:
        InvalidInput: If they are other numbers, or another number of them.
    """
    named = torch.as_tensor(labels).long().flatten()
    if (not len(named) if count is None else len(named) != count) or not bool(((named >= 0) & (named < classes)).all()):
        many, advice = ("", "at least one, such as [0]") if count is None else (f"{count} ", "one for each example")
        raise InvalidInput("labels", f"are not {many}classes below {classes}", f"give {advice}")
    return named


def losses(of: Target, inputs: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy of the target for each row.

    Args:
        of: The target; it must show scores.
        inputs: [rows, …].
        labels: [rows]: the true classes.

    Returns:
        [rows].

    Raises:
        InvalidInput: If the target shows only labels.
    """
    return F.cross_entropy(of.scores(inputs).double(), labels.long(), reduction="none")
