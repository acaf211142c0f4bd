"""The minimum of Σ_i ℓ(θ; x_i, y_i) + Λ/2 |θ|² + b·θ, to within a gradient of a stated norm."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from privet.training.convex.losses import Array, Loss

__all__ = ["approach"]

_ROWS: Final = 1 << 13
_TRIES: Final = 3


def approach(
    loss: Loss,
    x: Array,
    y: npt.NDArray[Any],
    regularization: float,
    tilt: Array,
    tolerance: float,
) -> Array:
    """A θ at which the gradient's norm is at most `tolerance`.

    A quasi-Newton solver comes first. Should it stop too early, Nesterov's accelerated gradient method goes on, whose
    convergence on a smooth and strongly convex function is a theorem (Nesterov 2004, Thm 2.2.3): so every data set ends
    here, and none ends in an error.
    """
    shape = tilt.shape

    def both(flat: Array) -> tuple[float, Array]:
        theta = flat.reshape(shape)
        value = 0.5 * regularization * float((theta**2).sum()) + float((tilt * theta).sum())
        gradient = regularization * theta + tilt
        for start in range(0, len(x), _ROWS):
            rows = x[start : start + _ROWS]
            part, slopes = loss.slopes(rows @ theta.T, y[start : start + _ROWS])
            value += part
            gradient += slopes.T @ rows
        return value, gradient.ravel()

    theta = np.zeros(tilt.size)
    for _ in range(_TRIES):
        options = {"maxiter": 500, "gtol": tolerance / max(1.0, np.sqrt(theta.size)), "ftol": 0.0, "maxcor": 20}
        theta = np.asarray(minimize(both, theta, jac=True, method="L-BFGS-B", options=options).x)
        if float(np.linalg.norm(both(theta)[1])) <= tolerance:
            return theta.reshape(shape)
    smooth = regularization + loss.curvature * len(x)
    momentum = (np.sqrt(smooth) - np.sqrt(regularization)) / (np.sqrt(smooth) + np.sqrt(regularization))
    ahead = theta.copy()
    while True:
        gradient = both(ahead)[1]
        if float(np.linalg.norm(gradient)) <= tolerance:
            return ahead.reshape(shape)
        last, theta = theta, ahead - gradient / smooth
        ahead = theta + momentum * (theta - last)
