"""Which public rows to ask about, and in which order. No order here has seen a private row or a vote."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from privet.core import InvalidInput, checked
from privet.ensemble.seeding import generator
from privet.ensemble.student import Student

__all__ = ["most_informative", "most_typical", "most_uncertain", "shuffled_order"]

_ROUNDS = 10


def shuffled_order(count: int, *, key: str = "privet") -> npt.NDArray[np.int64]:
    """All of so many rows, in an order that the key decides.

    >>> sorted(shuffled_order(5).tolist())
    [0, 1, 2, 3, 4]
    """
    return torch.randperm(checked.count("count", count), generator=generator(key, "order")).numpy()


def most_typical(rows: Tensor, count: int, *, key: str = "privet") -> npt.NDArray[np.int64]:
    """So many rows, each the nearest to the middle of a cluster, those of large clusters first.

    They lie apart, where there are many others: what is learned of them spreads far, and teachers rarely disagree
    about them. Clusters are those of k-means, which begins with rows in the order of the key.
    """
    if checked.count("count", count) > len(rows):
        raise InvalidInput("count", f"is {count}, and there are {len(rows)} rows", "ask about fewer")
    middles = rows[torch.from_numpy(shuffled_order(len(rows), key=key)[:count].copy())].clone()
    lengths = rows.square().sum(1)
    for _ in range(_ROUNDS):
        nearest = _away(rows, lengths, middles).argmin(1)
        sizes = nearest.bincount(minlength=count)
        sums = torch.zeros_like(middles).index_add_(0, nearest, rows)
        middles = torch.where(sizes[:, None] > 0, sums / sizes.clamp_min(1)[:, None], middles)
    away = _away(rows, lengths, middles)
    sizes = away.argmin(1).bincount(minlength=count)
    found: dict[int, None] = {}
    for cluster in sizes.argsort(descending=True, stable=True).tolist():
        # The nearest that is not taken yet: rows that are the same would be asked about twice.
        closest = away[:, cluster].argsort(stable=True)
        found[next(row for row in closest.tolist() if row not in found)] = None
    return np.fromiter(found, dtype=np.int64)


def most_informative(rows: Tensor, count: int, *, damping: float = 1e-3) -> npt.NDArray[np.int64]:
    """So many rows, those first from which a linear model of all rows can be told best: for answers with much noise.

    With S the rows' covariance and A = (S + damping)⁻¹, a row x less the mean m adds (x − m)ᵀASA(x − m): how much an
    answer about it lowers the error of predictions, averaged over the rows (a V-optimal design, of which this is the
    first step). Large features weigh most, so that single rows that are like no other come first; where answers are
    clear, `most_typical` ones teach more.
    """
    if checked.count("count", count) > len(rows):
        raise InvalidInput("count", f"is {count}, and there are {len(rows)} rows", "ask about fewer")
    away = (rows - rows.mean(0)).double()
    spread = away.T @ away / len(rows)
    inverse = torch.linalg.inv(spread + checked.positive("damping", damping) * torch.eye(len(spread)))
    worth = ((away @ (inverse @ spread @ inverse)) * away).sum(1)
    return np.asarray(worth.argsort(descending=True, stable=True)[:count].numpy())


def most_uncertain(student: Student, rows: Tensor, asked: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """All rows that were not asked about yet, beginning with those of which the student is least sure.

    The student is made of released answers, so its doubts are public. Private teachers often disagree about the same
    rows, and every question is charged, whether it is answered or not: ask so of some, and not of all.
    """
    order = np.argsort(student.margins(rows), kind="stable")
    return order[~np.isin(order, asked)]


def _away(rows: Tensor, lengths: Tensor, middles: Tensor) -> Tensor:
    """Squared distances [rows, middles]."""
    return lengths[:, None] + middles.square().sum(1) - 2 * rows @ middles.T
