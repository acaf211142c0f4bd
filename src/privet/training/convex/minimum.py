"""The minimum of Σ_i ℓ(θ; x_i, y_i) + Λ/2 |θ|² + b·θ, to within a gradient of a stated norm."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from privet.core import InvalidInput
from privet.training.convex.losses import Array, ConvexLoss

__all__ = ["approach", "targets", "tolerance"]

_ROWS: Final = 1 << 13
_TRIES: Final = 3
_SLACK: Final = 1e-9
"""By which a row may be longer than 1 here: for rounding alone, as `within` makes rows that are not."""


def approach(
    loss: ConvexLoss,
    x: Array,
    y: npt.NDArray[Any],
    regularization: float,
    tilt: Array,
    tolerance: float,
) -> Array:
    """Return a θ at which the norm of the gradient is at most `tolerance`, for rows that `within` made.

    A quasi-Newton solver runs first. If it stops too early, Nesterov's accelerated gradient method continues, whose
    convergence on a smooth and strongly convex function is a theorem (Nesterov 2004, Thm 2.2.3). So every data set has
    a result, and none raises an error. A target that is not a class or not finite is replaced (`targets`). Rows that
    are longer than 1 are refused: with them, neither the theorem nor any bound on one row's influence holds.

    Args:
        loss: Loss of one example.
        x: Rows that `within` made.
        y: Target of each row.
        regularization: Λ, the weight of |θ|²/2.
        tilt: b, the linear term of the objective; its shape is that of θ.
        tolerance: Largest norm of the gradient at the result.

    Raises:
        InvalidInput: Rows are longer than 1 or not finite, `tilt` is not finite, or float64 cannot reach `tolerance`.
    """
    with np.errstate(all="ignore"):
        short = all(bool((np.square(x[rows]).sum(1) <= 1.0 + _SLACK).all()) for rows in _stretches(x))
    if not short:
        raise InvalidInput("x", "has rows longer than 1, or such as are no numbers", "make them with `within`")
    shape, answers = tilt.shape, targets(loss, y)

    def both(flat: Array) -> tuple[float, Array]:
        theta = flat.reshape(shape)
        value = 0.5 * regularization * float((theta**2).sum()) + float((tilt * theta).sum())
        gradient = regularization * theta + tilt
        for rows in _stretches(x):
            part, slopes = loss.slopes(x[rows] @ theta.T, answers[rows])
            value += part
            gradient += slopes.T @ x[rows]
        return value, gradient.ravel()

    def steepness(flat: Array) -> float:
        return float(np.linalg.norm(both(flat)[1]))

    theta = np.zeros(tilt.size)
    for _ in range(_TRIES):
        options = {"maxiter": 500, "gtol": tolerance / max(1.0, np.sqrt(theta.size)), "ftol": 0.0, "maxcor": 20}
        theta = np.asarray(minimize(both, theta, jac=True, method="L-BFGS-B", options=options).x)
        if steepness(theta) <= tolerance:
            return theta.reshape(shape)
    theta = theta if math.isfinite(steepness(theta)) else np.zeros(tilt.size)
    smooth = regularization + loss.curvature * len(x)
    momentum = (np.sqrt(smooth) - np.sqrt(regularization)) / (np.sqrt(smooth) + np.sqrt(regularization))
    ahead = theta.copy()
    for _ in range(_most_steps(steepness(theta), regularization, smooth, tolerance)):
        gradient = both(ahead)[1]
        if float(np.linalg.norm(gradient)) <= tolerance:
            return ahead.reshape(shape)
        last, theta = theta, ahead - gradient / smooth
        ahead = theta + momentum * (theta - last)
    raise InvalidInput("tolerance", f"is {tolerance:g}, which is below what float64 resolves", "give a larger one")


def tolerance(loss: ConvexLoss) -> float:
    """Return γ: small against one example's gradient, and above float64 rounding in sums over a million rows.

    Args:
        loss: Loss of one example.
    """
    return 3e-4 * loss.lipschitz


def targets(loss: ConvexLoss, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return classes within their range, or finite numbers, so that no value of a row raises an error.

    Args:
        loss: Loss of one example, which says whether targets are classes.
        y: Target of each row.
    """
    if loss.outputs > 1:
        return np.clip(np.nan_to_num(np.asarray(y, dtype=np.float64)), 0, loss.outputs - 1).astype(np.int64)
    return np.nan_to_num(np.asarray(y, dtype=np.float64), nan=0.0, posinf=1e6, neginf=-1e6)


def _stretches(x: Array) -> list[slice]:
    return [slice(start, start + _ROWS) for start in range(0, len(x), _ROWS)]


def _most_steps(steepness: float, strong: float, smooth: float, tolerance: float) -> int:
    """Return a number of steps that brings the gradient below `tolerance`, with S = `smooth` and Λ = `strong`.

    By the theorem, f(θ_k) - f* ≤ (1 - √(Λ/S))^k · (S + Λ)/2 · R², where R = |θ_0 - θ*| ≤ |∇f(θ_0)|/Λ. So |θ_k - θ*| is
    at most √(2/Λ · (f(θ_k) - f*)), the point ahead is at most three times as far away as the last two, and its gradient
    is at most S times that. Twice as many steps are allowed, for rounding.
    """
    if not math.isfinite(steepness):
        raise InvalidInput("tilt", "holds what is no number", "give finite numbers")
    distance = max(steepness, tolerance) / strong * math.sqrt((smooth + strong) / strong)
    return 2 * math.ceil(2.0 * math.log(3.0 * smooth * distance / tolerance) * math.sqrt(smooth / strong)) + 10
