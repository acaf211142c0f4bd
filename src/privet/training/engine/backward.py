"""One backward pass, from per-example losses to the examples' gradients in factored form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.autograd.graph import Node

from privet.core.errors import InvalidInput
from privet.core.random import Rng
from privet.training.engine.arrival import Arrival
from privet.training.engine.graph import Graph, Stem, read
from privet.training.engine.layout import Layout
from privet.training.engine.parts import Part, combine
from privet.training.engine.probe import Found, probe
from privet.training.engine.stems import descend, makes_stems, shape_of
from privet.training.engine.sweep import sweep
from privet.training.rules import RULES, Known

__all__ = ["Engine"]


@dataclass
class Engine:
    """Per-example gradients of some parameters, for as many batches as one likes.

    It remembers, for every structure of the computation that it has met, where the examples lie in each tensor; that
    was found out by a probe (see `privet.training.engine.probe`), so a new structure costs two more backward passes.
    """

    parameters: Sequence[Tensor]
    names: Sequence[str]
    rng: Rng
    """For the probe alone."""
    rules: Mapping[str, Known] = field(default_factory=lambda: RULES)
    known: dict[tuple[type, ...], Found] = field(default_factory=dict)

    def gradients(self, losses: Tensor, weights: Tensor | None = None) -> list[Part | None]:
        """For each parameter its examples' gradients; None where the losses do not depend on it.

        Args:
            losses: one for each example, with their graph, which is used up.
            weights: factors of the losses, in place of ones.
        """
        numbers = {id(parameter): number for number, parameter in enumerate(self.parameters)}
        graph = read(losses, numbers, makes_stems, frozenset())
        if not graph.joins:
            return [None] * len(self.parameters)
        where = self._where(graph, losses, numbers)
        if where.stems:
            graph = read(losses, numbers, makes_stems, where.stems)
        self._check(graph, numbers)
        layouts = dict(zip(graph.joins, where.layouts, strict=True))
        arrived: list[tuple[Stem, Part]] = []

        def arrive(node: Node, gradient: Tensor) -> None:
            known = self.rules[type(node).__name__]
            layout = Layout(len(losses), *layouts[node])
            for use in graph.joins[node]:
                part = known.rule(Arrival(node, use.slot, shape_of(use.stem), gradient, layout))
                arrived.append((use.stem, part.settle()))

        start = torch.ones_like(losses) if weights is None else weights.to(losses)
        sweep(losses, start, graph, arrive, keep=False)
        found: list[list[Part]] = [[] for _ in self.parameters]
        with torch.no_grad():
            # Not before: during the sweep autograd answers only for what the sweep needs.
            for stem, part in arrived:
                for parameter, share in descend(stem, part):
                    found[numbers[id(parameter)]].append(share)
            return [combine(parts).settle() if parts else None for parts in found]

    def _where(self, graph: Graph, losses: Tensor, numbers: Mapping[int, int]) -> Found:
        kinds = graph.kinds()
        found = self.known.get(kinds)
        if found is None:
            found = probe(losses, numbers, dict(enumerate(self.names)), self.rng)
            if found.certain and len(losses) > 1:
                self.known[kinds] = found
        return found

    def _check(self, graph: Graph, numbers: Mapping[int, int]) -> None:
        """Refuse what no rule covers, before anything is computed."""
        for node, uses in graph.joins.items():
            kind = type(node).__name__
            for use in uses:
                if kind in self.rules and use.slot in self.rules[kind].slots:
                    continue
                names = sorted({self.names[numbers[id(parameter)]] for parameter in _leaves(use.stem.node)})
                problem = f"is used in {kind} (input {use.slot}), for which there is no rule"
                raise InvalidInput(f"parameter {', '.join(names)}", problem, "freeze it, or give a rule for its layer")


def _leaves(node: Node) -> list[Tensor]:
    if hasattr(node, "variable"):
        return [node.variable]
    return [leaf for child, _ in node.next_functions if child is not None for leaf in _leaves(child)]
