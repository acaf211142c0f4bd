"""A backward pass that stops where parameters would begin: autograd computes no weight gradient of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node

from privet.training.engine.graph import Graph, outputs_of

__all__ = ["Gradients", "OnGradient", "sweep"]

Gradients: TypeAlias = tuple[Tensor | None, ...]
"""The gradient of each output of an operation; None where nothing depends on that output."""
OnGradient: TypeAlias = Callable[[Node, Gradients], None]


def sweep(
    losses: Tensor,
    weights: Tensor,
    graph: Graph,
    on_gradient: OnGradient,
    *,
    keep: bool,
    also: Sequence[GradientEdge] = (),
) -> Gradients:
    """Call `on_gradient(join, gradients of its outputs)` for every join that the gradient reaches.

    Autograd runs only what leads to the lowest joins, whose gradients it returns; the others are met on the way.
    `keep` leaves the graph usable for another pass. Returns the gradients of the edges in `also`.
    """
    lowest: dict[Node, list[Tensor | None]] = {}
    for edge in graph.first:
        lowest.setdefault(edge.node, [None] * outputs_of(edge.node))

    seen: set[Node] = set()

    def met(node: Node) -> Callable[[Gradients], None]:
        def hook(gradients: Gradients) -> None:
            seen.add(node)
            if any(each is not None for each in gradients):
                with torch.no_grad():
                    on_gradient(node, tuple(None if each is None else each.detach() for each in gradients))

        return hook

    handles = [node.register_prehook(met(node)) for node in graph.joins if node not in lowest]
    try:
        asked = [*graph.first, *also]
        found = torch.autograd.grad(losses, asked, weights, retain_graph=keep, allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
    for edge, gradient in zip(graph.first, found, strict=False):
        lowest[edge.node][edge.output_nr] = gradient
    others = found[len(graph.first) :]
    del found
    for node, gradients in lowest.items():
        if node in graph.joins:
            met(node)(tuple(gradients))
    if len(seen) < len(graph.joins):
        raise RuntimeError("autograd did not reach every use of a parameter; nothing was released")
    return others
