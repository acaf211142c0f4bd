"""Discrete Laplace noise on whole numbers."""

from __future__ import annotations

from dataclasses import dataclass

from privet.mechanisms.laplace import LaplaceNoise

__all__ = ["DiscreteLaplaceMechanism"]


@dataclass(frozen=True)
class DiscreteLaplaceMechanism(LaplaceNoise):
    """P(x) ∝ e^(-|x|/scale) on whole numbers, also called the geometric mechanism (Ghosh et al. 2012): whole answers.

    A contribution is rounded up to a whole number, so that a count of replaced rows pays for two steps where one moves
    it; `Laplace`, which counts in halves there, does not.

    Guarantee: pure ε = L1 distance / scale, for the unit and neighbors of the reach (Ghosh, Roughgarden &
    Sundararajan 2012, Thm 3.1's mechanism; the ratio of two masses is e^(|x|-|y|)/scale). The support is all whole
    numbers, whatever the data.

    >>> DiscreteLaplaceMechanism.for_epsilon(1.0).event
    DiscreteLaplace(scale=1.0, bound=1, dimension=1)
    """

    whole = True
