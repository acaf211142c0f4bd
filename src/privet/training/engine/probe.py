"""Finding out, by an experiment, which entries of every tensor belong to which example, and that none belong to two.

Backward passes are linear. Multiply the loss of example i by a power of two c_i: if some entries of a gradient belong
to example i alone, they are multiplied by exactly c_i, without rounding. So a pass with ones, and one for each digit of
the examples' numbers (2^digit), show where each example's entries are; and if no arrangement fits, the examples are
coupled (by `BatchNorm`, by a loss that compares examples), and the computation is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node

from privet.core import InvalidInput
from privet.training.engine.coverage import CoveredUses, leaves
from privet.training.engine.graph import Graph, output_shape
from privet.training.engine.layout import Layout, candidates
from privet.training.engine.structure import is_packed
from privet.training.engine.sweep import Gradients, sweep
from privet.training.rules import EXPRESSION_IF_SHARED

__all__ = ["ProbeResult", "Reader", "probe"]

Reader: TypeAlias = Callable[[frozenset[int]], tuple[Graph, list[CoveredUses]]]

_LEAST = 1e-30
"""Below this, a product with a power of two rounds."""
_DIGITS = 16
_LONG = 3
"""Fewer numbers may count 0, 1, 2, … by accident."""
_TOLERANCE = 1e-5
"""Relative; scaling by powers of two is exact, so only a different order of summation could leave a difference."""


@dataclass(frozen=True)
class ProbeResult:
    """What a probe found for one structure of the computation."""

    expressions: frozenset[int]
    """Nodes, by their place in the walk, whose output is shared by all examples."""
    layouts: tuple[tuple[int, bool], ...]
    """For each join, in order: the examples' axis and whether they are interleaved there."""
    silent: frozenset[int]
    """Joins, by their order, that no gradient reached in the batch of the probe."""
    certain: bool
    """Whether the experiment left no choice; if not, the next batch repeats it."""


def probe(losses: Tensor, reader: Reader, name_of: Callable[[Tensor], str]) -> ProbeResult:
    """Find every join's layout.

    Args:
        losses: one for each example, with their graph, which stays usable.
        reader: from the places of further parameter expressions to the graph, and the calls that stand for uses
            without a rule.
        name_of: a parameter's name, for the error.
    """
    expressions: frozenset[int] = frozenset()
    while True:
        graph, claims = reader(expressions)
        edges = [edge for claim in claims for edge in claim.call.edges]
        ones, outputs = _summaries(losses, torch.ones_like(losses), graph, edges)
        fitting: dict[Node, _Fit] = {}
        for multipliers in _multipliers(losses):
            scaled, scaled_outputs = _summaries(losses, multipliers, graph, edges)
            for pair in zip(outputs, scaled_outputs, strict=True):
                if None not in pair and Layout(len(losses)) not in _layouts(*pair, multipliers).layouts:  # type: ignore[arg-type]
                    raise _coupled([name for claim in claims for name in claim.names], "a module without a rule")
            for node in graph.joins:
                fit = _fitting(ones.get(node, []), scaled.get(node, []), multipliers)
                fitting[node] = fit.also(fitting.get(node, fit))
        fitting = _apart(losses, graph, ones, fitting)
        wrong = [node for node, fit in fitting.items() if not fit.layouts]
        if not wrong:
            chosen = tuple((fit.layouts[0].axis, fit.layouts[0].interleaved) for fit in fitting.values())
            silent = frozenset(place for place, node in enumerate(fitting) if not _sounds(ones.get(node, [])))
            certain = all(len(fit.layouts) == 1 and fit.shown for fit in fitting.values())
            certain = certain and not is_packed(graph, dict(zip(fitting, chosen, strict=True)), len(losses))
            return ProbeResult(expressions, chosen, silent, certain)
        places = {node: place for place, node in enumerate(graph.order)}
        shared = frozenset(places[node] for node in wrong if _may_be_shared(node, len(losses)))
        if not shared:
            owners = [name_of(leaf) for use in graph.joins[wrong[0]] for leaf in leaves(use.expression.node)]
            raise _coupled(owners, type(wrong[0]).__name__)
        expressions |= shared


def _apart(losses: Tensor, graph: Graph, ones: dict[Node, list[Tensor]], fitting: dict[Node, _Fit]) -> dict[Node, _Fit]:
    """The layouts under which no example's entries take part in another's, not even with a factor of zero.

    Every second loss is multiplied by NaN, and 0 · NaN is NaN: so a gate that is still closed shows what is behind it,
    and where the examples are shows even if every gradient is zero.
    """
    odd = torch.arange(len(losses), device=losses.device) % 2 == 1
    marked, _ = _summaries(losses, torch.where(odd, torch.nan, torch.ones_like(losses)), graph, ())
    found = {}
    for node, fit in fitting.items():
        before, after = ones.get(node, []), marked.get(node, [])
        if not before or not after:
            found[node] = fit
            continue
        clean = [layout for layout in fit.layouts if _clean(before[0][0], after[0][0], layout, ~odd)]
        found[node] = _Fit(clean, fit.shown or bool(after[0][0].isnan().any()))
    return found


