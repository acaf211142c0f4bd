"""A linear model on inputs whose norm is at most 1: what the convex methods release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core import checked
from privet.training.convex.losses import Array

__all__ = ["LinearModel", "within"]


def within(x: npt.NDArray[Any], radius: float) -> Array:
    """Return the rows with an intercept column of ones, divided by `radius` and scaled down to a norm of at most 1.

    A row that holds NaN or infinity becomes zeros, without a message: it then has no influence.

    Args:
        x: Rows of inputs, (rows, features).
        radius: Number by which rows are divided.
    """
    rows = np.concatenate([np.asarray(x, dtype=np.float64), np.ones((len(x), 1))], axis=1)
    with np.errstate(all="ignore"):
        rows /= checked.positive("radius", radius)
        rows[~np.isfinite(rows).all(1)] = 0.0
        # Twice, and a little more than needed: what rounding leaves of the length is below 1.
        for _ in range(2):
            norms = np.linalg.norm(rows, axis=1, keepdims=True)
            rows /= np.maximum(1.0, np.where(np.isfinite(norms), norms, np.inf) * (1.0 + 1e-12))
    rows[~np.isfinite(rows).all(1)] = 0.0
    return rows


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Scores = weight · (row, 1)/radius."""

    weight: Array
    """(outputs, features + 1)"""
    radius: float

    def scores(self, x: npt.NDArray[Any]) -> Array:
        """Return the scores of rows, (rows, outputs).

        Args:
            x: Rows of inputs, (rows, features).
        """
        found: Array = within(x, self.radius) @ self.weight.T
        return found
