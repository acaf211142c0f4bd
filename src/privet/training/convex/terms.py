"""What the convex methods have in common: their conditions, and how exactly they solve."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core import checked
from privet.core.errors import InvalidInput
from privet.core.unit import Neighbours, Unit
from privet.training.convex.losses import Loss

__all__ = ["check", "targets", "tolerance"]


def check(epsilon: float, delta: float, regularization: float, radius: float, unit: Unit) -> None:
    """Refuse what the theorems do not cover."""
    checked.positive("epsilon", epsilon)
    if not 0.0 < checked.share("delta", delta) < 1.0:
        raise InvalidInput("delta", f"is {delta}", "give a small positive number, below 1 over the number of rows")
    checked.positive("regularization", regularization)
    checked.positive("radius", radius)
    if unit.neighbours not in (Neighbours.ADD_REMOVE, Neighbours.ZERO_OUT) or unit.records != 1:
        advice = "use one example that comes or goes (add/remove), or is blanked (zero-out)"
        raise InvalidInput("unit", f"is {unit}, for which this method has no proof here", advice)


def targets(loss: Loss, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Classes within their range, or finite numbers: what rows hold is no reason to stop."""
    if loss.outputs > 1:
        return np.clip(np.nan_to_num(np.asarray(y, dtype=np.float64)), 0, loss.outputs - 1).astype(np.int64)
    return np.nan_to_num(np.asarray(y, dtype=np.float64), nan=0.0, posinf=1e6, neginf=-1e6)


def tolerance(loss: Loss) -> float:
    """γ: small against one example's gradient, and above what float64 rounds in sums over a million rows."""
    return 3e-4 * loss.lipschitz