def _clean(before: Tensor, after: Tensor, layout: Layout, rows: Tensor) -> bool:
    """Whether the given examples' entries are numbers wherever they were before."""
    was, now = layout.split(before)[rows], layout.split(after)[rows]
    return not bool((was.isfinite() & now.isnan()).any())


def _multipliers(losses: Tensor) -> Iterator[Tensor]:
    """Powers of two that tell any two examples apart: the digits of an example's number, one after the other."""
    numbers = torch.arange(len(losses), device=losses.device)
    while True:
        yield torch.exp2((numbers % _DIGITS).to(losses.dtype))
        numbers = numbers // _DIGITS
        if not bool(numbers.any()):
            return


def _summaries(
    losses: Tensor, weights: Tensor, graph: Graph, edges: Sequence[GradientEdge]
) -> tuple[dict[Node, list[Tensor]], list[Tensor | None]]:
    """For each output of each join, and for each of the edges, a summary of its gradient."""
    found: dict[Node, list[Tensor]] = {}

    def on_gradient(node: Node, gradients: Gradients) -> None:
        found[node] = [_summary(each, len(losses)) for each in gradients if each is not None]

    others = sweep(losses, weights, graph, on_gradient, keep=True, also=edges)
    return found, [None if each is None else _summary(each, len(losses)) for each in others]


def _summary(gradient: Tensor, examples: int) -> Tensor:
    """The gradient summed with fixed weights over axes that cannot be the examples'; and its size, to compare with."""
    kept = 2 if gradient.dim() > 1 and gradient.shape[1] % examples == 0 else min(1, gradient.dim())
    flat = gradient.reshape(*gradient.shape[:kept], -1).double()
    # Irrational steps: no structured gradient sums to nothing by accident.
    places = torch.arange(1, flat.shape[-1] + 1, dtype=torch.float64, device=flat.device)
    directions = torch.frac(places * 0.6180339887498949) - 0.25
    return torch.stack([flat @ directions, flat.abs().sum(-1)])


def _fitting(ones: list[Tensor], scaled: list[Tensor], multipliers: Tensor) -> _Fit:
    """The layouts of the first output under which every example's entries were multiplied by that example's number.

    None if for any output there is no such layout.
    """
    fits = [_layouts(*pair, multipliers) for pair in zip(ones, scaled, strict=True)]
    if not fits:
        return _Fit([Layout(len(multipliers))], shown=False)
    return _Fit(fits[0].layouts if all(fit.layouts for fit in fits) else [], all(fit.shown for fit in fits))


def _sounds(summaries: list[Tensor]) -> bool:
    """Whether there is any gradient at all."""
    return any(bool((summary[1] != 0).any()) for summary in summaries)


@dataclass(frozen=True)
class _Fit:
    layouts: list[Layout]
    shown: bool
    """Whether examples with different multipliers had gradients at all, so that something could be seen."""

    def also(self, other: _Fit) -> _Fit:
        """What fits both."""
        return _Fit([each for each in self.layouts if each in other.layouts], self.shown or other.shown)


def _layouts(ones: Tensor, scaled: Tensor, multipliers: Tensor) -> _Fit:
    fitting, shown = [], False
    for layout in candidates(ones.shape[1:], len(multipliers)):
        before, size = (layout.split(contribution) for contribution in ones)
        after = layout.split(scaled[0])
        factor = multipliers.double().view(-1, *(1,) * (before.dim() - 1))
        # Rows that are no numbers say nothing, and must not be a reason to stop.
        known = (before + after + factor * size).isfinite()
        if bool((((after - factor * before).abs() <= _TOLERANCE * factor * size + _LEAST) | ~known).all()):
            seen = multipliers[((size > 0) & known).flatten(1).any(1)]
            shown = shown or (len(seen) > 1 and bool(seen.min() < seen.max()))
            fitting.append(layout)
    return _Fit(fitting, shown)


def _may_be_shared(node: Node, examples: int) -> bool:
    """Whether this operation's output may be one that all examples share, such as a table of positions.

    Copies of a parameter are. Rows looked up are if their number shows that they are not one a batch row, or if they
    are rows 0, 1, 2, … of the table: then they are positions, not data.
    """
    kind = type(node).__name__
    if kind not in EXPRESSION_IF_SHARED:
        return False
    shape = output_shape(node, 0)
    if not EXPRESSION_IF_SHARED[kind]:
        return True
    index = getattr(node, "_saved_indices", None)
    rows = tuple(index.shape) if isinstance(index, Tensor) else shape
    if not any(True for _ in candidates(rows, examples)):
        return True
    if not isinstance(index, Tensor) or not index.dim():
        return False
    return index.shape[-1] >= _LONG and bool((index == torch.arange(index.shape[-1], device=index.device)).all())


def _coupled(owners: Sequence[str], kind: str) -> InvalidInput:
    place = f" (seen at {', '.join(sorted(set(owners)))}, in {kind})" if owners else f" (in {kind})"
    problem = f"do not belong to one example each{place}: the gradient of one loss reaches several examples' rows"
    advice = (
        "compute one loss for each example, from that example alone (reduction='none', no BatchNorm in training mode, "
        "no loss that compares examples), and keep the examples along the first or second axis"
    )
    return InvalidInput("losses", problem, advice)
