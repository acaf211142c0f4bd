"""Orders in which to query public rows. No order here depends on a private row or a vote."""

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
    """Return the indices of `count` rows in an order that follows from the key.

    Args:
        count: The number of rows.
        key: A public key; another key gives another order.

    Raises:
        InvalidInput: If `count` is below 1.

    >>> sorted(shuffled_order(5).tolist())
    [0, 1, 2, 3, 4]
    """
    return torch.randperm(checked.count("count", count), generator=generator(key, "order")).numpy()


def most_typical(rows: Tensor, count: int, *, key: str = "privet") -> npt.NDArray[np.int64]:
    """Return the indices of the rows nearest to the center of each k-means cluster, those of large clusters first.

    These rows lie apart from each other, in dense regions: labels learned for them spread far, and teachers rarely
    disagree about them. The k-means algorithm starts from rows in the order of the key.

    Args:
        rows: [rows, features]: public rows.
        count: The number of rows to choose, which is the number of clusters.
        key: A public key that the initial centers follow from.

    Raises:
        InvalidInput: If `count` is below 1 or above the number of rows.
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
        # Take the nearest row that is not chosen yet, so that equal rows are not queried twice.
        closest = away[:, cluster].argsort(stable=True)
        found[next(row for row in closest.tolist() if row not in found)] = None
    return np.fromiter(found, dtype=np.int64)


def most_informative(rows: Tensor, count: int, *, damping: float = 1e-3) -> npt.NDArray[np.int64]:
    """Return the indices of the rows that determine a linear model best, best first: for answers with much noise.

    With S the rows' covariance and A = (S + damping)⁻¹, a row x less the mean m adds (x − m)ᵀASA(x − m): how much an
    answer about it lowers the error of predictions, averaged over the rows (a V-optimal design, of which this is the
    first step). Large features weigh most, so that outliers come first; where answers have little noise, `most_typical`
    rows are more useful.

    Args:
        rows: [rows, features]: public rows.
        count: The number of rows to choose.
        damping: A number added to the diagonal of the covariance.

    Raises:
        InvalidInput: If `count` is below 1 or above the number of rows, or `damping` is not positive.
    """
    if checked.count("count", count) > len(rows):
        raise InvalidInput("count", f"is {count}, and there are {len(rows)} rows", "ask about fewer")
    away = (rows - rows.mean(0)).double()
    spread = away.T @ away / len(rows)
    inverse = torch.linalg.inv(spread + checked.positive("damping", damping) * torch.eye(len(spread)))
    worth = ((away @ (inverse @ spread @ inverse)) * away).sum(1)
    return np.asarray(worth.argsort(descending=True, stable=True)[:count].numpy())


def most_uncertain(student: Student, rows: Tensor, asked: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the indices of all rows that were not queried yet, those first about which the student is least sure.

    The student is made of released answers, so its margins are public. Private teachers often disagree about the same
    rows, and every query is charged, whether it is answered or not: choose only some of the queries in this order.

    Args:
        student: A student trained on the answers so far.
        rows: [rows, features]: public rows.
        asked: The indices of the rows that were already queried.
    """
    order = np.argsort(student.margins(rows), kind="stable")
    return order[~np.isin(order, asked)]


def _away(rows: Tensor, lengths: Tensor, middles: Tensor) -> Tensor:
    """Squared distances [rows, middles]."""
    return lengths[:, None] + middles.square().sum(1) - 2 * rows @ middles.T
