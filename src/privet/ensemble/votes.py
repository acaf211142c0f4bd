"""Votes of every member on every row, computed in batches of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from privet.core import checked
from privet.ensemble.learner import Ensemble, Labels

__all__ = ["vote_batches", "votes"]

_NUMBERS = 1 << 22
"""The largest number of scores in memory at once."""


def votes(ensemble: Ensemble, rows: Tensor) -> Labels:
    """Return votes, int32 [rows, members]: the class that each member predicts for each row.

    Of equal scores, the first class gets the vote.

    Votes are not released: they are as private as the members. An aggregator of `privet.pate` may release the majority,
    with noise.

    Args:
        ensemble: The trained members.
        rows: [rows, …]: public rows.
    """
    found = np.empty((len(rows), ensemble.size), dtype=np.int32)
    at = 0
    for stretch in vote_batches(ensemble, rows):
        found[at : at + len(stretch)] = stretch
        at += len(stretch)
    return found


def vote_batches(ensemble: Ensemble, rows: Tensor, at_once: int | None = None) -> Iterator[Labels]:
    """Yield the votes in batches of rows, so that any number of members and rows fits in memory.

    Args:
        ensemble: The trained members.
        rows: [rows, …]: public rows.
        at_once: The number of rows in a batch; chosen by the size of the ensemble by default.

    Yields:
        int32 [batch, members]: the class that each member predicts for each row of the batch.

    Raises:
        InvalidInput: If `at_once` is below 1.
    """
    usual = max(1, _NUMBERS // (ensemble.size * ensemble.classes))
    size = usual if at_once is None else checked.count("at_once", at_once)
    with torch.no_grad():
        for some in torch.split(rows, size):
            if len(some):
                yield ensemble.scores(some).argmax(2).T.to(torch.int32).contiguous().numpy()
