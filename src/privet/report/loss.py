"""The privacy loss of a run as a density, with δ in its tail: the plain tail, and the part of it that δ counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privet.accounting import Array, Profile
from privet.core import Guarantee, NotProven
from privet.report.bound import Bound

__all__ = ["LossDensity", "loss_of"]

_Curve = Callable[[float], float]
"""δ against ε."""
_POINTS = 240
_NARROW = 2**16
_CELLS = 400
_LEAST = 1e-12
"""What is drawn, as a share of the peak: below are only the rounding errors of the convolution."""
_DEEPER = 1e-3
"""The plot ends where δ has fallen to this share of the guarantee's."""
_OFF = 0.05
"""How far the total of a density may be from 1 before it is not believed."""


@dataclass(frozen=True)
class LossDensity:
    """The density of the privacy loss for a figure; `tail` and `delta` belong to the loss `epsilon`."""

    losses: tuple[float, ...]
    density: tuple[float, ...]
    epsilon: float
    tail: float
    """The plain tail: the chance, about, that the loss exceeds ε."""
    delta: float
    """The exact one, E[max(0, 1 − e^(ε − loss))]: a certified upper bound."""
    is_whole: bool
    """Whether losses below 0 are shown too."""


def loss_of(bound: Bound, guarantee: Guarantee) -> LossDensity | None:
    """Return the privacy-loss distribution of a run, or None if it has none of its own."""
    epsilon, profile = guarantee.epsilon.upper, bound.profile
    if profile is None or not bound.is_exact or not 0 < epsilon < math.inf:
        return None
    # Above 0 the loss follows from the certified curve (the profile's own, which is smooth: another bound on top of it
    # would be a kink, and a derivative of that is no density); below, from the profile's own picture of it.
    curve, below = profile.delta, _below(profile)
    width = 0.02 * max(epsilon, 0.01)
    losses = np.linspace(width, _farthest(curve, epsilon, guarantee.delta), _POINTS)
    pairs = [_from_curve(curve, float(loss), width) for loss in losses]
    tail = _from_curve(curve, epsilon, width)
    if tail is None:
        return None
    shown = [(float(loss), pair[1]) for loss, pair in zip(losses, pairs, strict=True) if pair and pair[1] > 0]
    points = [*zip(*below, strict=True), *shown] if below is not None else shown
    peak = max((density for _, density in points), default=0.0)
    points = [(loss, density) for loss, density in points if density > _LEAST * peak]
    if len(points) < 2:
        return None
    return LossDensity(
        tuple(float(loss) for loss, _ in points),
        tuple(float(density) for _, density in points),
        epsilon,
        tail[0],
        curve(epsilon),
        below is not None,
    )


def _from_curve(curve: _Curve, loss: float, width: float) -> tuple[float, float] | None:
    """The tail and the density of the loss: δ − δ′ and δ″ − δ′, since δ(ε) = P(L > ε) − e^ε·Q(L > ε).

    The derivatives are those of log δ, which is nearly a parabola.
    """
    around = [curve(max(0.0, loss + offset)) for offset in (-width, 0.0, width)]
    if min(around) <= 1e-290:
        return None
    left, here, right = (math.log(delta) for delta in around)
    slope, bend = (right - left) / (2 * width), (right - 2 * here + left) / width**2
    return around[1] * (1 - slope), around[1] * (slope**2 + bend - slope)


def _farthest(curve: _Curve, epsilon: float, delta: float) -> float:
    end = epsilon
    for _ in range(60):
        end += 0.05 * epsilon
        if curve(end) <= _DEEPER * max(delta, 1e-12):
            break
    return end


def _below(profile: Profile) -> tuple[Array, Array] | None:
    """The density at losses below 0, one point for each of about `_CELLS` cells of the loss distribution.

    The distribution is a comb: atoms at the places of a grid. Bins that are laid without regard to the comb hold now
    seven atoms and now eight, and a line through them is a saw. So we ask for bins so narrow that most are empty and
    the others hold one atom, and cut the axis midway between atoms, where a cell's width fits what it holds.
    """
    try:
        places, heights = profile.density(_NARROW)
    except NotProven:
        return None
    width = float(places[1] - places[0])
    if not abs(float(np.sum(heights)) * width - 1) < _OFF:
        return None
    held = heights > 0
    atoms, mass = places[held], heights[held] * width
    if len(atoms) < 4:
        return None
    each = max(1, len(atoms) // _CELLS)
    edges = ((atoms[:-1] + atoms[1:]) / 2)[::each]
    density = np.diff(np.cumsum(mass)[:-1][::each]) / np.diff(edges)
    losses = (edges[:-1] + edges[1:]) / 2
    keep = losses < 0
    return losses[keep], density[keep]
