"""What two computations must have in common for what was found about one to hold for the other."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd.graph import Node

from privet.core import InvalidInput
from privet.training.engine.graph import Graph, is_leaf, node_kinds, output_shape, outputs_of, saved

__all__ = ["Sizes", "alike", "is_packed", "sizes", "skeleton", "takes_rows_by_data"]

Sizes: TypeAlias = tuple[tuple[int, ...], ...]

_ARGUMENTS = ("dim", "dim0", "dim1", "dims", "shifts")
_BY_DATA = node_kinds("IndexPut MaskedScatter MaskedSelect PackPaddedSequence Put RepeatInterleave ScatterReduce Take")
"""Operations that take or put rows where the data says."""
_BY_DATA_ALONG = node_kinds(
    """
    Gather IndexAdd IndexCopy IndexReduce IndexSelect Kthvalue Max Min ScatterAdd Scatter ScatterBackward1 Sort
    SortBackward1 Topk
    """
)
"""Operations that do so along one axis."""


def skeleton(graph: Graph) -> tuple[object, ...]:
    """The operations and their axes, without any size."""
    return tuple(_described(node) for node in graph.order)


def sizes(graph: Graph) -> Sizes:
    """The shape of every operation's output, in the order of the walk."""
    return tuple(() if is_leaf(node) else tuple(output_shape(node, 0)) for node in graph.order)


def alike(old: Sizes, examples_then: int, new: Sizes, examples_now: int) -> bool:
    """Whether every size is the same multiple of the number of examples, or both times has nothing to do with it.

    Two computations with one skeleton and sizes that are alike arrange their examples alike, unless data decides
    (`takes_rows_by_data`). A size that was no multiple then and has not changed is no multiple now, though it may look
    like one: a layer of 256 is not made of 64 examples. One that looked like a multiple then must grow with the number.
    """
    for before, after in zip(old, new, strict=True):
        if len(before) != len(after):
            return False
        for then, now in zip(before, after, strict=True):
            if then % examples_then == 0:
                if then // examples_then * examples_now != now:
                    return False
            elif now % examples_now == 0 and now != then:
                return False
    return True


def _described(node: Node) -> tuple[object, ...]:
    kind = type(node)
    if is_leaf(node):
        return (kind,)
    return kind, *(_plain(getattr(node, name)) for name in _arguments(kind))


@cache
def _arguments(kind: type) -> tuple[str, ...]:
    return tuple(name for name in (f"_saved_{each}" for each in _ARGUMENTS) if hasattr(kind, name))


def _plain(value: Any) -> object:
    return tuple(value) if isinstance(value, (list, tuple)) else value


_UNFOLDS = node_kinds("ReshapeAlias UnsafeView View")
_COPIES = node_kinds("Expand Repeat")


def is_packed(graph: Graph, layouts: Mapping[Node, tuple[int, bool]], examples: int) -> bool:
    """Whether several rows of an example lie along one axis that no reshaping ever made of (examples, rows).

    Then it is data that says whose a row is: the lengths by which a list of tokens is cut, a mask, a matrix of owners.
    """
    parents: dict[Node, list[Node]] = {}
    for node in graph.order:
        for child, _ in node.next_functions:
            if child is not None:
                parents.setdefault(child, []).append(node)
    return any(
        _stays_folded(node, axis, parents)
        for node, (axis, _) in layouts.items()
        if not any(output_shape(node, each)[axis : axis + 1] == (examples,) for each in range(outputs_of(node)))
        and type(node).__name__ not in _COPIES
    )


def _stays_folded(start: Node, axis: int, parents: Mapping[Node, list[Node]]) -> bool:
    """Whether a way up from here leaves the axis by anything but a reshaping."""
    size, seen, stack = output_shape(start, 0)[axis], {start}, [start]
    while stack:
        for above in parents.get(stack.pop(), ()):
            if above in seen:
                continue
            seen.add(above)
            if output_shape(above, 0)[axis : axis + 1] == (size,) and type(above).__name__ not in _UNFOLDS:
                stack.append(above)
            elif type(above).__name__ not in _UNFOLDS:
                return True
    return False


