"""The whole privacy profile of an event: δ(ε) and ε(δ) curves, the loss itself, and its tail, cheap to ask often."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from privet.accounting import price
from privet.accounting.canonical import canonical
from privet.accounting.certified_bounds import QUIET
from privet.accounting.conversions import gdp_to_delta
from privet.accounting.convolution import LossCurve
from privet.accounting.directions import Side, directions, unpriced
from privet.accounting.laws import Array, law_delta
from privet.core import Event, NotProven, Unit, checked

__all__ = ["Profile"]

_TARGETS = (0.2, 1e-2, 1e-4, 1e-7, 1e-11)
_ASIDE = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_FINE = 5e-4


class Profile:
    """δ as a function of ε for one event and unit, and everything that follows from it.

    Guarantee: `delta`, `epsilon` and `tail` are certified upper bounds; `density` is for looking at.

    >>> from privet.core.event import Gaussian
    >>> profile = Profile(Gaussian(1.0))
    >>> round(profile.delta(1.0), 6), round(profile.epsilon(1e-5), 3)
    (0.126937, 4.377)
    """

    def __init__(self, event: Event, unit: Unit | None = None) -> None:
        self.event, self.unit = event, unit or Unit()
        self._parts = canonical(event).parts
        self._private = canonical(event).nonprivate is None
        if self._private:
            price.require_one(self._parts, self.unit)

    @property
    def has_losses(self) -> bool:
        """Whether the parts have a loss distribution of their own, which is worked out once; if not, each δ(ε) is a
        search of its own, and takes up to seconds."""
        return bool(self._sides)

    @cached_property
    def _sides(self) -> list[Side]:
        """One per direction; empty where the parts have no loss distribution of their own."""
        simple = self._private and self.unit.records == 1 and not unpriced(self._parts, self.unit)
        if not simple or price.gate(self._parts, 1e-10, self.unit) > price.TOO_LARGE:
            return []
        return [way.above for way in directions(self._parts, self.unit, 1e-12) if way.above is not None]

    @cached_property
    def _curves(self) -> list[list[LossCurve]]:
        curves = []
        for side in self._sides:
            closed = side.gaussian is not None or side.single is not None
            tilts = dict(side.tilt_for(target) for target in (() if closed else _TARGETS))
            steps = {tilt: side.first_step(tilt, _FINE * max(0.05, guess)) for tilt, guess in tilts.items()}
            curves.append([side.curve(step, tilt, worse=True) for tilt, step in steps.items()])
        return curves

    @np.errstate(**QUIET)
    def delta(self, epsilon: float) -> float:
        """Return a certified upper bound on δ(ε).

        Args:
            epsilon: The ε.
        """
        checked.nonnegative("epsilon", epsilon)
        if not self._sides:
            return price.delta(self.event, epsilon, unit=self.unit).upper
        largest = max(self._one(side, curves, epsilon) for side, curves in zip(self._sides, self._curves, strict=True))
        beyond = any(side.largest > epsilon for side in self._sides)
        return max(largest, 5e-324) if beyond else largest  # underflowed, and not pure

    def _one(self, side: Side, curves: list[LossCurve], epsilon: float) -> float:
        if side.gaussian is not None:
            return gdp_to_delta(side.gaussian, epsilon)
        if side.single is not None:
            return law_delta(side.single, epsilon, 1)
        return min(curve.delta(epsilon, 1) for curve in curves)

    def epsilon(self, delta: float) -> float:
        """Return a certified upper bound on ε(δ), as `accounting.epsilon` does.

        Args:
            delta: The δ.
        """
        return price.upper(self.event, checked.share("delta", delta), unit=self.unit)

    def tail(self, loss: float) -> float:
        """Return a certified bound on the probability that the privacy loss is above `loss`.

        From δ(e) = E[(1 − e^(e − L))₊] ≥ P(L > loss)·(1 − e^(e − loss)) for every e < loss.

        Args:
            loss: The privacy loss.
        """
        tried = [e for e in (loss - aside for aside in _ASIDE) if e >= 0]
        return min([1.0, *(self.delta(e) / -math.expm1(e - loss) for e in tried)])

    @np.errstate(**QUIET)
    def density(self, points: int = 400) -> tuple[Array, Array]:
        """Return the density of the privacy loss at evenly spaced losses, for a unit that is removed.

        Args:
            points: The number of losses.

        Returns:
            The losses and the density at each.

        Raises:
            NotProven: The event has no loss distribution; Rényi divergences price it as a block.
        """
        if not self._sides:
            raise NotProven("these parts have no loss distribution of their own; Rényi prices them as a block")
        side = self._sides[0]
        if side.gaussian is not None:
            mean, deviation = side.gaussian**2 / 2, side.gaussian
            losses = np.linspace(mean - 5 * deviation, mean + 5 * deviation, points)
            scaled = (losses - mean) / deviation
            return losses, np.asarray(np.exp(-(scaled**2) / 2) / (deviation * math.sqrt(2 * math.pi)))
        curve = side.curve(side.first_step(0.02, 1e-3), 0.02, worse=True)
        mass = curve.tilted * np.exp(np.clip(curve.scale - curve.tilt * curve.losses, -745.0, 700.0))
        total = np.cumsum(mass)
        first = int(np.searchsorted(total, 1e-6 * total[-1]))
        last = max(first + 2, int(np.searchsorted(total, (1 - 1e-6) * total[-1])))
        edges = np.linspace(curve.losses[first], curve.losses[min(last, len(mass) - 1)], points + 1)
        binned, _ = np.histogram(curve.losses, bins=edges, weights=mass)
        return (edges[:-1] + edges[1:]) / 2, np.asarray(binned / np.diff(edges))
