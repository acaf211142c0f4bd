"""From the gradient of a parameter expression to the gradients of the parameters that it is made of."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.graph import Node

from privet.training.engine.contributions import Contribution, Dense, Outer
from privet.training.engine.graph import ParameterExpression, is_leaf, node_kinds, output_shape, outputs_of, saved

__all__ = ["descend", "makes_expression", "shape_of"]

_SAME = node_kinds("Alias Clone ToCopy")
_RESHAPES = node_kinds("ReshapeAlias Squeeze SqueezeBackward1 SqueezeBackward2 UnsafeView Unsqueeze View")
_OTHERS = node_kinds(
    """
    Abs Add Addmm Bmm Cat Clamp ClampBackward1 Div Exp Gelu LinalgVectorNorm Log Mean MeanBackward1 Mm Mul Neg
    Permute Pow PowBackward1 Reciprocal Relu Rsqrt Select Sigmoid Silu Slice Softmax Softplus Split SplitWithSizes
    Sqrt Stack Std Sub Sum SumBackward1 T Tanh Transpose Unbind Var WeightNormInterface
    """
)
"""Operations all of whose tensors are inputs of the graph: fed with parameters alone, nothing else is in them."""
_ELEMENTWISE = node_kinds("Add Div Mul RsubBackward1 Sub")
_KINDS = _SAME | _RESHAPES | _OTHERS


def makes_expression(node: Node, alone: bool) -> bool:
    """Whether a node that is fed with parameters, `alone` or with constants, gives a function of parameters alone.

    A parameter that meets the rows of a batch is broadcast over them, so that its shape changes. Where it is added to
    or multiplied by something and keeps its shape, as in `1 + weight`, that was a constant.
    """
    kind = type(node).__name__
    if alone and kind in _KINDS:
        return True
    if kind not in _ELEMENTWISE:
        return False
    shape = output_shape(node, 0)
    return all(
        child is None or shape_of(ParameterExpression(child, output)) == shape for child, output in node.next_functions
    )


def shape_of(expression: ParameterExpression) -> tuple[int, ...]:
    """The shape of the expression's value."""
    if is_leaf(expression.node):
        return tuple(expression.node.variable.shape)  # type: ignore[attr-defined]
    return output_shape(expression.node, expression.output)


def descend(expression: ParameterExpression, contribution: Contribution) -> Iterator[tuple[Tensor, Contribution]]:
    """Yield every parameter in the expression, with its share of the examples' gradients.

    An expression's derivative is the same linear map for all examples. Reshaping and transposing keep the factors;
    anything else is applied to the written-out gradients by autograd's own nodes, mapped over the examples.
    """
    node = expression.node
    if is_leaf(node):
        yield node.variable, contribution  # type: ignore[attr-defined]
        return
    kind = type(node).__name__
    if kind in _SAME or kind in _RESHAPES:
        yield from _under(node, 0, contribution)
    elif isinstance(contribution, Outer) and (short := _factored(kind, expression, contribution)) is not None:
        yield from _under(node, 0, short)
    else:
        for slot, gradient in enumerate(_mapped(expression, contribution.dense())):
            if gradient is not None and node.next_functions[slot][0] is not None:
                yield from _under(node, slot, Dense(gradient.reshape(len(gradient), -1)))


def _under(node: Node, slot: int, contribution: Contribution) -> Iterator[tuple[Tensor, Contribution]]:
    child, output = node.next_functions[slot]
    if child is not None:
        yield from descend(ParameterExpression(child, output), contribution)


def _factored(kind: str, expression: ParameterExpression, contribution: Outer) -> Outer | None:
    """The factors of a transposed matrix, or of one whose first rows are a part of a larger one's."""
    matrix = (contribution.left.shape[2], contribution.right.shape[2])
    if shape_of(expression) != matrix:
        return None
    if kind == "TBackward0":
        return contribution.transposed()
    if kind == "SplitWithSizesBackward0" and saved(expression.node, "dim") in (0, 2**64 - 2):
        sizes = saved(expression.node, "split_sizes")
        before, after = sum(sizes[: expression.output]), sum(sizes[expression.output + 1 :])
        return Outer(F.pad(contribution.left, (before, after)), contribution.right, known=contribution.known)
    return None


def _mapped(expression: ParameterExpression, gradient: Tensor) -> tuple[Tensor | None, ...]:
    """The node's own derivative, for the gradient of each example."""
    rows = gradient.reshape(len(gradient), *shape_of(expression))
    others = outputs_of(expression.node)

    def derivative(row: Tensor) -> tuple[Tensor | None, ...]:
        asked = [row if output == expression.output else None for output in range(others)]
        answer = expression.node(*asked)  # type: ignore[operator]
        return answer if isinstance(answer, tuple) else (answer,)

    if not len(rows):
        probe = derivative(rows.new_zeros(shape_of(expression)))
        return tuple(None if answer is None else answer.new_zeros(0, *answer.shape) for answer in probe)
    first = derivative(rows[0])
    wanted = [slot for slot, answer in enumerate(first) if answer is not None]
    with warnings.catch_warnings():
        # torch warns of operations that it maps one by one, which is what is wanted.
        warnings.filterwarnings("ignore", message="There is a performance drop", category=UserWarning)
        answers = torch.func.vmap(lambda row: tuple(derivative(row)[slot] for slot in wanted))(rows)
    found: list[Tensor | None] = [None] * len(first)
    for slot, answer in zip(wanted, answers, strict=True):
        if answer is not None:
            found[slot] = _summed(answer, expression.node.next_functions[slot])
    return tuple(found)


def _summed(gradient: Tensor, edge: tuple[Node | None, int]) -> Tensor:
    """A node leaves it to autograd's engine to sum over what its input was broadcast to; here there is no engine."""
    child, output = edge
    if child is None:
        return gradient
    shape = shape_of(ParameterExpression(child, output))
    gradient = (
        gradient.flatten(1, gradient.dim() - len(shape) - 1).sum(1) if gradient.dim() > len(shape) + 1 else gradient
    )
    wide = [place + 1 for place, size in enumerate(shape) if size == 1 and gradient.shape[place + 1] != 1]
    return gradient.sum(wide, keepdim=True) if wide else gradient
