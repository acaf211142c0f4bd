"""One backward pass, from per-example losses to the examples' gradients in factored form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node

from privet.training.engine.calls import Call
from privet.training.engine.contributions import Contribution, Dense, Outer, combine
from privet.training.engine.coverage import CoveredUses, cover_uses, leaves
from privet.training.engine.functional import again
from privet.training.engine.graph import Graph, ParameterExpression, Use, is_complex, read
from privet.training.engine.incoming_gradient import IncomingGradient
from privet.training.engine.layout import Layout
from privet.training.engine.parameter_expressions import descend, makes_expression, shape_of
from privet.training.engine.probe import ProbeResult, Reader, probe
from privet.training.engine.structure import Sizes, alike, sizes, skeleton, takes_rows_by_data
from privet.training.engine.sweep import Gradients, sweep
from privet.training.rules import RULES, OperationRule

__all__ = ["Engine", "KnownStructure"]


@dataclass
class KnownStructure:
    """A structure of the computation that has been met."""

    examples: int
    sizes: Sizes
    found: ProbeResult | None = None
    """Where its examples lie, once that is certain."""
    probed: int = -1
    """The round in which that was found out, or found again."""


@dataclass
class Engine:
    """Per-example gradients of some parameters, for as many batches as one likes.

    It remembers, for every structure of the computation that it has met, where the examples lie in each tensor; that
    was found out by a probe (see `privet.training.engine.probe`), so a new structure costs two more backward passes.
    """

    parameters: Sequence[Tensor]
    names: Sequence[str]
    rules: Mapping[str, OperationRule] = field(default_factory=lambda: RULES)
    met: dict[tuple[object, ...], list[KnownStructure]] = field(default_factory=dict)
    batched: dict[tuple[int, int], list[bool]] = field(default_factory=dict)
    """Which inputs of modules without rules have rows: see `privet.training.engine.functional.again`."""
    round: int = 0
    """Counts the steps: within one the weights stay, so what was found stays too."""
    reached: bool = True
    """Whether the last losses depend on any of the parameters; gradients that are all zero are another thing."""

    @property
    def due(self) -> bool:
        """Whether to examine the model in this round: the first, second, fourth, …, and until something is known.

        Again, because weights that were zero at first may have hidden what couples the examples.
        """
        known = any(each.found for kind in self.met.values() for each in kind)
        return not known or not self.round & (self.round - 1)

    def gradients(
        self, losses: Tensor, weights: Tensor | None = None, calls: Sequence[Call] = ()
    ) -> list[Contribution | None]:
        """For each parameter its examples' gradients; None where the losses do not depend on it.

        Args:
            losses: one for each example, with their graph, which is used up.
            weights: factors of the losses, in place of ones.
            calls: what modules did on the way, for parameters whose operations have no rule.
        """
        if len(losses) == 1:
            return self._alone(losses, weights)
        numbers = {id(parameter): number for number, parameter in enumerate(self.parameters)}

        def reader(expressions: frozenset[int]) -> tuple[Graph, list[CoveredUses]]:
            graph = read(losses, numbers, makes_expression, expressions)
            return graph, cover_uses(graph, calls, self._has_rule, name_of)

        def name_of(parameter: Tensor) -> str:
            return self.names[numbers[id(parameter)]]

        graph, claims = reader(frozenset())
        self.reached = bool(graph.joins or claims)
        if not self.reached:
            return [None] * len(self.parameters)
        where = self._where(losses, graph, reader, name_of)
        if where.expressions:
            graph, claims = reader(where.expressions)
        layouts = dict(zip(graph.joins, where.layouts, strict=True))
        silent = set() if where.certain else {node for place, node in enumerate(graph.joins) if place in where.silent}
        contributions: list[tuple[ParameterExpression, Contribution]] = []
        often = _used_often(graph, claims)

        def on_gradient(node: Node, gradients: Gradients) -> None:
            if node in silent:
                return
            known = self.rules[type(node).__name__]
            layout = Layout(len(losses), *layouts[node])
            shared: dict[str, Any] = {}
            last: Contribution | None = None
            for use in graph.joins[node]:
                shape = shape_of(use.expression)
                own = known.rule(IncomingGradient(node, use.slot, shape, gradients, layout, shared)).settle()
                if weights is None and not often & {id(leaf) for leaf in leaves(use.expression.node)}:
                    # A layer's bias comes first, and has half of what the norms of its matrix are made of.
                    own = own.with_squares_beside(last) if isinstance(own, Outer) else own.with_squares()
                last = own
                contributions.append((use.expression, own))

        start = torch.ones_like(losses) if weights is None else weights.to(losses)
        edges = [edge for each in claims for edge in each.call.edges]
        others = sweep(losses, start, graph, on_gradient, keep=False, also=edges)
        found: list[list[Contribution]] = [[] for _ in self.parameters]
        with torch.no_grad():
            # Not before: during the sweep autograd answers only for what the sweep needs.
            for expression, contribution in contributions:
                for parameter, share in descend(expression, contribution):
                    if id(parameter) in numbers:
                        found[numbers[id(parameter)]].append(share)
            for each in claims:
                mine, others = others[: len(each.call.edges)], others[len(each.call.edges) :]
                own = dict(each.call.module.named_parameters(recurse=False))
                for name, share in again(each.call, each.names, mine, len(losses), self.batched).items():
                    found[numbers[id(own[name])]].append(share)
            return [combine(parts).settle() if parts else None for parts in found]

    def _where(self, losses: Tensor, graph: Graph, reader: Reader, name_of: Callable[[Tensor], str]) -> ProbeResult:
        """Where the examples are: known from a computation of the same structure, or found out now.

        Where data decides, always now. And again in the rounds in which it is `due`.
        """
        by_data = takes_rows_by_data(graph, len(losses))
        met = self._met(graph, len(losses))
        where = met.found
        if where is None or by_data or (self.due and met.probed < self.round):
            where = probe(losses, reader, name_of)
            met.found, met.probed = where if where.certain else met.found, self.round
        return where

    def _met(self, graph: Graph, examples: int) -> KnownStructure:
        """The record of this structure: a known one's, or a new one."""
        kind, own = self.met.setdefault(skeleton(graph), []), sizes(graph)
        for each in kind:
            if alike(each.sizes, each.examples, own, examples):
                return each
        kind.append(KnownStructure(examples, own))
        return kind[-1]

    def _alone(self, losses: Tensor, weights: Tensor | None) -> list[Contribution | None]:
        """One example needs no rules: its gradient is the ordinary one."""
        start = torch.ones_like(losses) if weights is None else weights.to(losses)
        found = torch.autograd.grad(losses, list(self.parameters), start, allow_unused=True)
        self.reached = any(each is not None for each in found)
        wide = (torch.float32, torch.float64)
        rows = [None if each is None else each.to_dense().reshape(1, -1) for each in found]
        return [None if row is None else Dense(row if row.dtype in wide else row.float()) for row in rows]

    def _has_rule(self, node: Node, use: Use) -> bool:
        known = self.rules.get(type(node).__name__)
        # The rules' formulae are for real numbers; complex ones have conjugates in them.
        return known is not None and use.slot in known.slots and not is_complex(node)


def _used_often(graph: Graph, claims: Sequence[CoveredUses]) -> set[int]:
    """The parameters with several uses, by `id`: the norm of a sum is not known from its terms."""
    once: set[int] = {id(parameter) for each in claims for parameter in each.call.module.parameters(recurse=False)}
    often = set(once)
    for uses in graph.joins.values():
        for use in uses:
            for leaf in leaves(use.expression.node):
                (often if id(leaf) in once else once).add(id(leaf))
    return often
