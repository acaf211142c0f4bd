"""δ as a function of ε for a run, cheap to ask often, whatever the unit and however large ε is."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable

from privet.accounting import Profile
from privet.accounting.canonical import canonical
from privet.accounting.conversions import group_privacy
from privet.accounting.meaning import tail_of
from privet.accounting.price import TOO_LARGE, gate, upper
from privet.accounting.search import falling_root
from privet.core.event import Event, IndependentBatches, ShuffledEpoch
from privet.core.guarantee import Guarantee
from privet.core.unit import Unit

__all__ = ["Bound", "Chords"]

_FARTHEST = 4.0 * TOO_LARGE
_NODES = 48


class Chords:
    """An upper bound on δ(ε) from few points: straight lines in e^ε between them, and flat beyond the last.

    δ is convex in e^ε (each E[(1 − e^(ε − L))₊] is a greatest of lines in e^ε), so a chord lies above it.
    """

    def __init__(self, curve: Callable[[float], float], farthest: float) -> None:
        self._nodes = [farthest * i / _NODES for i in range(_NODES + 1)]
        self._deltas = [curve(node) for node in self._nodes]

    def __call__(self, epsilon: float) -> float:
        """A certified upper bound on δ(ε), if those at the points are."""
        after = bisect.bisect_right(self._nodes, epsilon)
        if after == len(self._nodes):
            return self._deltas[-1]
        low, high = self._nodes[after - 1], self._nodes[after]
        share = math.expm1(epsilon - low) / math.expm1(high - low)
        return self._deltas[after - 1] * (1 - share) + self._deltas[after] * share * (1 + 1e-12)


class Bound:
    """A certified δ(ε): the run's own profile, or what group privacy makes of the profile of one record.

    Where ε is too large for a profile, it is no more than the `stated` guarantee says.

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
        self.is_exact = self.profile is not None and unit.records == 1
        """Whether δ(ε) comes from the run's own loss, so that a loss distribution can be shown."""
        self._chords: Chords | None = None

    def delta(self, epsilon: float) -> float:
        """A certified upper bound on δ(ε)."""
        if self.profile is None:
            return self._stated.delta if self._stated and epsilon >= self._stated.epsilon.upper else 1.0
        if self.is_exact:
            return self.profile.delta(epsilon)
        if self._group == 1:
            # The profile of several records is asked a few dozen times, and not for every point of every curve.
            if self._chords is None:
                stated = self._stated.epsilon.upper if self._stated else math.inf
                self._chords = Chords(self.profile.delta, 1.6 * stated if 0 < stated < math.inf else 20.0)
            return self._chords(epsilon)
        each = epsilon / self._group
        return min(1.0, group_privacy(each, self.profile.delta(each), self._group)[1])

    def tail(self, loss: float) -> float:
        """A certified bound on the chance of a larger privacy loss."""
        if self.profile is not None and self.is_exact:
            return self.profile.tail(loss)
        if self._stated is None or math.isinf(self._stated.epsilon.upper):
            return 1.0
        return tail_of(self._stated.epsilon.upper, self._stated.delta)(loss)

    def epsilon(self, delta: float) -> float:
        """A certified upper bound on ε(δ)."""
        if self._group == 1:
            return upper(self._event, delta, unit=self._unit)
        # By group privacy δ falls with ε at first, and grows again where the profile has reached its floor.
        high = 0.25
        while self.delta(high) > delta:
            high *= 1.25
            if high > _FARTHEST:
                return math.inf
        low = high / 1.25
        if self.delta(low) <= delta:
            return high
        return falling_root(lambda epsilon: self.delta(epsilon) - delta, low, high, tolerance=1e-9)
