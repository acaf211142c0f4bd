"""Calls of modules whose parameters may need `torch.func`: what went in, what came out.

Nothing is attached to the user's modules: torch's process-wide hook is there from a batch to its step, and then gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, Node
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten
from torch.utils.hooks import RemovableHandle

from privet.core import InvalidInput

__all__ = ["Call", "Calls"]

_COVERED: tuple[type[nn.Module], ...] = (
    nn.Linear,
    _ConvNd,
    nn.Embedding,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
    nn.BatchNorm1d,
    nn.BatchNorm2d,
    nn.BatchNorm3d,
    nn.InstanceNorm1d,
    nn.InstanceNorm2d,
    nn.InstanceNorm3d,
    nn.PReLU,
    nn.MultiheadAttention,
    nn.RNNBase,
    nn.RNNCellBase,
)
"""torch's own modules, every use of whose parameters has a rule."""


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a module in the forward pass."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    places: tuple[int, ...]
    """Which leaves of what it returned carry gradients."""
    outputs: tuple[Tensor, ...]
    """Those leaves."""
    edges: tuple[GradientEdge, ...]
    """Where each of them stands in the graph, even if it is changed in place later."""
    entry: frozenset[Node]
    """The nodes that made the inputs."""
    outermost: bool = False
    """Whether no other module of the model was at work around it."""

    def edges_nodes(self) -> set[Node]:
        """The nodes that made what was returned."""
        return {edge.node for edge in self.edges}

    def inside(self) -> set[Node]:
        """Every node that the call added to the graph."""
        found: set[Node] = set()
        stack = [edge.node for edge in self.edges]
        while stack:
            node = stack.pop()
            if node not in found and node not in self.entry:
                found.add(node)
                stack.extend(child for child, _ in node.next_functions if child is not None)
        return found


@dataclass
class Calls:
    """Records calls between `open` and `close`."""

    watched: dict[int, nn.Module]
    """By `id`, the modules that own parameters and are not covered by the rules."""
    found: list[Call] = field(default_factory=list)
    modules: frozenset[int] = frozenset()
    """By `id`, all modules of the model."""
    examining: bool = True
    """Whether to record the outermost calls of any of them besides."""
    _handles: list[RemovableHandle] = field(default_factory=list)
    _depth: int = 0

    @staticmethod
    def of(model: nn.Module, parameters: Sequence[Tensor]) -> Calls:
        """For the modules of a model that own some of these parameters directly."""
        ours = {id(parameter) for parameter in parameters}
        watched = {
            id(module): module
            for module in model.modules()
            if type(module) not in _COVERED_EXACTLY
            and any(id(parameter) in ours for parameter in module.parameters(recurse=False))
        }
        return Calls(watched, modules=frozenset(id(module) for module in model.modules()))

    def open(self) -> None:
        """Start recording, unless there is nothing to watch."""
        self.close()
        self._depth = 0
        if self.watched or self.examining:
            self._handles.append(register_module_forward_hook(self._record, with_kwargs=True))
        if self.examining:
            self._handles.append(register_module_forward_pre_hook(self._enter))

    def close(self) -> None:
        """Stop recording and forget."""
        while self._handles:
            self._handles.pop().remove()
        self.found = []

    def _enter(self, module: nn.Module, _args: Any) -> None:
        self._depth += id(module) in self.modules

    def _record(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        if self.examining and torch._C._autograd._top_saved_tensors_default_hooks(False) is not None:  # noqa: SLF001
            problem = "computes activations again or moves them away (activation checkpointing, saved-tensor hooks)"
            raise InvalidInput("model", problem, "switch that off; micro-batches save memory instead")
        if self.examining and id(module) in self.modules:
            self._depth -= 1
        outermost = self.examining and not self._depth and id(module) in self.modules
        if (id(module) not in self.watched and not outermost) or not torch.is_grad_enabled():
            return None
        leaves, spec = tree_flatten(output)
        places = tuple(
            place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.grad_fn is not None
        )
        if len(places) > 1 and id(module) in self.watched:
            # One output may be made of another: copies get the gradients that come from outside the call, and no more.
            for place in places:
                leaves[place] = leaves[place].clone()
            output = tree_unflatten(leaves, spec)
        outputs = tuple(leaves[place] for place in places)
        edges = tuple(torch.autograd.graph.get_gradient_edge(each) for each in outputs)
        entry = frozenset(leaf.grad_fn for leaf in _tensors((args, kwargs)) if leaf.grad_fn is not None)
        self.found.append(Call(module, args, kwargs, places, outputs, edges, entry, outermost))
        return output


def _tensors(value: Any) -> Iterator[Tensor]:
    return (leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor))


def _covered() -> frozenset[type[nn.Module]]:
    """The classes themselves and torch's own subclasses; a user's subclass may do anything."""
    found: set[type[nn.Module]] = set()
    stack = list(_COVERED)
    while stack:
        kind = stack.pop()
        if kind.__module__.startswith("torch.nn.") and kind not in found:
            found.add(kind)
            stack.extend(kind.__subclasses__())
    return frozenset(found)


_COVERED_EXACTLY = _covered()
