"""The part of autograd's graph between the model's outputs and the losses: the factors that a loop puts into them.

Within one step nothing that is public changes: the weights, the step's number and every schedule stay. So a factor
that all rows share, and that differs between two pieces of one step, comes from the rows of the pieces: their number, a
count of tokens or labels, a mean. Such a factor lets one row change the contributions of all others, which no clipping
bounds. This needs no second pass, so it also holds for loops that cannot be repeated (see `privet.training.rehearsal`).
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from math import frexp

import torch
from torch import Tensor
from torch.autograd.graph import Node

from privet.core import InvalidInput
from privet.training.engine.graph import is_leaf, output_shape

__all__ = ["Tail"]

_TOLERANCE = 1e-6
_MOST = 4096
"""Constants with more entries than this are not factors that a person wrote down."""
_LOSS_SCALE = 128.0
"""`GradScaler` multiplies by a power of two from 65536 on, and halves it where gradients overflow."""
_KINDS = frozenset({"DivBackward0", "MulBackward0"})
_WEIGHTED = frozenset({"NllLossBackward0", "NllLoss2DBackward0"})


@dataclass(frozen=True, eq=False)
class Tail:
    """What one piece's losses were made with."""

    rows: int
    kinds: tuple[str, ...]
    """The operations, in the order of the walk."""
    constants: tuple[Tensor | None, ...]
    """For each of them the constant that it multiplies or divides by, if there is one that is small."""
    square: tuple[bool, ...]
    """For each of them whether it makes a second axis as long as the batch, as `(B, 1) - (B,)` does."""

    @staticmethod
    def of(losses: Tensor, outputs: Set[Node]) -> Tail:
        """Walk from the losses to the model's outputs."""
        nodes = list(_walk(losses, outputs))
        return Tail(
            len(losses),
            tuple(type(node).__name__ for node in nodes),
            tuple(_constant(node) for node in nodes),
            tuple(_squares(node, len(losses)) for node in nodes),
        )

    def require_unscaled(self) -> None:
        """Refuse losses that `torch.amp.GradScaler` has scaled.

        Their clipped gradients are bounded like others, so that the guarantee would hold; but nearly all of them would
        be shortened to the clip, and whoever scales expects that somebody unscales.
        """
        for kind, constant in zip(self.kinds, self.constants, strict=True):
            # A number of Python's is kept as int64 or float64; a scaler's is a tensor.
            if kind != "MulBackward0" or constant is None or constant.dim() or constant.dtype != torch.float32:
                continue
            value = float(constant)
            if value >= _LOSS_SCALE and frexp(value)[0] == 0.5:
                problem = f"were multiplied by {value:g}, as torch.amp.GradScaler does; nobody divides gradients by it"
                advice = "leave the scaler out, and use bfloat16 in torch.autocast; for a factor of yours, change clip"
                raise InvalidInput("losses", problem, advice)

    def require_like(self, other: Tail) -> None:
        """Refuse factors that differ from those of another piece of the same step, and comparisons of rows."""
        if self.kinds != other.kinds:
            return  # another branch: nothing can be compared
        if self.rows != other.rows and any(one and two for one, two in zip(self.square, other.square, strict=True)):
            problem = "compare every row of the batch with every other: a tensor on the way to them has the batch twice"
            advice = "give both tensors of a comparison one shape: outputs of shape (B, 1) need targets[:, None]"
            raise InvalidInput("losses", problem, advice)
        for one, two in zip(self.constants, other.constants, strict=True):
            if one is None or two is None or one.shape != two.shape:
                continue
            if (self.rows == other.rows and one.numel() > 1) or _close(one, two):
                continue
            problem = (
                "were multiplied or divided by a number that changed within a step, and nothing public does: so it "
                "depends on the rows of the batch, such as their number"
            )
            advice = "use fixed, public numbers; one that you draw or schedule must stay until run.step returns True"
            raise InvalidInput("losses", problem, advice)


def _walk(losses: Tensor, outputs: Set[Node]) -> Iterator[Node]:
    """Every node above the model's outputs, each once, in an order that the structure fixes."""
    stack, seen = [losses.grad_fn], set(outputs)
    while stack:
        node = stack.pop()
        if node is None or node in seen or is_leaf(node):
            continue
        seen.add(node)
        yield node
        stack.extend(child for child, _ in reversed(node.next_functions))


def _constant(node: Node) -> Tensor | None:
    kind = type(node).__name__
    if kind in _WEIGHTED:
        found = node._saved_weight  # type: ignore[attr-defined]  # noqa: SLF001
    elif kind in _KINDS and len(node.next_functions) == 2:
        (one, _), (two, _) = node.next_functions
        if (one is None) == (two is None):
            return None
        found = getattr(node, "_saved_other" if two is None else "_saved_self", None)
    else:
        return None
    return found.detach().clone() if isinstance(found, Tensor) and found.numel() <= _MOST else None


def _squares(node: Node, rows: int) -> bool:
    """Whether the output has two axes as long as the batch, and no input does."""

    def axes(node: Node, output: int) -> int:
        return sum(size == rows for size in output_shape(node, output))

    children = [
        axes(child, output) for child, output in node.next_functions if child is not None and not is_leaf(child)
    ]
    return rows > 1 and axes(node, 0) > 1 and max(children, default=2) < 2


def _close(one: Tensor, two: Tensor) -> bool:
    first, second = one.double(), two.double()
    near = (first - second).abs() <= _TOLERANCE * torch.maximum(first.abs(), second.abs())
    return bool((near | ~first.isfinite() | ~second.isfinite()).all())
