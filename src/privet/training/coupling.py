"""Does one example's output depend on another's input? Gradients do not show it where no parameter comes before.

A model that subtracts the batch's mean from its raw inputs couples the examples although no gradient passes between
them; so does a loss that divides by a count over the batch. So each is called again with half of the rows exchanged for
others: what it gives for the rows that stayed must stay. Random numbers are the same in both calls, and their
state is put back afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from privet.core import InvalidInput
from privet.training.engine.calls import Call
from privet.training.micro import RowInputs, remember_rows
from privet.training.state import Attributes, alike, restored

__all__ = ["check_collate", "check_forward", "check_losses", "same_randomness", "untouched"]

_TOLERANCE = 1e-5
"""Relative; rows keep their places, so that hardly anything rounds differently."""
_LOOSE = 1e-2
"""The same for fewer rows, where it does; what depends on their number changes by much more."""


def check_forward(
    model: nn.Module, calls: Sequence[Call], examples: int, before: Attributes, known: RowInputs, *, judge: bool = True
) -> None:
    """Refuse a model whose outputs for some rows, or what it keeps, change with the other rows.

    Args:
        model: the whole model.
        calls: those of its modules that no other of its modules made.
        examples: how many rows the batch has.
        before: the model's attributes before the batch.
        known: remembers which inputs of a module have rows, as a batch of a telling size has shown.
        judge: whether to call the model again; else only `known` learns.
    """
    if examples < 2:
        return
    now = Attributes.of(model)
    try:
        for call in calls:
            _check_call(call, model, examples, before, known, judge)
    finally:
        now.put_back()


def _check_call(call: Call, model: nn.Module, examples: int, before: Attributes, known: RowInputs, judge: bool) -> None:
    kept: list[Attributes] = []
    drawn: set[str] = set()

    flat, spec = tree_flatten((call.args, dict(call.kwargs)))
    flat = [leaf.detach() if isinstance(leaf, Tensor) else leaf for leaf in flat]
    with_rows = [any(_has_rows(leaf, axis, examples) for axis in (0, 1)) for leaf in flat]
    with_rows = remember_rows(known, call.module, with_rows, examples)
    if not judge:
        return
    given = [leaf for leaf, here in zip(flat, with_rows, strict=True) if here]
    axes = [axis for axis in (0, 1) if any(_has_rows(leaf, axis, examples) for leaf in given)]

    def outputs(given: list[Tensor]) -> list[Tensor]:
        before.put_back()
        rows = iter(given)
        leaves = [next(rows) if here else leaf for leaf, here in zip(flat, with_rows, strict=True)]
        args, kwargs = tree_unflatten(leaves, spec)
        with same_randomness(drawn), torch.no_grad():
            output = call.module(*args, **kwargs)
        kept.append(Attributes.of(model))
        return [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor) and leaf.is_floating_point()]

    if not axes:
        if call.module is model and any(True for _ in model.parameters()):
            problem = f"was called with nothing that has {examples} rows along its first or second axis"
            advice = "give it the batch as tensors, in tuples, lists or dicts, so that rows can be told from each other"
            raise InvalidInput("model", problem, advice)
        return
    name = f"the model ({type(call.module).__name__})"
    if all(_coupled(outputs, given, examples, axis, name, drawn) for axis in axes):
        problem = "gives other outputs for a row when the other rows of the batch change, so that examples are coupled"
        advice = "normalise with fixed or public numbers, or within each example, and not over the batch"
        raise InvalidInput("model", problem, advice)
    names = sorted({name for other in kept[1:] for name in kept[0].differing(other)})
    if names:
        problem = f"keeps something of the rows that it was given, in {', '.join(names)}; it would leave with the model"
        raise InvalidInput("model", problem, "return it, or do not keep it")


def check_collate(read: Callable[[list[int]], Any], indices: Sequence[int]) -> None:
    """Refuse a `collate_fn` by which a row's tensors change with the other rows."""
    rows = len(indices)
    if rows < 2:
        return
    half = rows // 2

    def made(indices: Sequence[int]) -> list[Tensor]:
        with same_randomness(set()):
            return [leaf for leaf in tree_leaves(read(list(indices))) if isinstance(leaf, Tensor)]

    first = made(indices)
    if not _overlap(first, made(indices), rows, slice(0, rows)):
        return  # rows are read anew each time, by random augmentation say: nothing can be compared
    for stay in (slice(0, half), slice(half, rows)):
        others = [index if stay.start <= at < stay.stop else indices[stay.start] for at, index in enumerate(indices)]
        if not _overlap(first, made(others), rows, stay):
            problem = (
                "gives other numbers for a row when the other rows of the batch change, so that examples are coupled"
            )
            raise InvalidInput("collate_fn", problem, "make each row's tensors from that row alone, but for padding")


def _overlap(first: list[Tensor], second: list[Tensor], rows: int, stay: slice) -> bool:
    """Whether these rows agree where both have them: padding may make one longer."""
    for one, other in zip(first, second, strict=True):
        if one.dim() == 0 or len(one) != rows or len(other) != rows or one.dim() != other.dim():
            continue
        common = tuple(slice(0, min(sizes)) for sizes in zip(one.shape[1:], other.shape[1:], strict=True))
        a, b = one[(stay, *common)], other[(stay, *common)]
        if not bool(((a == b) | ((a != a) & (b != b))).all()):
            return False
    return True


