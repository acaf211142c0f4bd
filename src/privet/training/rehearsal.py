"""Passes of a training loop on exchanged rows, which show whether a row's loss depends on the other rows.

A run is given losses, and not the code that computes them. But it hands out the batches, so it can run the loop's body
again: on the same rows, with one half of them exchanged, then the other, then with the first half alone. Random numbers
are the same each time. The losses of the rows that stayed must stay. So mixup, `(B, 1) − (B,)`, inputs normalized by
their batch and losses divided by its size are found, although none of them leaves a trace in the gradients. Nothing is
added to the sum in such a pass, and the model's parameters, buffers, attributes, modes and the random numbers are
restored. A pass that writes into a parameter is refused, as it would be in a step.

Where a graph leads from the losses to the parameters, the gradient of the staying rows' losses is compared, too: a
factor that is taken out of the value again, as in `w * l + ((1 - w) * l).detach()`, or a hook that scales gradients by
something of the batch, shows in it alone.

The exchanged places hold copies of one row, so that where nothing is drawn at random their losses must be that row's.
Losses of other rows than those that were drawn, or with other rows' targets, are found by that.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from privet.core import InvalidInput
from privet.training.coupling import same_randomness
from privet.training.micro import Micro
from privet.training.state import modes_restored, restored

__all__ = ["REHEARSED", "Rehearsal", "rehearse"]

REHEARSED = 32
"""The most rows of a batch that a rehearsal takes: enough to show what couples them, and few beside the batch."""

_TOLERANCE = 1e-4
"""Relative to the larger of the loss and the median loss, where every tensor has the shape it had."""
_LOOSE = 5e-2
"""The same where shapes differ (fewer rows, other padding), so that sums round differently, in bfloat16 too."""
_GRADIENT = 1e-2
"""Relative to the whole gradient; sums of several rows' gradients may cancel, so that less of them is exact."""
_PROPORTION = 1e-3
"""How exactly losses follow the number of rows if they were divided by it."""


class _Outcome(NamedTuple):
    """The losses of a pass, and the shapes of what it was given."""

    losses: Tensor
    shapes: tuple[tuple[int, ...], ...]
    leaves: tuple[Tensor, ...]
    """The tensors of the batch that have one entry for each row."""
    norms: tuple[Tensor | None, ...]
    """For each set of rows that stay somewhere: the norms of their losses' gradient, one for each parameter."""


