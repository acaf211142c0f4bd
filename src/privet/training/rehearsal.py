"""Passes of a training loop on exchanged rows, which show whether a row's loss depends on the other rows.

A run is given losses, and not the code that computes them. But it hands out the batches, so it can run the loop's body
again: on the same rows, with one half of them exchanged, then the other, then with the first half alone. Random numbers
are the same each time. The losses of the rows that stayed must stay. So mixup, `(B, 1) − (B,)`, inputs normalized by
their batch and losses divided by its size are found, although none of them leaves a trace in the gradients. Nothing is
added to the sum in such a pass, and the model's buffers, its modes and the random numbers are restored.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from privet.core.errors import InvalidInput
from privet.training.coupling import same_randomness
from privet.training.micro import Micro
from privet.training.state import Attributes

__all__ = ["REHEARSED", "Rehearsal"]

REHEARSED = 32
"""The most rows of a batch that a rehearsal takes: enough to show what couples them, and few beside the batch."""

_TOLERANCE = 1e-4
"""Relative to the larger of the loss and the median loss, where every tensor has the shape it had."""
_LOOSE = 5e-2
"""The same where shapes differ (fewer rows, other padding), so that sums round differently, in bfloat16 too."""
_PROPORTION = 1e-3
"""How exactly losses follow the number of rows if they were divided by it."""


class Rehearsal:
    """The rehearsal of one piece of a batch; for each of its `passes` the loop's body runs once and calls `take`."""

    def __init__(self, model: nn.Module, micro: Micro) -> None:
        self._model, self._whole = model, micro
        self.micro = micro
        """The rows of the current pass."""
        self.batch: object = None
        """What the loop was given in it, for its shapes."""
        self._losses: Tensor | None = None
        self._drawn: set[str] = set()

    @property
    def waits(self) -> bool:
        """Whether the current pass has no losses yet."""
        return self._losses is None

    def take(self, losses: Tensor) -> None:
        """The losses of the current pass; what is not one number for each row, or k, is refused in the pass that counts."""
        fits = isinstance(losses, Tensor) and losses.dim() == 1 and not len(losses) % len(self.micro.indices)
        self._losses = losses.detach().double() if fits else torch.zeros(0)

    def passes(self) -> Iterator[Micro]:
        """The rows of each pass; raises where losses depend on other rows.

        A loop that gives other losses for the same rows (it counts its passes, or draws from a generator of its own)
        cannot be compared with itself, and is left to the other checks.
        """
        rows = len(self._whole.indices)
        if rows < 2:
            return
        half, places = rows // 2, np.arange(rows)
        first = yield from self._pass(self._whole)
        if not len(first[0]):
            return
        for start, stop in ((0, half), (half, rows)):
            stays = (places >= start) & (places < stop)
            other = yield from self._pass(self._taking(np.where(stays, places, start)))
            if not _agree(first, other, rows, stays):
                again = yield from self._pass(self._whole)
                if _agree(first, again, rows, stays):
                    raise _depends()
                return
        evaluate = bool(self._drawn)
        if evaluate:  # fewer rows would be given other random numbers, by dropout say
            self._drawn.clear()
            first = yield from self._pass(self._whole, evaluate=True)
            if self._drawn:
                return
        fewer = yield from self._pass(self._taking(places[:half]), evaluate=evaluate)
        losses, shapes = first
        shortened = losses[: half * (len(losses) // rows)], (*shapes, ())
        if len(fewer[0]) == len(shortened[0]) and not _agree(shortened, fewer, half, places[:half] >= 0):
            again = yield from self._pass(self._whole, evaluate=evaluate)
            if _agree(first, again, rows, places >= 0):
                raise _divided(shortened[0], fewer[0], rows / half)

    def _taking(self, places: np.ndarray) -> Micro:
        """The rows at these places of the piece, each as a row of the unit that has the place."""
        indices = self._whole.indices[places]
        groups = None if self._whole.groups is None else self._whole.groups[: len(places)]
        units = len(places) if groups is None else int(groups[-1]) + 1
        return Micro(indices, groups, units, last=False)

    def _pass(self, micro: Micro, *, evaluate: bool = False) -> Iterator[Micro]:
        """Run the loop's body once; returns the losses and the shapes of what it was given."""
        self.micro, self._losses = micro, None
        with _restored(self._model, evaluate=evaluate), same_randomness(self._drawn):
            yield micro
        shapes = tuple(tuple(leaf.shape) for leaf in tree_leaves(self.batch) if isinstance(leaf, Tensor))
        losses, self._losses, self.batch = self._losses, None, None
        return losses, shapes


@contextmanager
def _restored(model: nn.Module, *, evaluate: bool) -> Iterator[None]:
    """Restore what a pass changes in the model; in the meantime it may be in eval mode."""
    before = Attributes.of(model)
    modes = [(module, module.training) for module in model.modules()]
    try:
        for module, mode in modes:
            module.training = mode and not evaluate
        yield
    finally:
        before.put_back()
        for module, mode in modes:
            module.training = mode


def _agree(
    first: tuple[Tensor, tuple[tuple[int, ...], ...]],
    second: tuple[Tensor, tuple[tuple[int, ...], ...]],
    rows: int,
    stays: np.ndarray,
) -> bool:
    """Whether the losses of the rows that stayed are the same."""
    (before, shapes), (after, others) = first, second
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


def _depends() -> InvalidInput:
    problem = (
        "give another value for a row when the other rows of the batch change, so that clipping a row does not bound "
        "what it does (mixup; (B, 1) against (B,); means, counts, weights or negatives of the batch)"
    )
    advice = "compute each row's loss from that row alone, with both tensors of a comparison of one shape"
    return InvalidInput("losses", problem, advice)


def _divided(before: Tensor, after: Tensor, ratio: float) -> InvalidInput:
    """What to say where the same rows have other losses when fewer rows come with them."""
    for factor, what in ((ratio, "divided"), (1 / ratio, "multiplied")):
        if bool(((after - factor * before).abs() <= _PROPORTION * factor * before.abs()).all()):
            problem = f"were {what} by the number of rows in the batch, which a row changes by coming"
            return InvalidInput("losses", problem, "leave that out: run.step divides by a public number")
    problem = "give another value for a row when fewer rows come with it, so that clipping a row does not bound it"
    return InvalidInput("losses", problem, "compute each row's loss from that row alone, and use fixed, public numbers")
