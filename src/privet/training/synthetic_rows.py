"""Rows that nobody gave: the shapes of real ones, and made-up numbers inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from privet.core import InvalidInput

__all__ = ["BatchMaker", "guesses", "like", "losses_on"]

BatchMaker = Callable[[int], Any]
"""From a number of rows to a batch of so many."""

_SIZES = (32, 28, 64, 224)
"""Widths of pictures to try, where only the model is known."""
_LENGTH = 16
"""Length of a sequence, where only the model is known."""


def like(blank: Any) -> BatchMaker:
    """Batches with the structure, types and shapes of a batch of one row. Whole numbers are 0, or 1 in a mask.

    >>> like((torch.zeros(1, 3), torch.zeros(1, dtype=torch.int64)))(2)[1]
    tensor([0, 0])
    """
    return partial(_named, blank)


def _named(value: Any, rows: int, name: str = "") -> Any:
    if isinstance(value, Mapping):
        return {key: _named(each, rows, str(key)) for key, each in value.items()}
    return tree_map(lambda leaf: _filled(leaf, rows, name) if isinstance(leaf, Tensor) else leaf, value)


def _filled(blank: Tensor, rows: int, name: str) -> Tensor:
    shape = (rows, *blank.shape[1:])
    if blank.is_floating_point():
        count = torch.arange(1, 1 + torch.Size(shape).numel(), dtype=torch.float64, device=blank.device)
        return torch.sin(count * 0.6180339887498949).view(shape).to(blank.dtype)
    return blank.new_full(shape, int("mask" in name))


def guesses(model: nn.Module) -> Iterator[tuple[str, BatchMaker]]:
    """Inputs that the first layer would take, where no data is at hand, each with words for it."""
    first = next(model.parameters(), torch.zeros(0))

    def row(*shape: int, whole: bool = False) -> tuple[str, BatchMaker]:
        blank = torch.zeros(1, *shape, dtype=torch.int64 if whole else first.dtype, device=first.device)
        return f"{shape}", like(blank)

    for module in model.modules():
        if isinstance(module, nn.Embedding):
            yield row(_LENGTH, whole=True)
        elif isinstance(module, nn.Linear):
            yield from (row(module.in_features), row(_LENGTH, module.in_features))
        elif isinstance(module, nn.RNNBase):
            yield row(_LENGTH, module.input_size)
        elif isinstance(module, nn.Conv1d):
            yield row(module.in_channels, 4 * _LENGTH)
        elif isinstance(module, nn.Conv2d):
            yield from (row(module.in_channels, size, size) for size in _SIZES)
        elif isinstance(module, nn.Conv3d):
            yield row(module.in_channels, _LENGTH, _LENGTH, _LENGTH)
        else:
            continue
        return


def losses_on(model: nn.Module, batch: Any) -> Tensor:
    """A number for each row that depends on all of the model's output for it.

    The model is called as most loops do: on the batch, on the first of a pair, on a dict's entries but for its labels.
    """
    if isinstance(batch, Mapping):
        rows = len(next(leaf for leaf in tree_leaves(dict(batch)) if isinstance(leaf, Tensor)))
        output = model(**{name: value for name, value in batch.items() if name not in ("label", "labels")})
    else:
        given = batch[0] if isinstance(batch, (tuple, list)) else batch
        rows, output = len(tree_leaves(given)[0]), model(given)
    flat = tree_leaves(dict(output) if isinstance(output, Mapping) else output)
    found = [each for each in flat if isinstance(each, Tensor) and each.requires_grad and each.dim()]
    own = [each.flatten(1) if each.dim() > 1 else each[:, None] for each in found if len(each) == rows]
    if not own:
        problem = "gives no output that has one entry for each row and depends on what is trained"
        raise InvalidInput("model", problem, "give loss=, from a batch to its per-example losses, as in your loop")
    wide = [each if each.dtype == torch.float64 else each.float() for each in own]
    return sum(((each * each).sum(1) + each.sum(1) for each in wide[1:]), (wide[0] * wide[0]).sum(1) + wide[0].sum(1))
