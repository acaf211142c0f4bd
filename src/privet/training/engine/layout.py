"""Where the examples are in a tensor: the first axis as a rule, and what `nn.MultiheadAttention` makes of it else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

__all__ = ["Layout", "candidates"]


@dataclass(frozen=True)
class Layout:
    """One axis holds B·k entries: k for each of B examples, example by example or interleaved."""

    examples: int
    axis: int = 0
    interleaved: bool = False

    def split(self, tensor: Tensor, axis: int | None = None) -> Tensor:
        """The tensor as (B, k, the other axes in their order); `axis` where the examples lie elsewhere in this one."""
        moved = tensor.movedim(self.axis if axis is None else axis, 0)
        k = moved.shape[0] // self.examples if self.examples else 1
        rest = moved.shape[1:]
        if self.interleaved:
            return moved.reshape(k, self.examples, *rest).transpose(0, 1)
        return moved.reshape(self.examples, k, *rest)


def candidates(shape: Sequence[int], examples: int) -> Iterator[Layout]:
    """Every layout that the shape allows, the usual one first."""
    for axis in range(min(2, len(shape))):
        if shape[axis] and shape[axis] % examples == 0:
            yield Layout(examples, axis)
            if shape[axis] > examples:
                yield Layout(examples, axis, interleaved=True)
