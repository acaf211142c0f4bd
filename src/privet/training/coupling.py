"""Does one example's output depend on another's input? Gradients do not show it where no parameter comes before.

A model that subtracts the batch's mean from its raw inputs couples the examples although no gradient passes between
them. So, on the first batch, the model is called again with half of the rows exchanged for others: the outputs of the
rows that stayed must stay. Torch's random numbers are the same in both calls, and are put back afterwards.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from privet.core.errors import InvalidInput
from privet.training.engine.calls import Call

__all__ = ["check_forward"]

_TOLERANCE = 1e-5
"""Relative to the row's largest output; rows keep their places, so that hardly anything rounds differently."""
_ENOUGH = 32
"""Rows that are looked at."""


def check_forward(call: Call, examples: int) -> None:
    """Refuse a model whose outputs for some rows change with the other rows.

    A model that does not give the same output twice for the same input (because it takes random numbers from elsewhere)
    cannot be examined so, and is left to the other checks.
    """
    few = min(examples, _ENOUGH)
    kept = few // 2
    if not kept:
        return
    args, kwargs = tree_map(partial(_first, few, examples), (call.args, dict(call.kwargs)))
    first = _outputs(call, args, kwargs)
    if not _same(first, _outputs(call, args, kwargs), few, slice(0, few)):
        return
    for stay in (slice(0, kept), slice(kept, few)):
        others = tree_map(partial(_exchanged, stay, few), (args, kwargs))
        if not _same(first, _outputs(call, *others), few, stay):
            break
    else:
        return
    problem = "gives other outputs for a row when the other rows of the batch change, so that examples are coupled"
    advice = "normalise with fixed or public numbers, or within each example, and not over the batch"
    raise InvalidInput("model", problem, advice)


def _first(few: int, examples: int, leaf: Any) -> Any:
    """The first rows of what has a row for each example."""
    return leaf.detach()[:few] if isinstance(leaf, Tensor) and leaf.dim() and len(leaf) == examples else leaf


def _exchanged(stay: slice, examples: int, leaf: Any) -> Any:
    """The rows in `stay` as they are, and every other one replaced by a copy of the first of them."""
    if not isinstance(leaf, Tensor) or leaf.dim() == 0 or len(leaf) != examples:
        return leaf
    changed = leaf.detach()[stay.start : stay.start + 1].expand_as(leaf).clone()
    changed[stay] = leaf.detach()[stay]
    return changed


@torch.no_grad()
def _outputs(call: Call, args: tuple[Any, ...], kwargs: Any) -> list[Tensor]:
    with torch.random.fork_rng(devices=[]):  # each call begins with the same state, and leaves it as it was
        output = call.module(*args, **kwargs)
    return [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor) and leaf.is_floating_point()]


def _same(first: list[Tensor], second: list[Tensor], examples: int, stay: slice) -> bool:
    """Whether the rows in `stay` agree, in every output that has a row for each example."""
    for one, other in zip(first, second, strict=True):
        if one.dim() == 0 or len(one) != examples:
            continue
        a, b = one[stay].double().flatten(1), other[stay].double().flatten(1)
        size = a.abs().amax(1, keepdim=True) if a.numel() else a
        wide = 1.0 if one.dtype in (torch.float32, torch.float64) else 1e3
        if not bool(((a - b).abs() <= wide * _TOLERANCE * size).logical_or(~a.isfinite() & ~b.isfinite()).all()):
            return False
    return True
