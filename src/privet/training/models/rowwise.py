"""Rows that are looked at one by one, in batches: what is said of one depends on no other, to the last bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from privet.data import hashes

__all__ = ["apply_rowwise"]

_AT_ONCE = 1 << 14
_PLACES = 256


@torch.no_grad()
def apply_rowwise(model: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return a model's output for each row, as a function of the model and of that row alone, to the last bit.

    How a matrix product rounds a row depends on the number of rows and on the row's index among them, in float64 as in
    float32. So one more row could flip another row's near-tie, and a count would change by more than the new row. Here
    every batch has the same number of rows, and a row's index in it follows from its own bytes. Equal rows are computed
    once; rows with the same index go to different batches; free indices hold zeros. Whatever rows are added or removed,
    a row stays at its index in a batch of the same shape, where kernels do the same operations in the same order: these
    depend on shapes, on strides and on the alignment of memory (torch aligns what it allocates), and never on values.
    The model itself must compute each row of a batch separately; this is assumed.

    Args:
        model: Function from a batch of rows to their outputs.
        x: The rows.
    """
    if not len(x):
        return model(torch.zeros(_PLACES, *x.shape[1:], dtype=x.dtype))[:0]
    rows = np.ascontiguousarray(x.numpy()).reshape(len(x), -1)
    digests = hashes([rows], "privet alone")
    order = np.argsort(digests, kind="stable")
    letters = rows.view(np.uint8)
    new = np.ones(len(x), dtype=np.bool_)
    for start in range(1, len(x), _AT_ONCE):
        some = order[start - 1 : start + _AT_ONCE]
        new[start : start + _AT_ONCE] = (letters[some[1:]] != letters[some[:-1]]).any(1)
    firsts = order[new]
    which = np.empty(len(x), dtype=np.int64)
    which[order] = np.cumsum(new) - 1
    places = (digests[firsts] % np.uint64(_PLACES)).astype(np.int64)
    found = None
    for batch in _batches(places):
        given = torch.zeros(_PLACES, *x.shape[1:], dtype=x.dtype)
        given[places[batch]] = x[firsts[batch]]
        said = model(given)
        found = torch.empty(len(firsts), *said.shape[1:], dtype=said.dtype) if found is None else found
        found[batch] = said[places[batch]]
    return torch.zeros(0) if found is None else found[which]


def _batches(places: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Rows in as few batches as there are rows of one place, no two of a batch at the same one."""
    order = np.argsort(places, kind="stable")
    turn = np.arange(len(places)) - np.searchsorted(places[order], places[order])
    return np.split(order[np.argsort(turn, kind="stable")], np.cumsum(np.bincount(turn))[:-1])
