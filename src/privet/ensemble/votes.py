"""What every member says of every row, a stretch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from privet.core import checked
from privet.ensemble.learner import Ensemble, Labels

__all__ = ["vote_batches", "votes"]

_NUMBERS = 1 << 22
"""Scores that are held at once."""


def votes(ensemble: Ensemble, rows: Tensor) -> Labels:
    """int32 [rows, members]: the class that each member gives each row; of equal scores, the first class.

    Votes are not released: they are as private as the members. An aggregator of `privet.pate` may release what most
    of them say, with noise.
    """
    found = np.empty((len(rows), ensemble.size), dtype=np.int32)
    at = 0
    for stretch in vote_batches(ensemble, rows):
        found[at : at + len(stretch)] = stretch
        at += len(stretch)
    return found


def vote_batches(ensemble: Ensemble, rows: Tensor, at_once: int | None = None) -> Iterator[Labels]:
    """The votes, some rows at a time, for as many members and rows as there may be."""
    usual = max(1, _NUMBERS // (ensemble.size * ensemble.classes))
    size = usual if at_once is None else checked.count("at_once", at_once)
    with torch.no_grad():
        for some in torch.split(rows, size):
            if len(some):
                yield ensemble.scores(some).argmax(2).T.to(torch.int32).contiguous().numpy()
