"""The Rényi accountant (the moments accountant): curves add up order by order, and the best order gives ε or δ."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from privet.accounting.accountant import Accountant
from privet.accounting.canonical import CountedEvent, canonical
from privet.accounting.certified_bounds import QUIET
from privet.accounting.conversions import each_epsilon, each_log_delta
from privet.accounting.pure import exact_epsilon, sum_up
from privet.accounting.renyi_leaves import failure, leaf_curve, log_ratios, selected_curve
from privet.accounting.renyi_sampled import sampled_curve
from privet.accounting.search import Array
from privet.accounting.table import require
from privet.core import IndependentBatches, InvalidInput, Selected, ShuffledEpoch, Unit, checked

__all__ = ["RenyiCurve", "curve", "default_orders", "delta", "epsilon", "total"]

_WHOLE = tuple(float(a) for a in range(2, 65))
_ABOVE = tuple(float(round(64 * 2 ** (j / 2))) for j in range(1, 13))
_BETWEEN = (1.05, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.75, 2.5, 3.5, 4.5)
_DEFAULT = (*sorted((*_BETWEEN, *_WHOLE, *_ABOVE)), math.inf)
_HIGHER = tuple(2.0**j for j in range(13, 48))
_LOWER = tuple(1 + 0.05 * 2.0**-j for j in range(30, 0, -1))
_CLOSER = 15
_UP = 1 + 1e-14
_CLOSE = Fraction(1, 10**9)


@dataclass(frozen=True)
class RenyiCurve:
    """Bounds on D_a, larger of both directions, at each order; they hold but for an event of probability `delta`."""

    orders: tuple[float, ...]
    """Rising and above 1; ∞ (pure ε) may come last."""
    values: tuple[float, ...]
    delta: float = 0.0
    """To be added to δ: what (ε, δ) blocks reveal outright."""

    def epsilon(self, delta: float) -> float:
        """The least ε over these orders."""
        return float(np.min(_epsilons(self, delta), initial=math.inf))


def default_orders() -> tuple[float, ...]:
    """From 1.05 to 4096, and ∞: what `epsilon` and `delta` start from before they look closer or further."""
    return _DEFAULT


@np.errstate(**QUIET)
def curve(part: CountedEvent, unit: Unit, orders: Sequence[float]) -> RenyiCurve:
    """The curve of all `part.count` runs of a part.

    >>> from privet.core.event import Gaussian
    >>> [round(value, 6) for value in curve(CountedEvent(Gaussian(2.0), None, 10), Unit(), (2.0, 4.0)).values]
    [2.5, 5.0]
    """
    require(part, unit, Accountant.RENYI)
    a = np.asarray(orders, dtype=np.float64)
    if a.ndim != 1 or not np.all(a > 1):
        raise InvalidInput("orders", "must be numbers above 1", "use default_orders()")
    if isinstance(part.leaf, Selected):
        order, least = _lowest(part.leaf, unit)
        values = _selected(part.leaf, unit, a)
        values = np.where(a <= order, np.minimum(values, least), values)  # D_a rises with a
    elif part.sampling is None:
        values = leaf_curve(part.leaf, unit, a)
    else:
        values = sampled_curve(part.leaf, part.sampling, unit, a)
    outside = failure(part.leaf, unit)
    fails = 1.0 if outside >= 1 else -math.expm1(part.count * math.log1p(-outside))
    grown = _known(float(part.count) * values * _UP)
    exact = _exact(part, unit)
    for at in np.flatnonzero(np.isinf(a)):
        grown[at] = sum_up([(part.count, float(values[at]) if exact is None else exact)])
    return RenyiCurve(tuple(orders), tuple(grown.tolist()), min(1.0, fails * _UP))


@np.errstate(**QUIET)
def total(parts: Sequence[CountedEvent], unit: Unit, orders: Sequence[float]) -> RenyiCurve:
    """The curve of everything together: Rényi divergences add up, adaptively too (Mironov 2017, Prop. 1)."""
    curves = [curve(part, unit, orders) for part in parts]
    exact = [_exact(part, unit) for part in parts]
    holds = math.fsum(math.log1p(-addend.delta) if addend.delta < 1 else -math.inf for addend in curves)
    values = np.zeros(len(orders))
    for addend in curves:
        values = values + np.asarray(addend.values)
    values = values * _UP
    for at in np.flatnonzero(np.isinf(np.asarray(orders))):
        known = zip(parts, exact, curves, strict=True)
        values[at] = sum_up((part.count, e) if e is not None else (1, one.values[at]) for part, e, one in known)
    return RenyiCurve(tuple(orders), tuple(values.tolist()), min(1.0, -math.expm1(holds) * _UP))


@np.errstate(**QUIET)
def epsilon(parts: Sequence[CountedEvent], delta: float, unit: Unit) -> float:
    """Return a certified ε at δ: the least over all orders that are tried.

    Args:
        parts: The canonical parts of an event.
        delta: The δ.
        unit: Whose data is protected.

    Raises:
        NotProven: No theorem covers a part for the unit.
    """
    checked.share("delta", delta)
    return _best(parts, unit, lambda found: _epsilons(found, delta))[0]


@np.errstate(**QUIET)
def delta(parts: Sequence[CountedEvent], epsilon: float, unit: Unit) -> float:
    """Return a certified δ at ε: the least over all orders that are tried.

    Args:
        parts: The canonical parts of an event.
        epsilon: The ε.
        unit: Whose data is protected.

    Raises:
        NotProven: No theorem covers a part for the unit.
    """
    checked.nonnegative("epsilon", epsilon)
    best, outside = _best(parts, unit, lambda found: _log_deltas(found, epsilon))
    return _outside(outside, min(best, 0.0))


def _exact(part: CountedEvent, unit: Unit) -> Fraction | None:
    """The ε of one run at order ∞, before rounding: these are given numbers, and their sums must not grow."""
    if not isinstance(part.leaf, Selected):
        return None if _summed(part) else exact_epsilon(part.leaf, unit)
    inside = [(inner.count, _exact(inner, unit)) for inner in canonical(part.leaf.event).parts]
    once = sum((count * e for count, e in inside if e is not None), Fraction(0))
    known = all(e is not None for _, e in inside) and _log_ratio(part.leaf, unit) >= once * (1 - _CLOSE)
    return (2 + Fraction(part.leaf.trials.shape)) * once if known else None  # else less than (2 + η)·ε was found


def _selected(leaf: Selected, unit: Unit, orders: Array) -> Array:
    once = total(canonical(leaf.event).parts, unit, tuple(orders.tolist()))
    return selected_curve(leaf.trials, orders, np.asarray(once.values), _log_ratio(leaf, unit))


@lru_cache(maxsize=256)
def _lowest(leaf: Selected, unit: Unit) -> tuple[float, float]:
    """The order at which the bound on a selection is least, and this bound; below it, log E[K]/(a − 1) takes over."""
    orders = (*_DEFAULT[:-1], *_HIGHER, math.inf)
    values = _selected(leaf, unit, np.asarray(orders))
    at = int(np.argmin(values))
    around = orders[max(at - 1, 0)], orders[min(at + 1, len(orders) - 2)]
    closer = np.asarray((orders[at], *_closer(*around, whole=False)))
    values = _selected(leaf, unit, closer)
    at = int(np.argmin(values))
    return float(closer[at]), float(values[at])


@lru_cache(maxsize=256)
def _log_ratio(leaf: Selected, unit: Unit) -> float:
    """The best bound over all orders on what a selection adds to each of them, for each of its 1 + η; see there."""
    parts, trials = canonical(leaf.event).parts, leaf.trials
    best, _ = _best(parts, unit, lambda found: log_ratios(trials, np.asarray(found.orders), np.asarray(found.values)))
    return min(best, float(log_ratios(trials, np.ones(1), np.zeros(1))[0]))


def _known(values: Array) -> Array:
    """A divergence that could not be computed is not known to be finite."""
    return np.where(np.isnan(values), math.inf, values)


def _epsilons(bounds: RenyiCurve, delta: float) -> Array:
    orders, values = np.asarray(bounds.orders), np.asarray(bounds.values)
    if delta < bounds.delta:
        return np.full_like(orders, math.inf)
    inner = (delta - bounds.delta) / (1 - bounds.delta) if bounds.delta > 0 else delta
    return each_epsilon(orders, values, inner)


def _log_deltas(bounds: RenyiCurve, epsilon: float) -> Array:
    return each_log_delta(np.asarray(bounds.orders), np.asarray(bounds.values), epsilon)


def _outside(offset: float, log_delta: float) -> float:
    return min(1.0, offset + (1 - offset) * math.exp(log_delta))


def _best(parts: Sequence[CountedEvent], unit: Unit, score: Callable[[RenyiCurve], Array]) -> tuple[float, float]:
    """The least score over the default orders, over further ones if the best lies at an end, and over closer ones."""
    orders = _DEFAULT
    first = total(parts, unit, orders)
    scores = score(first)
    at = int(np.argmin(scores[:-1]))
    pure = float(scores[-1])
    if at in (0, len(orders) - 2):
        further = _LOWER if at == 0 else _HIGHER
        more = score(total(parts, unit, further))
        orders = (*further, *orders[:-1]) if at == 0 else (*orders[:-1], *further)
        scores = np.concatenate((more, scores[:-1]) if at == 0 else (scores[:-1], more))
        at = int(np.argmin(scores))
    best = min(pure, float(scores[at]))
    for _ in range(1 if any(_summed(part) for part in parts) else 3):
        low, high = orders[max(at - 1, 0)], orders[min(at + 1, len(orders) - 1)]
        closer = _closer(low, min(high, 2 * orders[at]), whole=any(_summed(part) for part in parts))
        if not closer:
            break
        scores = score(total(parts, unit, closer))
        at, orders = int(np.argmin(scores)), closer
        best = min(best, float(scores[at]))
    return best, first.delta


def _summed(part: CountedEvent) -> bool:
    """Whether whole orders are cheaper and tighter than the others."""
    if isinstance(part.leaf, Selected):
        return any(_summed(inner) for inner in canonical(part.leaf.event).parts)
    return part.sampling is not None and not isinstance(part.sampling, (ShuffledEpoch, IndependentBatches))


def _closer(low: float, high: float, *, whole: bool) -> tuple[float, ...]:
    points = 1 + np.geomspace(low - 1, high - 1, _CLOSER + 2)[1:-1]
    if whole and low >= 8:
        points = np.unique(np.round(points))
    return tuple(points[(points > 1) & (points > low) & (points < high)].tolist())
