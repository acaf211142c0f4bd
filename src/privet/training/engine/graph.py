"""Where parameters enter a computation, read off autograd's graph.

Every use of a parameter is an edge of that graph, whoever made it: a layer, a function called with another layer's
weight, a bare parameter. So nothing is missed, and no module has to be wrapped or hooked. A *parameter expression* is
computed from parameters alone (a transpose, a slice, a normalized weight); a *join* is the operation in which a
parameter expression meets data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from operator import or_
from typing import Any, NamedTuple

from torch import Tensor
from torch.autograd.graph import GradientEdge, Node

from privet.core import NotProven

__all__ = [
    "Graph",
    "ParameterExpression",
    "Use",
    "is_complex",
    "is_leaf",
    "node_kinds",
    "output_shape",
    "outputs_of",
    "read",
    "saved",
]


class ParameterExpression(NamedTuple):
    """An output of a node that depends on parameters and on nothing else."""

    node: Node
    output: int


class Use(NamedTuple):
    """A parameter expression that enters a join as its input number `slot`."""

    slot: int
    expression: ParameterExpression


@dataclass
class Graph:
    """What `read` found between the losses and the parameters."""

    order: list[Node] = field(default_factory=list)
    """Every node, in the order of the walk, which is the same for two graphs of the same structure."""
    joins: dict[Node, list[Use]] = field(default_factory=dict)
    first: list[GradientEdge] = field(default_factory=list)
    """The joins below which there is no other: what a backward pass must reach."""

    def kinds(self) -> tuple[type, ...]:
        """The types of all nodes: the structure of the computation."""
        return tuple(map(type, self.order))


def node_kinds(names: str) -> frozenset[str]:
    """Return autograd's class names of operations: those of the words, which may leave out the ending "Backward0".

    >>> sorted(node_kinds("Add SumBackward1"))
    ['AddBackward0', 'SumBackward1']
    """
    return frozenset(name if "Backward" in name else f"{name}Backward0" for name in names.split())


def is_leaf(node: Node) -> bool:
    """Whether this is where autograd would add up a leaf's gradient."""
    return type(node).__name__ == "AccumulateGrad"


def saved(node: Node, name: str) -> Any:
    """What autograd kept for the node's own derivative; a torch that names it otherwise is refused, not guessed at."""
    try:
        value = getattr(node, f"_saved_{name}")
    except AttributeError:
        problem = f"keeps no {name!r} for {type(node).__name__}, which the rules were written for"
        raise NotProven(f"this version of torch {problem}; use a version that Privet was tested with") from None
    return value.detach() if isinstance(value, Tensor) else value


def outputs_of(node: Node) -> int:
    """How many outputs the node's operation has."""
    return len(node._input_metadata)  # noqa: SLF001 (torch has no public name for it)


def output_shape(node: Node, output: int) -> tuple[int, ...]:
    """The shape of one of them."""
    return tuple(node._input_metadata[output].shape)  # noqa: SLF001


def is_complex(node: Node) -> bool:
    """Whether any of them holds complex numbers."""
    return any(each.dtype.is_complex for each in node._input_metadata)  # noqa: SLF001


def read(
    losses: Tensor, parameters: Mapping[int, int], makes_stems: Callable[[Node, bool], bool], also: Set[int]
) -> Graph:
    """Walk the graph from the losses.

    Args:
        losses: one number for each example.
        parameters: the number of each trained parameter, by `id(parameter)`.
        makes_stems: whether a node's output is a parameter expression, given that an input is one and whether all are.
        also: nodes, by their place in `Graph.order`, that make parameter expressions although they are of another kind.
    """
    graph = Graph()
    if losses.grad_fn is None:
        return graph
    graph.order = _children_first(losses.grad_fn)
    expressions: set[Node] = set()
    outputs: dict[Node, set[int]] = {losses.grad_fn: {losses.output_nr}}
    above: set[Node] = set()  # nodes with a join strictly below them
    for place, node in enumerate(graph.order):
        if is_leaf(node):
            if id(node.variable) in parameters:  # type: ignore[attr-defined]
                expressions.add(node)
            continue
        inputs = node.next_functions
        joined = [child is not None and child in expressions for child, _ in inputs]
        if any(joined):
            # A leaf that is not trained is a constant, too, though autograd would give it a gradient.
            constant = [child is None or (is_leaf(child) and child not in expressions) for child, _ in inputs]
            if all(map(or_, joined, constant)) and (makes_stems(node, all(joined)) or place in also):
                expressions.add(node)
                continue
            graph.joins[node] = [
                Use(slot, ParameterExpression(child, output))
                for slot, (child, output) in enumerate(inputs)
                if child in expressions
            ]
        for child, output in inputs:
            if child is not None and child not in expressions:
                outputs.setdefault(child, set()).add(output)
                if child in graph.joins or child in above:
                    above.add(node)
    lowest = [node for node in graph.joins if node not in above]
    graph.first = [GradientEdge(node, output) for node in lowest for output in sorted(outputs.get(node, ()))]
    return graph


def _children_first(root: Node) -> list[Node]:
    """Every node, each after all that it leads to; without recursion, since graphs are deeper than Python's stack."""
    order: list[Node] = []
    seen = {root}
    stack = [(root, iter(root.next_functions))]
    while stack:
        node, children = stack[-1]
        for child, _ in children:
            if child is not None and child not in seen:
                seen.add(child)
                stack.append((child, iter(child.next_functions)))
                break
        else:
            order.append(node)
            stack.pop()
    return order
