"""δ of composed sampled Gaussians by a contour integral: an exact method that shares nothing with the engine.

δ(ε) = (1/2πi) ∫ e^(K(z) − zε) / (z(z + 1)) dz along Re z = λ > 0, where K(z) = T·log E[e^(zL)] under P; it follows from
(1 − e^(−y))₊ having the two-sided Laplace transform 1/(z(z + 1)). The expectation is a trapezoidal sum, which converges
faster than any power for Gaussian integrands; so does the outer one.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["contour_delta"]

Complex = npt.NDArray[np.complex128]


class _Step:
    """One sampled Gaussian step: nodes of the loss with their P-masses."""

    def __init__(self, sigma: float, rate: float, added: bool) -> None:
        x = np.linspace(-14 * sigma, 1 + 14 * sigma, 6001)
        base = np.exp(-((x / sigma) ** 2) / 2)
        moved = np.exp(-(((x - 1) / sigma) ** 2) / 2)
        width = (x[1] - x[0]) / (sigma * math.sqrt(2 * math.pi))
        loss = np.log1p(rate * np.expm1(np.minimum((2 * x - 1) / (2 * sigma**2), 700.0)))
        self.loss = -loss if added else loss
        self.mass = width * (base if added else (1 - rate) * base + rate * moved)

    def excess(self, z: Complex) -> Complex:
        """E[e^(zL)] − 1, from e^(zL) − 1, so that small rates lose nothing."""
        found = [np.sum(np.expm1(value * self.loss) * self.mass) for value in z]
        return np.asarray(np.array(found) + (np.sum(self.mass) - 1.0), dtype=np.complex128)

    def cumulant(self, z: Complex) -> Complex:
        """log E[e^(zL)]."""
        excess = self.excess(z)
        real = 0.5 * np.log1p(excess.real * (2 + excess.real) + excess.imag**2)
        return np.asarray(real + 1j * np.arctan2(excess.imag, 1 + excess.real))


def contour_delta(sigma: float, rate: float, steps: int, epsilon: float, added: bool) -> float:
    """δ(ε) of one direction; for ε where a saddle point exists."""
    step = _Step(sigma, rate, added)
    tilts = np.geomspace(1e-2, 1e4, 200)
    with np.errstate(over="ignore", invalid="ignore"):
        exponents = (
            steps * step.cumulant(tilts.astype(np.complex128)).real - tilts * epsilon - np.log(tilts * (tilts + 1))
        )
    tilt = float(tilts[int(np.nanargmin(exponents))])
    peak = float(np.nanmin(exponents))
    reach = 1.0
    while True:  # far enough along the contour that nothing is left
        z = np.array([tilt + 1j * reach])
        left = float((steps * step.cumulant(z) - z * epsilon - np.log(z * (z + 1))).real[0])
        if left < peak - 40 or reach > 1e7:
            break
        reach *= 1.3
    t = np.linspace(0.0, reach, 4001)
    z = np.asarray(tilt + 1j * t, dtype=np.complex128)
    values = np.exp(steps * step.cumulant(z) - z * epsilon - np.log(z * (z + 1)) - peak).real
    values[0] /= 2
    return float(np.sum(values) * (t[1] - t[0]) / math.pi * math.exp(peak))
