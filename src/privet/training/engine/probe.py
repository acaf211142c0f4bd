"""Finding out, by an experiment, which entries of every tensor belong to which example, and that none belong to two.

Backward passes are linear. Multiply the loss of example i by a power of two c_i: if some entries of a gradient belong
to example i alone, they are multiplied by exactly c_i, without rounding. So two passes, one with ones and one with
random c_i, show where each example's entries are; and if no arrangement fits, the examples are coupled (by
`BatchNorm`, by a loss that compares examples), and the computation is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from privet.core.errors import InvalidInput
from privet.training.engine.graph import Graph, read
from privet.training.engine.layout import Layout, candidates
from privet.training.engine.stems import makes_stems
from privet.training.engine.sweep import sweep
from privet.training.rules import STEM_IF_SHARED

if TYPE_CHECKING:
    from torch.autograd.graph import Node

    from privet.core.random import Rng

__all__ = ["Found", "probe"]

_TOLERANCE = 1e-5
"""Relative; scaling by powers of two is exact, so only a different order of summation could leave a difference."""


@dataclass(frozen=True)
class Found:
    """What a probe found for one structure of the computation."""

    stems: frozenset[int]
    """Nodes, by their place in the walk, whose output is shared by all examples."""
    layouts: tuple[tuple[int, bool], ...]
    """For each join, in order: the examples' axis and whether they are interleaved there."""
    certain: bool
    """Whether the experiment left no choice; if not, the next batch repeats it."""


def probe(losses: Tensor, numbers: Mapping[int, int], names: Mapping[int, str], rng: Rng) -> Found:
    """Find every join's layout.

    Args:
        losses: one for each example, with their graph, which stays usable.
        numbers: the trained parameters' numbers by `id`.
        names: their names, for the error, by number.
        rng: for the multipliers.
    """
    multipliers = _multipliers(len(losses), rng).to(losses)
    stems: frozenset[int] = frozenset()
    while True:
        graph = read(losses, numbers, makes_stems, stems)
        ones = _summaries(losses, torch.ones_like(multipliers), graph)
        scaled = _summaries(losses, multipliers, graph)
        fitting = {node: _fitting(ones.get(node), scaled.get(node), multipliers) for node in graph.joins}
        wrong = [node for node, layouts in fitting.items() if not layouts]
        if not wrong:
            chosen = tuple((layouts[0].axis, layouts[0].interleaved) for layouts in fitting.values())
            return Found(stems, chosen, all(len(layouts) == 1 for layouts in fitting.values()))
        places = {node: place for place, node in enumerate(graph.order)}
        shared = frozenset(places[node] for node in wrong if _may_be_shared(node, len(losses)))
        if not shared:
            raise _coupled(wrong[0], graph, numbers, names)
        stems |= shared


def _multipliers(examples: int, rng: Rng) -> Tensor:
    """Random powers of two, not all equal."""
    while True:
        powers = torch.from_numpy(rng.below(4, examples))
        if examples < 2 or int(powers.min()) < int(powers.max()):
            return torch.exp2(powers.to(torch.float32))


def _summaries(losses: Tensor, weights: Tensor, graph: Graph) -> dict[Node, Tensor]:
    """For each join the gradient of its output, summed over all axes but the first two with fixed random weights."""
    found: dict[Node, Tensor] = {}

    def arrive(node: Node, gradient: Tensor) -> None:
        leading = tuple(gradient.shape[: min(2, gradient.dim())])
        flat = gradient.reshape(*leading, -1).double()
        # Irrational steps: no structured gradient sums to nothing by accident.
        directions = torch.frac(torch.arange(1, flat.shape[-1] + 1, dtype=torch.float64) * 0.6180339887498949) - 0.25
        found[node] = torch.stack([flat @ directions, flat.abs().sum(-1)])

    sweep(losses, weights, graph, arrive, keep=True)
    return found


def _fitting(ones: Tensor | None, scaled: Tensor | None, multipliers: Tensor) -> list[Layout]:
    """The layouts under which every example's entries were multiplied by that example's number."""
    if ones is None or scaled is None:
        return [Layout(len(multipliers))]
    fitting = []
    for layout in candidates(ones.shape[1:], len(multipliers)):
        before, size = (layout.split(part) for part in ones)
        after = layout.split(scaled[0])
        factor = multipliers.double().view(-1, *(1,) * (before.dim() - 1))
        if bool(((after - factor * before).abs() <= _TOLERANCE * factor * size).all()):
            fitting.append(layout)
    return fitting


def _may_be_shared(node: Node, examples: int) -> bool:
    """Whether this operation's output may be one that all examples share, such as a table of positions.

    Copies of a parameter are. Rows looked up are if their number shows that they are not one a batch row, or if they
    are rows 0, 1, 2, … of the table: then they are positions, not data.
    """
    kind = type(node).__name__
    if kind not in STEM_IF_SHARED:
        return False
    shape = tuple(node._input_metadata[0].shape)
    if not STEM_IF_SHARED[kind] or not any(True for _ in candidates(shape, examples)):
        return True
    index = getattr(node, "_saved_indices", None)
    if not isinstance(index, Tensor) or not index.dim():
        return False
    counting = torch.arange(index.shape[-1]) + index.flatten()[0]
    return bool((index == counting).all())


def _coupled(node: Node, graph: Graph, numbers: Mapping[int, int], names: Mapping[int, str]) -> InvalidInput:
    leaves = [use.stem.node for use in graph.joins[node]]
    owners = sorted({names[numbers[id(leaf.variable)]] for leaf in leaves if hasattr(leaf, "variable")})
    place = f" (seen at {', '.join(owners)}, in {type(node).__name__})" if owners else f" (in {type(node).__name__})"
    problem = f"do not belong to one example each{place}: the gradient of one loss reaches several examples' rows"
    advice = (
        "compute one loss for each example, from that example alone (reduction='none', no BatchNorm in training mode, "
        "no loss that compares examples), and keep the examples along the first or second axis"
    )
    return InvalidInput("losses", problem, advice)