def check_losses(losses_of: Callable[[Any], Tensor], batch: Any, rows: int, model: nn.Module) -> None:
    """Refuse a loss that is not one for each row, or that changes for some rows with the other rows.

    Nothing is released and nothing is changed.
    """

    drawn: set[str] = set()

    def values(batch: Any) -> list[Tensor]:
        with torch.no_grad(), same_randomness(drawn):
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
        if rows > 1 and _coupled(values, batch, rows, 0, "the loss", drawn):
            problem = (
                "gives another value for a row when the other rows of the batch change, so that clipping a row does "
                "not bound what it does (contrastive losses, in-batch negatives; means, counts or weights of a batch)"
            )
            advice = "compute each row's loss from that row alone, and divide by fixed, public numbers"
            raise InvalidInput("loss", problem, advice)


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Put back afterwards what calling a model may change: weights, buffers, attributes, and torch's random numbers.

    Raises where a parameter was changed: in a step that would be refused, too.
    """
    with restored(model) as refusals, torch.random.fork_rng(devices=[]):
        yield
    if refusals:
        raise refusals[0]


@contextmanager
def same_randomness(drawn: set[str]) -> Iterator[None]:
    """Every call begins with the same state of everybody's global random numbers, and leaves it as it was.

    Adds to `drawn` whose were asked for.

    Nothing is drawn here: modules are looked up, if they were imported at all, for models that draw from them.
    """
    ours, numpy, python = (sys.modules.get(name) for name in ("torch.random", "numpy.random", "random"))
    states: dict[str, tuple[Any, Callable[[Any], None], Callable[[], Any]]] = {}
    if ours:
        states["torch"] = (ours.get_rng_state(), ours.set_rng_state, ours.get_rng_state)
    if numpy:
        states["numpy"] = (numpy.get_state(), numpy.set_state, numpy.get_state)
    if python:
        states["python"] = (python.getstate(), python.setstate, python.getstate)
    try:
        yield
    finally:
        for name, (before, put_back, now) in states.items():
            if not alike(now(), before):
                drawn.add(name)
                put_back(before)


def _coupled(
    values: Callable[[Any], list[Tensor]], given: Any, rows: int, axis: int, what: str, drawn: set[str]
) -> bool:
    """Whether what is computed for some rows changes with the other rows."""
    first, kept = values(given), rows // 2
    # Halves that share a row: no two neighboring numbers have a common divisor, so that no chunks of the batch, of
    # whatever size, end where both halves do.
    shared = kept + 1 if rows > 2 else kept
    if not _same(first, values(given), rows, axis, slice(0, rows)):
        problem = f"({what}) gives something else when it is called again on the same rows, so it cannot be examined"
        advice = "take random numbers from torch's, numpy's or Python's global generator, and keep no state"
        raise InvalidInput("model", problem, advice)
    if any(
        not _same(first, values(tree_map(partial(_exchanged, stay, rows, axis), given)), rows, axis, stay)
        for stay in (slice(0, shared), slice(kept, rows))
    ):
        return True
    if drawn:
        return False  # by dropout, say: fewer rows would be given other random numbers
    try:
        few = values(tree_map(partial(_first, kept, rows, axis), given))
    except (RuntimeError, ValueError, TypeError, IndexError):
        return False  # not every model can be asked about fewer rows than it was told of
    return not _same([_first(kept, rows, axis, each) for each in first], few, kept, axis, slice(0, kept), _LOOSE)


def _first(kept: int, rows: int, axis: int, leaf: Any) -> Any:
    """The first rows of what has a row for each example."""
    own = next((each for each in (axis, 0, 1) if _has_rows(leaf, each, rows)), None)
    return leaf if own is None else leaf.narrow(own, 0, kept)


def _has_rows(leaf: Any, axis: int, examples: int) -> bool:
    return isinstance(leaf, Tensor) and leaf.dim() > axis and leaf.shape[axis] == examples


def _exchanged(stay: slice, examples: int, axis: int, leaf: Any) -> Any:
    """The rows in `stay` as they are, and every other one replaced by a copy of the first of them."""
    if not isinstance(leaf, Tensor) or not (_has_rows(leaf, 0, examples) or _has_rows(leaf, axis, examples)):
        return leaf
    own = axis if _has_rows(leaf, axis, examples) else 0
    rows = leaf.detach().movedim(own, 0)
    changed = rows[stay.start : stay.start + 1].expand_as(rows).clone()
    changed[stay] = rows[stay]
    return changed.movedim(0, own)


def _same(
    first: list[Tensor], second: list[Tensor], examples: int, axis: int, stay: slice, tolerance: float = _TOLERANCE
) -> bool:
    """Whether the rows in `stay` agree, in every output that has a row for each example."""
    for one, other in zip(first, second, strict=True):
        own = next((each for each in (axis, 0, 1) if _has_rows(one, each, examples)), None)
        if own is None:
            continue
        if one.shape != other.shape:
            return False
        a, b = (each.movedim(own, 0)[stay].double() for each in (one, other))
        # Of single numbers each may be next to nothing, and then it is rounding alone: all are measured together.
        a, b = (a[None], b[None]) if one.dim() == 1 else (a.flatten(1), b.flatten(1))
        # An entry is measured by itself and by the middle one: one enormous entry (a mask) must not hide the others.
        sizes = a.nan_to_num(0.0, 0.0, 0.0).abs()
        size = torch.maximum(sizes, _middle(sizes)) if a.numel() else a
        wide = 1.0 if one.dtype in (torch.float32, torch.float64) else 1e3
        if not bool(((a - b).abs() <= wide * tolerance * size).logical_or(~a.isfinite() & ~b.isfinite()).all()):
            return False
    return True


def _middle(sizes: Tensor) -> Tensor:
    """The median of each row's entries that are not zero, or zero."""
    marked = torch.where(sizes > 0, sizes, torch.nan)
    return marked.nanmedian(1, keepdim=True).values.nan_to_num(0.0)
