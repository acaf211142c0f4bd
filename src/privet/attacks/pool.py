"""Examples to attack, and which of them were trained on; examples that are on both sides are refused here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from privet.attacks.counting import Reals, checked_scores
from privet.attacks.outcome import Outcome
from privet.attacks.shadows import Bits
from privet.core import InvalidInput

__all__ = ["Pool", "overlapping_rows"]


@dataclass(frozen=True, eq=False)
class Pool:
    """Members and non-members (outsiders). An example that is both, or that is not finite, is refused.

    >>> pool = Pool.of((torch.zeros(2, 3), [0, 1]), (torch.ones(4, 3), [0, 0, 1, 1]))
    >>> pool.outcome("none", np.zeros(6)).auc().value
    0.5
    """

    inputs: Tensor = field(repr=False)
    labels: Tensor = field(repr=False)
    inside: Bits = field(repr=False)

    def __post_init__(self) -> None:
        inputs, labels, inside = torch.as_tensor(self.inputs), torch.as_tensor(self.labels), np.asarray(self.inside)
        if inputs.ndim < 2 or labels.shape != inputs.shape[:1] or labels.dtype.is_floating_point:
            raise InvalidInput("labels", "are not one whole number for each row of the inputs")
        if inside.shape != (len(labels),) or inside.dtype != np.bool_:
            raise InvalidInput("inside", "is not one truth value for each row")
        for name, count in (("members", inside.sum()), ("outsiders", (~inside).sum())):
            if count < 2:
                raise InvalidInput(name, f"are {count}", "an attack needs 2 or more of both")
        if inputs.dtype.is_floating_point and not bool(inputs.isfinite().all()):
            raise InvalidInput("inputs", "hold numbers that are not finite", "find out why before you attack")
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "labels", labels.long())
        object.__setattr__(self, "inside", inside)
        shared = int(overlapping_rows(self.part(members=True), self.part(members=False)).sum())
        if shared:
            problem = f"hold {shared:,} of {int((~inside).sum()):,} that are members, too"
            raise InvalidInput(
                "outsiders", problem, "leave them out: nothing can tell them apart (`overlapping_rows` finds them)"
            )

    @staticmethod
    def of(members: tuple[Any, Any], outsiders: tuple[Any, Any]) -> Pool:
        """Return a pool of members, followed by non-members.

        Args:
            members: Inputs and labels of rows that the model was trained on.
            outsiders: Inputs and labels of rows that it was not trained on.

        Raises:
            InvalidInput: If rows of the two have different shapes, there is not one whole number for each row, one side
                has fewer than 2 rows, an input is not finite, or a row is on both sides.
        """
        (inside, ours), (outside, theirs) = (
            (torch.as_tensor(rows), torch.as_tensor(named)) for rows, named in (members, outsiders)
        )
        if inside.shape[1:] != outside.shape[1:]:
            problem = f"have the shape {tuple(outside.shape[1:])}, and members {tuple(inside.shape[1:])}"
            raise InvalidInput("outsiders", problem, "prepare both in the same way")
        within = np.arange(len(inside) + len(outside)) < len(inside)
        return Pool(torch.cat([inside, outside]), torch.cat([ours, theirs]), within)

    def part(self, *, members: bool) -> tuple[Tensor, Tensor]:
        """Return the inputs and labels of one side.

        Args:
            members: True for members, False for non-members.
        """
        chosen = torch.from_numpy(self.inside if members else ~self.inside)
        return self.inputs[chosen], self.labels[chosen]

    def outcome(self, attack: str, scores: Any) -> Outcome:
        """Return the outcome of an attack from its scores.

        Args:
            attack: The name of the attack.
            scores: [rows]: one score for each row of the pool; higher means a likelier member.

        Raises:
            InvalidInput: If there is not one score for each row, a score is NaN, or `attack` is empty.
        """
        found: Reals = checked_scores("scores", scores, 1)
        if len(found) != len(self.inside):
            raise InvalidInput("scores", f"are {len(found)} for {len(self.inside)} rows", "give one for each row")
        return Outcome(attack, found[self.inside], found[~self.inside])


def overlapping_rows(members: tuple[Tensor, Tensor], others: tuple[Tensor, Tensor]) -> Bits:
    """Return which of the other rows equal a member in all inputs and in the label.

    Args:
        members: Inputs and labels of the members.
        others: Inputs and labels of the rows to check.

    Returns:
        [others]: a truth value for each row.

    >>> rows, names = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0, 1])
    >>> overlapping_rows((rows, names), (rows[1:], names[1:])).tolist()
    [True]
    """
    known = set(_marks(*members))
    return np.fromiter((mark in known for mark in _marks(*others)), dtype=np.bool_, count=len(others[0]))


def _marks(inputs: Tensor, labels: Tensor) -> list[bytes]:
    # −0 becomes 0. A 16-byte hash keeps long rows short: two rows collide with probability 2^−128.
    rows = (inputs.flatten(1).double() + 0.0).contiguous().numpy()
    return [
        hashlib.blake2b(row.tobytes() + int(label).to_bytes(8, "big", signed=True), digest_size=16).digest()
        for row, label in zip(rows, labels.tolist(), strict=True)
    ]