class Rehearsal:
    """The rehearsal of one piece of a batch: `begin` hands out the rows of a pass, and `take` gets their losses."""

    def __init__(self, model: nn.Module, micro: Micro) -> None:
        self._model, self._whole = model, micro
        self.micro = micro
        """The rows of the current pass."""
        self.waits = False
        """Whether the current pass has no losses yet."""
        self._passes = self._all()
        self._during = ExitStack()
        self._shapes: tuple[tuple[int, ...], ...] = ()
        self._leaves: tuple[Tensor, ...] = ()
        self._refusals: list[InvalidInput] = []
        self.rates: list[list[Any]] = []
        """The optimizer's learning rates whenever a pass began."""
        self.unrepeatable = False
        """Whether the loop gave other losses for the same rows, so that nothing could be compared."""
        self._losses = torch.zeros(0)
        self._staying: tuple[npt.NDArray[np.bool_], ...] = ()
        self._norms: tuple[Tensor | None, ...] = ()
        self._drawn: set[str] = set()

    def begin(self, read: Callable[[Any], Any]) -> tuple[Any] | None:
        """Begin the next pass, with the batch that it is made on; None if there is no further one.

        Raises where losses depend on other rows.
        """
        micro = next(self._passes, None)
        if micro is None:
            return None
        self.micro = micro
        batch = read(micro.indices)
        tensors = [leaf for leaf in tree_leaves(batch) if isinstance(leaf, Tensor)]
        self._shapes = tuple(tuple(leaf.shape) for leaf in tensors)
        rows = len(micro.indices)
        self._leaves = tuple(leaf.detach().clone() for leaf in tensors if leaf.dim() and len(leaf) == rows)
        self.waits = True
        return (batch,)

    def take(self, losses: Tensor) -> None:
        """End the pass with its losses, one for each row or k of them; refuses one that wrote into a parameter."""
        self._losses = losses.detach().double()
        self._norms = tuple(_gradient_norms(self._model, losses, stays) for stays in self._staying)
        self.close()
        if self._refusals:
            raise self._refusals[0]

    def close(self) -> None:
        """End the pass, and restore what it may have changed."""
        self.waits = False
        self._during.close()

    def _all(self) -> Generator[Micro, None, None]:
        """The rows of each pass, after which its losses are there.

        A loop that gives other losses for the same rows (it counts its passes, or draws from a generator of its own)
        cannot be compared with itself, and is left to the other checks.
        """
        rows = len(self._whole.indices)
        if rows < 2:
            return
        half, places = rows // 2, np.arange(rows)
        # Halves that share a row: neighboring numbers have no common divisor, so that chunks of the batch, of whatever
        # size, do not end where both halves do.
        halves = places < (half + 1 if rows > 2 else half), places >= half
        first = yield from self._pass(self._whole, (*halves, places < half))
        for number, stays in enumerate(halves):
            start = int(places[stays][0])
            other = yield from self._pass(self._taking(np.where(stays, places, start)), (stays,))
            agree = _agree(first, other, rows, stays)
            hidden = agree and not _agree_in_gradients(first, other, number)
            elsewhere = agree and self._is_elsewhere(first, other, rows, stays, start)
            if not agree or hidden or elsewhere:
                again = yield from self._pass(self._whole, halves)
                if _agree(first, again, rows, places >= 0) and _agree_in_gradients(first, again, number, number):
                    raise _hidden() if hidden else _elsewhere() if elsewhere else _depends()
                self.unrepeatable = True
                return
        yield from self._fewer(first, rows, half)

    def _fewer(self, first: _Outcome, rows: int, half: int) -> Generator[Micro, None, None]:
        """The first half of the rows alone, in eval mode where random numbers are drawn: by dropout, say."""
        places, evaluate = np.arange(rows), bool(self._drawn)
        stays, at = places < half, 2
        if evaluate:
            self._drawn.clear()
            first, at = (yield from self._pass(self._whole, (stays,), evaluate=True)), 0
            if self._drawn:
                return  # the loop itself draws, and fewer rows would be given other random numbers
            other = yield from self._pass(self._taking(np.where(stays, places, 0)), (stays,), evaluate=True)
            if self._is_elsewhere(first, other, rows, stays, 0):
                again = yield from self._pass(self._whole, (stays,), evaluate=True)
                if _agree(first, again, rows, places >= 0):
                    raise _elsewhere()
        fewer = yield from self._pass(self._taking(places[:half]), (stays[:half],), evaluate=evaluate)
        shortened = first._replace(losses=first.losses[: half * (len(first.losses) // rows)])
        if len(fewer.losses) != len(shortened.losses):
            return
        agree = _agree(shortened, fewer, half, stays[:half])
        if not agree or not _agree_in_gradients(first, fewer, at):
            again = yield from self._pass(self._whole, (stays,), evaluate=evaluate)
            if _agree(first, again, rows, places >= 0) and _agree_in_gradients(first, again, at):
                raise _hidden() if agree else _divided(shortened.losses, fewer.losses, rows / half)
            self.unrepeatable = True

    def _is_elsewhere(
        self, first: _Outcome, other: _Outcome, rows: int, stays: npt.NDArray[np.bool_], start: int
    ) -> bool:
        """Whether losses at exchanged places are not those of the row that came there.

        With random numbers, all that can be said is that they did not change at all although their rows did.
        """
        if self._whole.groups is not None or len(first.losses) != rows:
            return False
        places = torch.from_numpy(~stays).to(first.losses.device)
        before, after, own = first.losses[places], other.losses[places], other.losses[start]
        if self._drawn:
            moved = _rows_differ(first.leaves, other.leaves, ~stays)
            varied = bool((before != before[0]).any())
            return moved and varied and bool((before == after).all())
        size = float(torch.maximum(other.losses.abs().nan_to_num(0.0, 0.0, 0.0).median(), own.abs()))
        return bool(own.isfinite()) and bool(((after - own).abs() > _LOOSE * size).any())

    def _taking(self, places: npt.NDArray[np.int64]) -> Micro:
        """The rows at these places of the piece, each as a row of the unit that has the place."""
        indices = self._whole.indices[places]
        groups = None if self._whole.groups is None else self._whole.groups[: len(places)]
        units = len(places) if groups is None else int(groups[-1]) + 1
        return Micro(indices, groups, units, last=False)

    def _pass(
        self, micro: Micro, staying: tuple[npt.NDArray[np.bool_], ...], *, evaluate: bool = False
    ) -> Generator[Micro, None, _Outcome]:
        """Let the loop's body run once, and note the gradients of these sets of rows."""
        self._staying = staying
        self._during.enter_context(modes_restored(self._model, evaluate=evaluate))
        self._refusals = self._during.enter_context(restored(self._model))
        self._during.enter_context(same_randomness(self._drawn))
        yield micro
        return _Outcome(self._losses, self._shapes, self._leaves, self._norms)


def rehearse(
    model: nn.Module, losses_of: Callable[[Any], Tensor], read: Callable[[Any], Any], rows: int
) -> InvalidInput | None:
    """Why a run would refuse these losses after a rehearsal; None if it would not.

    Args:
        model: is restored afterwards.
        losses_of: from a batch to its losses, as in a loop.
        read: from the numbers of rows to a batch.
        rows: how many there are, of which the first few are used.
    """
    few = min(rows, REHEARSED)
    rehearsal = Rehearsal(model, Micro(np.arange(few), None, few, last=True))
    try:
        while (trial := rehearsal.begin(read)) is not None:
            losses = losses_of(trial[0])
            if losses.dim() != 1 or len(losses) % len(rehearsal.micro.indices):
                return None  # refused for that, elsewhere
            rehearsal.take(losses)
    except InvalidInput as refusal:
        return refusal
    finally:
        rehearsal.close()
    return None


def _rows_differ(first: tuple[Tensor, ...], other: tuple[Tensor, ...], chosen: npt.NDArray[np.bool_]) -> bool:
    """Whether every chosen row holds something else in the second batch."""
    if not first or [leaf.shape for leaf in first] != [leaf.shape for leaf in other]:
        return False
    changed = torch.zeros(len(chosen), dtype=torch.bool)
    for one, two in zip(first, other, strict=True):
        changed |= (one != two).reshape(len(chosen), -1).any(1).cpu()
    return bool(changed[torch.from_numpy(chosen)].all())


def _agree(first: _Outcome, second: _Outcome, rows: int, stays: npt.NDArray[np.bool_]) -> bool:
    """Whether the losses of the rows that stayed are the same."""
    before, shapes, after, others = first.losses, first.shapes, second.losses, second.shapes
    if before.shape != after.shape:
        return False
    chosen = torch.from_numpy(stays).repeat_interleave(len(before) // rows).to(before.device)
    one, other = before[chosen], after[chosen]
    sizes = one.nan_to_num(0.0, 0.0, 0.0).abs()
    positive = sizes[sizes > 0]
    if len(positive):
        sizes = torch.maximum(sizes, positive.median())
    tolerance = _TOLERANCE if shapes == others else _LOOSE
    return bool((((one - other).abs() <= tolerance * sizes) | (~one.isfinite() & ~other.isfinite())).all())


def _gradient_norms(model: nn.Module, losses: Tensor, stays: npt.NDArray[np.bool_]) -> Tensor | None:
    """The norm of the gradient of some rows' losses, for each parameter; None where there is no graph to follow."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not losses.requires_grad or not parameters or len(losses) % len(stays):
        return None
    chosen = torch.from_numpy(stays).repeat_interleave(len(losses) // len(stays)).to(losses.device)
    # Uneven weights, so that rows that pull in opposite directions do not cancel.
    places = torch.arange(len(losses), device=losses.device, dtype=losses.dtype)
    weights = 1 + (places % 7) / 7  # of a row's place, also where fewer rows come
    try:
        total = (losses * weights)[chosen].sum()
        found = torch.autograd.grad(total, parameters, retain_graph=True, allow_unused=True)
    except RuntimeError:
        return None  # a graph that was used up, or an operation without a gradient: the step itself will say so
    norms = [torch.zeros(()) if each is None else _norm(each) for each in found]
    return torch.stack(norms)


def _norm(gradient: Tensor) -> Tensor:
    whole = gradient.detach().coalesce().values() if gradient.is_sparse else gradient.detach()
    norm: Tensor = whole.double().norm()
    return norm.cpu().float()


def _agree_in_gradients(first: _Outcome, second: _Outcome, at: int, other: int = 0) -> bool:
    """Whether the staying rows' losses have the same gradient in both passes, as far as it is known.

    A row that is NaN makes the whole gradient NaN, its own weight of zero notwithstanding: then nothing is known.
    """
    one, two = first.norms[at], second.norms[other]
    if one is None or two is None:
        return True
    tolerance = _GRADIENT if first.shapes == second.shapes else _LOOSE
    size = float(torch.linalg.vector_norm(one.nan_to_num(0.0, 0.0, 0.0)))
    return bool((((one - two).abs() <= tolerance * size) | ~one.isfinite() | ~two.isfinite()).all())


def _hidden() -> InvalidInput:
    problem = (
        "have gradients that change with the other rows of the batch although their values do not (a factor of the "
        "batch that is taken out of the value again by detach(), a hook that scales gradients)"
    )
    return InvalidInput("losses", problem, "compute each row's loss, and its gradient, from that row alone")


def _depends() -> InvalidInput:
    problem = (
        "give another value for a row when the other rows of the batch change, so that clipping a row does not bound "
        "what it does (mixup; (B, 1) against (B,); means, counts, weights or negatives of the batch)"
    )
    advice = "compute each row's loss from that row alone, with both tensors of a comparison of one shape"
    return InvalidInput("losses", problem, advice)


def _elsewhere() -> InvalidInput:
    problem = (
        "are not those of the rows that were drawn, for which sampling was priced: where another row came, its loss "
        "did not come with it (rows or targets that are looked up by their place, a data loader of your own)"
    )
    return InvalidInput("losses", problem, "compute each loss from the batch that run.batches() gave, and nothing else")


def _divided(before: Tensor, after: Tensor, ratio: float) -> InvalidInput:
    """What to say where the same rows have other losses when fewer rows come with them."""
    for factor, what in ((ratio, "divided"), (1 / ratio, "multiplied")):
        if bool(((after - factor * before).abs() <= _PROPORTION * factor * before.abs()).all()):
            problem = f"were {what} by the number of rows in the batch, which a row changes by coming"
            return InvalidInput("losses", problem, "leave that out: run.step divides by a public number")
    problem = "give another value for a row when fewer rows come with it, so that clipping a row does not bound it"
    return InvalidInput("losses", problem, "compute each row's loss from that row alone, and use fixed, public numbers")
