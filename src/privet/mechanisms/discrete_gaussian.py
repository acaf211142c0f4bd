"""Discrete Gaussian noise on whole numbers."""

from __future__ import annotations

from dataclasses import dataclass

from privet.mechanisms.gaussian import GaussianNoise

__all__ = ["DiscreteGaussianMechanism"]


@dataclass(frozen=True)
class DiscreteGaussianMechanism(GaussianNoise):
    """P(x) ∝ e^(-x²/2σ²) on whole numbers (Canonne, Kamath & Steinke 2020): whole answers.

    A contribution is rounded up to a whole number, so that a count of replaced rows pays for two steps where one moves
    it; `Gaussian`, which counts in halves there, does not.

    Guarantee: as its event, for the unit and neighbors of the reach: ρ = L2 distance² / 2σ² in zCDP and its exact
    loss in one dimension (Canonne, Kamath & Steinke 2020, Thms 4 and 7). The support is all whole numbers, whatever
    the data.

    >>> round(DiscreteGaussianMechanism.for_epsilon(1.0, 1e-5).sigma, 1)
    3.7
    """

    whole = True