_PICKS = node_kinds("Chunk Select Split SplitWithSizes Unbind")
"""Operations that take rows apart by numbers of the program's own, which may come from the data."""
_FOLDS = node_kinds(
    """
    Amax Amin Cumprod Cumsum LinalgVectorNorm LogSoftmax Logcumsumexp Logsumexp Mean MeanBackward1 Median
    MedianBackward1 Norm NormBackward1 Prod ProdBackward1 Softmax Std Sum SumBackward1 Var
    """
)
"""Operations that make one of many; over the examples they couple them, even if a gate stands before it."""


def takes_rows_by_data(graph: Graph, examples: int) -> bool:
    """Whether rows go where the data sends them, so that another batch may arrange or couple its examples otherwise."""
    return any(_by_data(node, examples) for node in graph.order if node not in graph.joins)


def _over_examples(node: Node, examples: int) -> bool:
    """Whether the operation works along an axis, the first or the second, that may be the examples'."""
    child, output = node.next_functions[0]
    if child is None or is_leaf(child):
        return False
    shape = output_shape(child, output)
    dims = getattr(node, "_saved_dim", None)
    axes = [dims] if isinstance(dims, int) else list(dims or ())
    here = {_axis(axis, len(shape)) for axis in axes} or set(range(len(shape)))
    return any(axis < 2 and shape[axis : axis + 1] == (examples,) for axis in here)


def _axis(axis: int, dims: int) -> int:
    """From the end, or as autograd keeps a negative number."""
    axis = axis - 2**64 if axis >= 2**63 else axis
    return axis % dims if dims else 0


def _by_data(node: Node, examples: int) -> bool:
    kind = type(node).__name__
    if kind in ("CheckpointFunctionBackward", "CompiledFunctionBackward"):
        what = "activation checkpointing" if kind.startswith("Checkpoint") else "a compiled function"
        problem = f"hides its parameters' uses from autograd's graph ({what})"
        raise InvalidInput("model", problem, "call the model as it is, without it; micro-batches save memory instead")
    if kind in _BY_DATA:
        return True
    if kind in _FOLDS:
        return _over_examples(node, examples)
    if kind in _PICKS:
        return saved(node, "dim") == 0 and _over_examples(node, examples)
    if kind == "EmbeddingBackward0":  # of activations: a parameter's table would make it a join
        table = node.next_functions[0][0]
        return table is not None and not is_leaf(table)
    if kind == "MmBackward0":  # of two activations, along the examples
        return tuple(saved(node, "self_sym_sizes"))[1:] == (examples,)
    if kind == "IndexBackward0":
        return _index_by_data(node, examples)
    if kind in _BY_DATA_ALONG:
        sizes = output_shape(node, 0)
        axis = _axis(saved(node, "dim"), len(sizes))
        return axis == 0 or (axis == 1 and sizes[1] % examples == 0)
    # A function of the user's own may do anything.
    return isinstance(node, torch.autograd.function.BackwardCFunction)


def _index_by_data(node: Node, examples: int) -> bool:
    """rows[index] is harmless where the first index counts the examples, as in rows[arange(B), length]."""
    indices = list(saved(node, "indices"))
    sizes = list(saved(node, "self_sym_sizes"))
    first = indices[0] if indices else None
    if isinstance(first, Tensor):
        if first.dtype == torch.bool or not first.dim() or len(first) != examples or sizes[0] != examples:
            return True
        counting = torch.arange(examples, device=first.device).view(-1, *(1,) * (first.dim() - 1))
        return not bool((first == counting).all())
    second = indices[1] if len(indices) > 1 else None
    return isinstance(second, Tensor) and sizes[1] % examples == 0
