"""Uses of parameters that have no rule, and the module's call that stands for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.autograd.graph import Node

from privet.core import InvalidInput
from privet.training.engine.calls import Call
from privet.training.engine.graph import Graph, Use, is_leaf

__all__ = ["CoveredUses", "cover_uses", "leaves"]


@dataclass(frozen=True, eq=False)
class CoveredUses:
    """A call that is differentiated by itself, for some of its module's own parameters."""

    call: Call
    names: tuple[str, ...]


def cover_uses(
    graph: Graph, calls: Sequence[Call], has_rule: Callable[[Node, Use], bool], name_of: Callable[[Tensor], str]
) -> list[CoveredUses]:
    """Take the uses that have no rule out of the graph's joins, with every other use of the same parameters nearby."""
    homeless = [(node, use) for node, uses in graph.joins.items() for use in uses if not has_rule(node, use)]
    if not homeless:
        return []
    inside = {call: call.inside() for call in calls}
    claimed: dict[Call, set[int]] = {}
    for node, use in homeless:
        for parameter in leaves(use.expression.node):
            claimed.setdefault(_home(node, parameter, use, inside, name_of), set()).add(id(parameter))
    for call in list(claimed):
        around = [other for other in claimed if other is not call and call.edges_nodes() <= inside[other]]
        shared = [other for other in around if claimed[other] & claimed[call]]
        if shared:  # the outer call, made again, makes the inner one again too
            claimed[call] -= set().union(*(claimed[other] for other in shared))
        if not claimed[call]:
            del claimed[call]
    for call in claimed:
        _closed(call, inside[call], graph)
    for call, ours in claimed.items():
        for node in list(graph.joins):
            if node in inside[call]:
                kept = [use for use in graph.joins[node] if not ours & set(map(id, leaves(use.expression.node)))]
                if kept:
                    graph.joins[node] = kept
                else:
                    del graph.joins[node]
    return [
        CoveredUses(call, tuple(name for name, own in call.module.named_parameters(recurse=False) if id(own) in ours))
        for call, ours in claimed.items()
    ]


def _home(
    node: Node, parameter: Tensor, use: Use, inside: Mapping[Call, set[Node]], name_of: Callable[[Tensor], str]
) -> Call:
    """The call in which the use lies, of the module that owns the parameter."""
    for call, nodes in inside.items():
        if node in nodes and any(parameter is own for own in call.module.parameters(recurse=False)):
            return call
    kind = type(node).__name__
    problem = f"is used in {kind} (input {use.slot}), for which there is no rule, outside the module that owns it"
    raise InvalidInput(f"parameter {name_of(parameter)}", problem, "freeze it, or use it inside its own module")


def _closed(call: Call, inside: set[Node], graph: Graph) -> None:
    """Refuse a call of which more is used outside than what it returned."""
    returned = {(edge.node, edge.output_nr) for edge in call.edges}
    for node in graph.order:
        if node not in inside:
            for child, output in node.next_functions:
                if child in inside and not is_leaf(child) and (child, output) not in returned:
                    problem = "has a tensor that is used outside though it was not returned (kept on a module, say)"
                    raise InvalidInput(type(call.module).__name__, problem, "return it, or give a rule")


def leaves(node: Node) -> list[Tensor]:
    """The parameters under a parameter expression."""
    if is_leaf(node):
        return [node.variable]  # type: ignore[attr-defined]
    return [leaf for child, _ in node.next_functions if child is not None for leaf in leaves(child)]
