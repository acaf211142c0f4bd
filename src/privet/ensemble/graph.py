"""Label propagation among public rows along a nearest-neighbor graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from privet.core import checked

__all__ = ["NeighborGraph"]

_AT_ONCE = 1000


@dataclass(frozen=True)
class NeighborGraph:
    """Nearest-neighbor graph of rows, and labels that spread along its edges (Zhou et al. 2004).

    Edges weigh exp(-sharpness · d² / (2 r²)), with r the distance to the farthest neighbor, so that dense and sparse
    regions are treated alike. With S the weights, divided by the roots of both ends' sums, and Y the answers, the
    spread labels are the limit of F ← spread · SF + (1 - spread) · Y. Rows and answers are public, so that this has no
    privacy cost.
    """

    neighbors: int = 10
    sharpness: float = 8.0
    spread: float = 0.99
    rounds: int = 200

    def __post_init__(self) -> None:
        checked.count("neighbors", self.neighbors)
        checked.positive("sharpness", self.sharpness)
        checked.share("spread", self.spread)
        checked.count("rounds", self.rounds)

    def labels(
        self, rows: Tensor, asked: npt.NDArray[np.int64], answers: npt.NDArray[np.int64], classes: int
    ) -> npt.NDArray[np.float64]:
        """Return the share of each class that reaches each row.

        Every class has the same total weight, however many of its answers there are.

        Args:
            rows: [rows, features]: public rows.
            asked: The indices of the rows that were answered.
            answers: The class of each of these rows, from 0 to classes - 1.
            classes: The number of classes.

        Returns:
            [rows, classes]: shares that sum to 1 for each row; zeros where no label reaches it.
        """
        start = np.zeros((len(rows), classes))
        np.add.at(start, (asked, answers), 1.0)
        start /= np.maximum(start.sum(0), 1.0)
        edges, found = self._edges(rows), start
        for _ in range(self.rounds):
            found = self.spread * (edges @ found) + (1 - self.spread) * start
        total = found.sum(1, keepdims=True)
        return np.asarray(np.divide(found, total, out=np.zeros_like(found), where=total > 0))

    def _edges(self, rows: Tensor) -> sparse.csr_array:
        count = len(rows)
        near, squared = self._nearest(rows)
        reach = np.maximum(squared[:, -1:], np.finfo(np.float32).tiny)
        weights = np.exp(-self.sharpness / 2 * squared / reach)
        places = (np.repeat(np.arange(count), near.shape[1]), near.ravel())
        one_way = sparse.csr_array((weights.ravel(), places), shape=(count, count))
        both = one_way.maximum(one_way.T)
        root = sparse.diags_array(1 / np.sqrt(np.maximum(both.sum(1), np.finfo(np.float64).tiny)))
        return sparse.csr_array(root @ both @ root)

    def _nearest(self, rows: Tensor) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the nearest other rows of each row, and their squared distances, nearest first."""
        kept = min(self.neighbors, len(rows) - 1)
        lengths = rows.square().sum(1)
        near, squared = [], []
        for start in range(0, len(rows), _AT_ONCE):
            some = rows[start : start + _AT_ONCE]
            away = lengths[start : start + _AT_ONCE, None] + lengths - 2 * some @ rows.T
            away[torch.arange(len(some)), torch.arange(start, start + len(some))] = torch.inf
            found = away.topk(kept, dim=1, largest=False)
            near.append(found.indices)
            squared.append(found.values.clamp_min(0))
        return torch.cat(near).numpy(), torch.cat(squared).double().numpy()
