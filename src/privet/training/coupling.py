"""Does one example's output depend on another's input? Gradients do not show it where no parameter comes before.

A model that subtracts the batch's mean from its raw inputs couples the examples although no gradient passes between
them; so does a loss that divides by a count over the batch. So each is called again with half of the rows exchanged for
others: what it gives for the rows that stayed must stay. Torch's random numbers are the same in both calls, and are put
back afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from privet.core.errors import InvalidInput
from privet.training.engine.calls import Call

__all__ = ["check_forward", "check_losses", "untouched"]

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
    if few < 2:
        return
    given = tree_map(partial(_first, few, examples), (call.args, dict(call.kwargs)))
    if _coupled(lambda given: _outputs(call, *given), given, few):
        problem = "gives other outputs for a row when the other rows of the batch change, so that examples are coupled"
        advice = "normalise with fixed or public numbers, or within each example, and not over the batch"
        raise InvalidInput("model", problem, advice)


def check_losses(losses_of: Callable[[Any], Tensor], batch: Any, rows: int, model: nn.Module) -> None:
    """Refuse a loss that is not one for each row, or that changes for some rows with the other rows.

    Nothing is released and nothing is changed; as with the model, a loss that differs from call to call is left to the
    other checks.
    """

    def values(batch: Any) -> list[Tensor]:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            return [losses_of(batch)]

    with untouched(model):
        (losses,) = values(batch)
        if not isinstance(losses, Tensor) or losses.shape != (rows,):
            shape = tuple(losses.shape) if isinstance(losses, Tensor) else f"a {type(losses).__name__}"
            problem = (
                f"gives {shape} for {rows} rows, and one number for each of them is needed, to be clipped by itself"
            )
            advice = "use reduction='none'; for a loss per token or pixel, average over each example's own"
            raise InvalidInput("loss", problem, advice)
        if rows > 1 and _coupled(values, batch, rows):
            problem = (
                "gives another value for a row when the other rows of the batch change, so that clipping a row does "
                "not bound what it does (contrastive losses, in-batch negatives; means, counts or weights of a batch)"
            )
            advice = "compute each row's loss from that row alone, and divide by fixed, public numbers"
            raise InvalidInput("loss", problem, advice)


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Put back afterwards what calling a model may change: its buffers, and torch's random numbers."""
    before = [
        (module, name, buffer, buffer.clone())
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
    ]
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        with torch.no_grad():
            for module, name, buffer, value in before:
                setattr(module, name, buffer)
                if not torch.equal(buffer, value):
                    buffer.copy_(value)


def _coupled(values: Callable[[Any], list[Tensor]], given: Any, rows: int) -> bool:
    """Whether what is computed for some rows changes with the other rows; no if it changes by itself."""
    first, kept = values(given), rows // 2
    if not _same(first, values(given), rows, slice(0, rows)):
        return False
    return any(
        not _same(first, values(tree_map(partial(_exchanged, stay, rows), given)), rows, stay)
        for stay in (slice(0, kept), slice(kept, rows))
    )


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
        a, b = one[stay].double(), other[stay].double()
        # Of single numbers each may be next to nothing, and then it is rounding alone: the largest is their measure.
        a, b = (a[None], b[None]) if one.dim() == 1 else (a.flatten(1), b.flatten(1))
        size = a.nan_to_num(0.0, 0.0, 0.0).abs().amax(1, keepdim=True) if a.numel() else a
        wide = 1.0 if one.dtype in (torch.float32, torch.float64) else 1e3
        if not bool(((a - b).abs() <= wide * _TOLERANCE * size).logical_or(~a.isfinite() & ~b.isfinite()).all()):
            return False
    return True
