"""What one accountant can prove by itself: its own δ(ε), from the ε that it proves at many δ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from privet.accounting import Accountant, AccountantAnswer, epsilon, tail_of
from privet.core import Event, Guarantee
from privet.report.bound import Bound, Chords

__all__ = ["SingleAccountantCurve", "curve_of", "single_accountant"]

_PER_DECADE = 4
"""At how many δ per decade ε is computed."""
_DEEPER = 8
"""How many decades below the guarantee's own δ the curve extends."""
_AS_GOOD = 1 + 1e-6
"""Two ε whose ratio is below this count as equal."""
_LEAST = 1e-12
"""The smallest δ from which those decades are counted."""


def single_accountant(guarantee: Guarantee, ladder: Sequence[AccountantAnswer]) -> Accountant | None:
    """Return the accountant of a guarantee if it is looser than the tightest, which is the ladder's first; else None.

    None also for a loss distribution, from which every curve without another source comes.
    """
    upper, tightest = guarantee.epsilon.upper, ladder[0]
    usual = (tightest.accountant.value, Accountant.PLD.value, "none")
    least = tightest.guarantee.epsilon.upper if tightest.guarantee is not None else math.inf
    if guarantee.accountant in usual or math.isinf(upper) or upper <= least * _AS_GOOD:
        return None
    return Accountant(guarantee.accountant)


def curve_of(event: Event, guarantee: Guarantee, which: Accountant | None) -> Bound | SingleAccountantCurve:
    """Return the δ(ε) behind a guarantee of this event: by one accountant, or the best that is known."""
    return Bound(event, guarantee.unit, guarantee) if which is None else SingleAccountantCurve(event, guarantee, which)


class SingleAccountantCurve:
    """A certified δ(ε) of an event by one accountant, which goes through the `stated` guarantee.

    >>> from privet.core.event import Gaussian
    >>> stated = epsilon(Gaussian(4.0), 1e-5, accountant=Accountant.RENYI)
    >>> SingleAccountantCurve(Gaussian(4.0), stated, Accountant.RENYI).delta(stated.epsilon.upper)
    1e-05
    """

    def __init__(self, event: Event, stated: Guarantee, accountant: Accountant) -> None:
        self._event, self._stated, self._accountant = event, stated, accountant

    @cached_property
    def _points(self) -> list[tuple[float, float]]:
        """Pairs (ε, δ), from ε = 0 on, where δ is at most 1."""
        own = self._stated.delta
        # With many records each answer is a search of its own, through group privacy.
        density = _PER_DECADE if self._stated.unit.records == 1 else _PER_DECADE // 2
        decades = math.ceil(-math.log10(max(own, _LEAST))) + _DEEPER
        deltas = [10.0 ** (-i / density) for i in range(1, density * decades + 1)]
        points = [(self.epsilon(delta), delta) for delta in deltas] + [(self._stated.epsilon.upper, own)]
        # Of several δ at one ε the least holds.
        falling = sorted(points, key=lambda point: -point[1])
        finite = {epsilon: delta for epsilon, delta in falling if math.isfinite(epsilon)}
        return sorted(({0.0: 1.0} | finite).items())

    @cached_property
    def _chords(self) -> Chords:
        return Chords(self._points)

    def delta(self, epsilon: float) -> float:
        """Return a certified upper bound on δ(ε)."""
        return self._chords(epsilon)

    def tail(self, loss: float) -> float:
        """Return a certified bound on the probability of a larger privacy loss: the best over all points."""
        return min(tail_of(epsilon, delta)(loss) for epsilon, delta in self._points if delta < 1)

    def epsilon(self, delta: float) -> float:
        """Return a certified upper bound on ε(δ)."""
        return epsilon(self._event, delta, unit=self._stated.unit, accountant=self._accountant).epsilon.upper
