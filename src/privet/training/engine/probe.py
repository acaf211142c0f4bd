"""Finding out, by an experiment, which entries of every tensor belong to which example, and that none belong to two.

Backward passes are linear. Multiply the loss of example i by a power of two c_i: if some entries of a gradient belong
to example i alone, they are multiplied by exactly c_i, without rounding. So two passes, one with ones and one with
random c_i, show where each example's entries are; and if no arrangement fits, the examples are coupled (by
`BatchNorm`, by a loss that compares examples), and the computation is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node

from privet.core.errors import InvalidInput
from privet.core.random import Rng
from privet.training.engine.claims import Claim, leaves
from privet.training.engine.graph import Graph, output_shape
from privet.training.engine.layout import Layout, candidates
from privet.training.engine.sweep import Gradients, sweep
from privet.training.rules import STEM_IF_SHARED

__all__ = ["Found", "Reader", "probe"]

Reader: TypeAlias = Callable[[frozenset[int]], tuple[Graph, list[Claim]]]

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


def probe(losses: Tensor, reader: Reader, name_of: Callable[[Tensor], str], rng: Rng) -> Found:
    """Find every join's layout.

    Args:
        losses: one for each example, with their graph, which stays usable.
        reader: from the places of further stems to the graph and the calls that stand for uses without a rule.
        name_of: a parameter's name, for the error.
        rng: for the multipliers.
    """
    multipliers = _multipliers(len(losses), rng).to(losses)
    stems: frozenset[int] = frozenset()
    while True:
        graph, claims = reader(stems)
        edges = [edge for claim in claims for edge in claim.call.edges]
        ones, outputs = _summaries(losses, torch.ones_like(multipliers), graph, edges)
        scaled, scaled_outputs = _summaries(losses, multipliers, graph, edges)
        for pair in zip(outputs, scaled_outputs, strict=True):
            if None not in pair and Layout(len(losses)) not in _layouts(*pair, multipliers):  # type: ignore[arg-type]
                raise _coupled([name for claim in claims for name in claim.names], "a module without a rule")
        fitting = {node: _fitting(ones.get(node, []), scaled.get(node, []), multipliers) for node in graph.joins}
        wrong = [node for node, layouts in fitting.items() if not layouts]
        if not wrong:
            chosen = tuple((layouts[0].axis, layouts[0].interleaved) for layouts in fitting.values())
            return Found(stems, chosen, all(len(layouts) == 1 for layouts in fitting.values()))
        places = {node: place for place, node in enumerate(graph.order)}
        shared = frozenset(places[node] for node in wrong if _may_be_shared(node, len(losses)))
        if not shared:
            owners = [name_of(leaf) for use in graph.joins[wrong[0]] for leaf in leaves(use.stem.node)]
            raise _coupled(owners, type(wrong[0]).__name__)
        stems |= shared


def _multipliers(examples: int, rng: Rng) -> Tensor:
    """Random powers of two, not all equal."""
    while True:
        powers = torch.from_numpy(rng.below(4, examples))
        if examples < 2 or int(powers.min()) < int(powers.max()):
            return torch.exp2(powers.to(torch.float32))


def _summaries(
    losses: Tensor, weights: Tensor, graph: Graph, edges: Sequence[GradientEdge]
) -> tuple[dict[Node, list[Tensor]], list[Tensor | None]]:
    """For each output of each join, and for each of the edges, a summary of its gradient."""
    found: dict[Node, list[Tensor]] = {}

    def arrive(node: Node, gradients: Gradients) -> None:
        found[node] = [_summary(each) for each in gradients if each is not None]

    others = sweep(losses, weights, graph, arrive, keep=True, also=edges)
    return found, [None if each is None else _summary(each) for each in others]


def _summary(gradient: Tensor) -> Tensor:
    """The gradient summed over all axes but the first two, with fixed weights; and its sizes, to compare with."""
    flat = gradient.reshape(*gradient.shape[: min(2, gradient.dim())], -1).double()
    # Irrational steps: no structured gradient sums to nothing by accident.
    directions = torch.frac(torch.arange(1, flat.shape[-1] + 1, dtype=torch.float64) * 0.6180339887498949) - 0.25
    return torch.stack([flat @ directions, flat.abs().sum(-1)])


def _fitting(ones: list[Tensor], scaled: list[Tensor], multipliers: Tensor) -> list[Layout]:
    """The layouts of the first output under which every example's entries were multiplied by that example's number.

    None if for any output there is no such layout.
    """
    if not ones:
        return [Layout(len(multipliers))]
    fitting = [_layouts(*pair, multipliers) for pair in zip(ones, scaled, strict=True)]
    return fitting[0] if all(fitting) else []


def _layouts(ones: Tensor, scaled: Tensor, multipliers: Tensor) -> list[Layout]:
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
    shape = output_shape(node, 0)
    if not STEM_IF_SHARED[kind] or not any(True for _ in candidates(shape, examples)):
        return True
    index = getattr(node, "_saved_indices", None)
    if not isinstance(index, Tensor) or not index.dim():
        return False
    counting = torch.arange(index.shape[-1]) + index.flatten()[0]
    return bool((index == counting).all())


def _coupled(owners: Sequence[str], kind: str) -> InvalidInput:
    place = f" (seen at {', '.join(sorted(set(owners)))}, in {kind})" if owners else f" (in {kind})"
    problem = f"do not belong to one example each{place}: the gradient of one loss reaches several examples' rows"
    advice = (
        "compute one loss for each example, from that example alone (reduction='none', no BatchNorm in training mode, "
        "no loss that compares examples), and keep the examples along the first or second axis"
    )
    return InvalidInput("losses", problem, advice)
