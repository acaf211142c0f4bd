"""Privacy-loss distributions: the default accountant, with a proven bound on either side.

Composition: the losses of the dominating pairs add up, independently (Sommer et al. 2019; Zhu, Dong & Wang 2022,
Thm 10), adaptively chosen steps included. Both directions of the neighbors are priced and the larger δ counts.

Parts that only Rényi can price join as one (ε, δ) block, although their runs may come between those of the others and
depend on them. Seen from the others they are one interactive mechanism that is (ε, δ)-DP against every adversary, and
interactive mechanisms that are used concurrently compose as if they were not interactive (Lyu 2022; Vadhan & Zhang
2023).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from privet.accounting import renyi
from privet.accounting.accountant import Accountant
from privet.accounting.analytic_gaussian import gdp_delta_below, gdp_epsilon_below, gdp_to_delta, gdp_to_epsilon
from privet.accounting.canonical import CountedEvent
from privet.accounting.certified_bounds import between
from privet.accounting.directions import Direction, Side, directions, unpriced
from privet.accounting.laws import block, law_delta, law_epsilon
from privet.accounting.table import require_all
from privet.core import Interval, Unit

__all__ = ["RENYI_SHARE", "delta", "epsilon", "upper_epsilon"]

RENYI_SHARE = 0.5
"""The share of δ given to parts that only Rényi can price; they join as one (ε, δ) block."""
_LEAST_DELTA = 1e-150
_FINE, _LEAST_FINE = 1e-4, 0.02
"""How far above the truth the first grid may be, relative to ε or to the least ε worth it."""
_LARGE = 60.0
"""Above this ε a tenth of the precision will do."""
_POOR = 2.0
"""How many times above the ε that it led to a guess may lie."""
_TRIES, _BETTER = 10, 1e-3
"""How many tilts are tried, each half of the one before, and what counts as an improvement."""
_CLOSE = 1.5e-3
"""How far apart the two ends may end up, relative to max(1, ε)."""
_MOST_SUMS = 4_000_000
"""A grid of sums with more points than this takes seconds: what it would gain is not worth them."""
_EXACT, _LEAST_LOSS = 1e-11, 1e-300
"""The relative error of a closed form, and what underflow may add to it."""


def upper_epsilon(parts: Sequence[CountedEvent], delta: float, unit: Unit) -> float:
    """A certified upper bound on ε at δ, without the work for a lower one."""
    require_all(parts, unit, Accountant.PLD)
    return max((way.epsilon for way in _uppers(parts, delta, unit)), default=0.0)


def epsilon(parts: Sequence[CountedEvent], delta: float, unit: Unit) -> Interval:
    """Return ε at δ, between certified ends.

    Args:
        parts: The canonical parts of an event.
        delta: The δ.
        unit: Whose data is protected.

    Raises:
        NotProven: No theorem covers a part for the unit.
    """
    require_all(parts, unit, Accountant.PLD)
    uppers = sorted(_uppers(parts, delta, unit), key=lambda way: -way.epsilon)
    lower = 0.0
    for way in uppers:
        if way.epsilon > lower:
            lower = max(lower, _lower(way, delta))
    return between(lower, max((way.epsilon for way in uppers), default=0.0))


@dataclass
class _Found:
    """One direction, the best certified ε so far, and the tilt and step that gave it (step 0: no grid was needed)."""

    direction: Direction
    epsilon: float
    tilt: float = 1.0
    step: float = 0.0


def _uppers(parts: Sequence[CountedEvent], delta: float, unit: Unit) -> list[_Found]:
    joined = None
    if others := unpriced(parts, unit):
        spent = renyi.epsilon(others, delta * RENYI_SHARE, unit)
        joined = block(spent, delta * RENYI_SHARE) if math.isfinite(spent) else block(0.0, 1.0)
    if delta <= _LEAST_DELTA:
        return [_Found(way, way.above.largest if way.above else 0.0) for way in directions(parts, unit, 1e-12, joined)]
    ways = directions(parts, unit, delta, joined)
    uppers = [_upper(way, delta, _FINE, 0.0) for way in ways[:1]]
    for way in ways[1:]:  # a coarser grid shows that the other direction is cheaper, where it is
        if way.above == uppers[0].direction.above:  # they differ in their lower bounds alone
            uppers.append(replace(uppers[0], direction=way))
            continue
        first = uppers[0].epsilon
        other = _upper(way, delta, 10 * _FINE, first if math.isfinite(first) else 0.0)
        uppers.append(other if other.epsilon <= first else _upper(way, delta, _FINE, 0.0))
    return uppers


def _upper(way: Direction, delta: float, fine: float, at_least: float) -> _Found:
    above = way.above
    if above is None:
        return _Found(way, 0.0)
    if above.revealed >= delta:
        return _Found(way, math.inf)
    if (mu := above.gaussian) is not None:
        return _Found(way, gdp_to_epsilon(mu, delta))
    if (law := above.single) is not None:
        return _Found(way, law_epsilon(law, delta, 1))
    tilt, guess = above.tilt_for(delta)
    step = above.first_step(tilt, fine * max(_LEAST_FINE, guess, at_least) * _looser(guess))
    priced = above.curve(step, tilt, worse=True).epsilon(delta, 1)
    result = _Found(way, min(priced, above.largest), tilt, step)
    if guess > _POOR * max(_LEAST_FINE, at_least, priced) or math.isinf(priced):
        _again(result, above, delta, fine, max(_LEAST_FINE, at_least), guess)
    return result


def _again(best: _Found, above: Side, delta: float, fine: float, at_least: float, guess: float) -> None:
    """Where the first guess was poor (few large losses): a grid for the ε that was found, and gentler tilts.

    Any tilt and any step are certified, so the least counts.
    """
    tilt, tries, work = best.tilt / 2, _TRIES, 0
    while tries > 0 and (work < _MOST_SUMS or math.isinf(best.epsilon)):
        aim = best.epsilon if math.isfinite(best.epsilon) else guess
        step = above.first_step(tilt, fine * max(at_least, aim) * _looser(aim))
        curve = above.curve(step, tilt, worse=True)
        work, priced = work + len(curve.losses), curve.epsilon(delta, 1)
        better = priced < best.epsilon * (1 - _BETTER)
        if priced < best.epsilon:
            best.epsilon, best.tilt, best.step = priced, tilt, step
        tilt, tries = tilt / 2, tries - 1
        if math.isfinite(best.epsilon) and not better:
            tries = min(tries, 1)


def _looser(epsilon: float) -> float:
    return 1.0 if epsilon < _LARGE else 10.0


def _lower(best: _Found, delta: float) -> float:
    """A lower bound; where both ends close in on one truth, refine the grid (for either end) until they meet."""
    below, above = best.direction.below, best.direction.above
    if below is None:
        return 0.0
    if delta <= _LEAST_DELTA:
        return max(0.0, below.largest * (1 - _EXACT) - _LEAST_LOSS) if delta == 0 else 0.0
    if (mu := below.gaussian) is not None:
        return gdp_epsilon_below(mu, delta)
    if (law := below.single) is not None:
        return law_epsilon(law, delta, -1)
    tilt, step = (best.tilt, best.step) if best.step > 0 else (below.tilt_for(delta)[0], below.widest / 4000)
    lower, before = 0.0, math.inf
    for _ in range(6):
        curve = below.curve(step, tilt, worse=False)
        lower = max(lower, curve.epsilon(delta, -1))
        gap, close = best.epsilon - lower, _CLOSE * max(1.0, best.epsilon) * _looser(best.epsilon)
        if above != below or best.epsilon > 100 or gap <= close:
            break
        if gap > 3 * close:  # with few large losses half the tilt is often better; any tilt is certified
            gentler = below.curve(step, tilt / 2, worse=False).epsilon(delta, -1)
            if gentler > lower:
                tilt, lower = tilt / 2, gentler
                best.epsilon = min(best.epsilon, below.curve(step, tilt, worse=True).epsilon(delta, 1))
                gap = best.epsilon - lower
        if gap <= close:
            break
        finer = max(0.2, min(0.6, 0.8 * math.sqrt(close / gap)))
        step *= finer
        if step < below.finest or gap > 0.9 * before or len(curve.losses) / finer > _MOST_SUMS:
            break
        before = gap
        if gap > 3 * close:
            best.epsilon = min(best.epsilon, below.curve(step, tilt, worse=True).epsilon(delta, 1))
    return lower


def delta(parts: Sequence[CountedEvent], epsilon: float, unit: Unit) -> Interval:
    """Return δ at ε, between certified ends.

    Args:
        parts: The canonical parts of an event.
        epsilon: The ε.
        unit: Whose data is protected.

    Raises:
        NotProven: No theorem covers a part for the unit.
    """
    require_all(parts, unit, Accountant.PLD)
    others = unpriced(parts, unit)
    if not others:
        return _delta(directions(parts, unit, 1e-12), epsilon)
    best = Interval(0.0, 1.0)
    for portion in (0.1, 0.3, 0.5, 0.7, 0.9, 1.0):  # fixed shares of ε for the Rényi block; the least δ counts
        spent = renyi.delta(others, portion * epsilon, unit)
        if spent < 1:
            joined = block(portion * epsilon, spent)
            interval = _delta(directions(parts, unit, 1e-12, joined), epsilon)
            best = between(max(interval.lower, best.lower), min(interval.upper, best.upper))
    return best


def _delta(ways: Sequence[Direction], epsilon: float) -> Interval:
    lower, upper = 0.0, 0.0
    for way in ways:
        if way.above is not None:
            upper = max(upper, _delta_of(way.above, epsilon, worse=True))
        if way.below is not None:
            lower = max(lower, _delta_of(way.below, epsilon, worse=False))
    return between(lower, upper)


def _delta_of(side: Side, epsilon: float, worse: bool) -> float:
    if side.revealed >= 1:
        return 1.0
    if (mu := side.gaussian) is not None:
        return gdp_to_delta(mu, epsilon) if worse else gdp_delta_below(mu, epsilon)
    if (law := side.single) is not None:
        return law_delta(law, epsilon, 1 if worse else -1)
    tilt = side.tilt_at(epsilon)
    step = side.first_step(tilt, _FINE * max(_LEAST_FINE, epsilon))
    return side.curve(step, tilt, worse).delta(epsilon, 1 if worse else -1)
