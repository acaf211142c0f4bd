"""A backward pass that stops where parameters would begin: autograd computes no weight gradient of its own."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd.graph import Node

from privet.training.engine.graph import Graph

__all__ = ["sweep"]


def sweep(
    losses: Tensor, weights: Tensor, graph: Graph, arrive: Callable[[Node, Tensor], None], *, keep: bool
) -> None:
    """Call `arrive(join, gradient of its output)` for every join that the gradient reaches.

    Autograd runs only what leads to the lowest joins, whose gradients it returns; the others are met on the way.
    `keep` leaves the graph usable for another pass.
    """
    lowest = {edge.node for edge in graph.first}

    def met(node: Node) -> Callable[[tuple[Tensor | None, ...]], None]:
        def hook(gradients: tuple[Tensor | None, ...]) -> None:
            if gradients[0] is not None:
                with torch.no_grad():
                    arrive(node, gradients[0].detach())

        return hook

    handles = [node.register_prehook(met(node)) for node in graph.joins if node not in lowest]
    try:
        found = torch.autograd.grad(losses, graph.first, weights, retain_graph=keep, allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
    for edge, gradient in zip(graph.first, found, strict=True):
        if gradient is not None and edge.output_nr == 0:
            with torch.no_grad():
                arrive(edge.node, gradient.detach())
