"""δ as a function of ε for a run, cheap to ask often, whatever the unit and however large ε is."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from itertools import accumulate

from privet.accounting import (
    TOO_LARGE,
    CountedEvent,
    Profile,
    canonical,
    falling_root,
    gate,
    group_privacy,
    tail_of,
    upper,
)
from privet.core import Composed, Event, Guarantee, IndependentBatches, Repeated, ShuffledEpoch, Unit, WithReplacement

__all__ = ["Bound", "Chords", "chords_of"]

_FARTHEST = 4.0 * TOO_LARGE
_NODES = 48
_STEEP = 700.0
"""Where e^ε becomes too large for a number."""


class Chords:
    """An upper bound on δ(ε) from few points: straight lines in e^ε between them, and flat beyond the last.

    δ is convex in e^ε (each E[(1 − e^(ε − L))₊] is a greatest of lines in e^ε), so a chord lies above it. The points
    are pairs (ε, δ) with a rising ε, the first of them at ε = 0.
    """

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        self._nodes = [epsilon for epsilon, _ in points]
        # What holds at an ε holds at every larger one.
        self._deltas = list(accumulate((delta for _, delta in points), min))

    def __call__(self, epsilon: float) -> float:
        """A certified upper bound on δ(ε), if those at the points are."""
        after = bisect.bisect_right(self._nodes, epsilon)
        if after == len(self._nodes):
            return self._deltas[-1]
        low, high = self._nodes[after - 1], self._nodes[after]
        if high - low > _STEEP:
            return self._deltas[after - 1]
        share = math.expm1(epsilon - low) / math.expm1(high - low)
        return self._deltas[after - 1] * (1 - share) + self._deltas[after] * share * (1 + 1e-12)


def chords_of(curve: Callable[[float], float], farthest: float) -> Chords:
    """Return the chords of a curve, from ε = 0 to the farthest one."""
    nodes = [farthest * i / _NODES for i in range(_NODES + 1)]
    return Chords([(node, curve(node)) for node in nodes])


class Bound:
    """A certified δ(ε): the run's own profile, or what group privacy makes of the profile of one record.

    It is never above what the `stated` guarantee says, and no more than that where ε is too large for a profile.

    >>> from privet.core.event import Gaussian
    >>> round(Bound(Gaussian(1.0), Unit()).delta(1.0), 6)
    0.126937
    """

    def __init__(self, event: Event, unit: Unit, stated: Guarantee | None = None) -> None:
        self._event, self._unit, self._stated = event, unit, stated
        whole = canonical(event)
        alone = Unit(unit.whose, unit.neighbours, unit.trust, 1, unit.radius)
        # A pass in which a row is in one batch moves by k contributions at most, and is priced as such.
        passes = (type(None), ShuffledEpoch, IndependentBatches)
        sampled = any(not isinstance(part.sampling, passes) for part in whole.parts)
        large = whole.nonprivate is not None or gate(whole.parts, 1e-10, alone) > TOO_LARGE
        self._group = unit.records if sampled and not large else 1
        self.profile = None if large else Profile(event, alone if self._group > 1 else unit)
        """The profile behind this bound, if there is one."""
        self.is_exact = self.profile is not None and unit.records == 1 and self.profile.has_losses
        """Whether δ(ε) comes from the run's own loss, so that a loss distribution can be shown."""
        self._chords: Chords | None = None
        plain = _without_sampling(whole.parts) if self._group > 1 else None
        self._plain = Bound(plain, unit) if plain is not None else None
        """The same run on all rows, which may be cheaper for many records than group privacy is."""

    def delta(self, epsilon: float) -> float:
        """Return a certified upper bound on δ(ε)."""
        stated = self._stated.delta if self._stated and epsilon >= self._stated.epsilon.upper else 1.0
        return min(stated, self._own(epsilon), self._plain.delta(epsilon) if self._plain else 1.0)

    def _own(self, epsilon: float) -> float:
        if self.profile is None:
            return 1.0
        if self.is_exact:
            return self.profile.delta(epsilon)
        if self._group == 1:
            # A profile without losses of its own is asked a few dozen times, and not for every point of every curve.
            if self._chords is None:
                stated = self._stated.epsilon.upper if self._stated else math.inf
                self._chords = chords_of(self.profile.delta, 1.6 * stated if 0 < stated < math.inf else 20.0)
            return self._chords(epsilon)
        each = epsilon / self._group
        return min(1.0, group_privacy(each, self.profile.delta(each), self._group)[1])

    def tail(self, loss: float) -> float:
        """Return a certified bound on the chance of a larger privacy loss."""
        if self.profile is not None and self.is_exact:
            return self.profile.tail(loss)
        if self._stated is None or math.isinf(self._stated.epsilon.upper):
            return 1.0
        return tail_of(self._stated.epsilon.upper, self._stated.delta)(loss)

    def epsilon(self, delta: float) -> float:
        """Return a certified upper bound on ε(δ)."""
        if self._group == 1:
            return upper(self._event, delta, unit=self._unit)
        return min(self._grouped(delta), self._plain.epsilon(delta) if self._plain else math.inf)

    def _grouped(self, delta: float) -> float:
        # By group privacy δ falls with ε at first, and grows again where the profile has reached its floor.
        high = 0.25
        while self._own(high) > delta:
            high *= 1.25
            if high > _FARTHEST:
                return math.inf
        low = high / 1.25
        if self._own(low) <= delta:
            return high
        return falling_root(lambda epsilon: self._own(epsilon) - delta, low, high, tolerance=1e-9)


def _without_sampling(parts: Sequence[CountedEvent]) -> Event | None:
    """The same run with every row in every batch, never cheaper; None where a row may be drawn twice.

    Given which rows are drawn, neighboring sums are at most as far apart as with all rows (joint convexity), which is
    also how `accounting.epsilon` prices many records.
    """
    if any(isinstance(part.sampling, WithReplacement) for part in parts):
        return None
    return Composed(tuple(Repeated(part.leaf, part.count) for part in parts))
