"""Rényi curves of one sampled run: Poisson for add/remove and zero-out, fixed size for replace-one.

Divergences of mixtures are no larger than the worst of the pairs mixed (joint quasi-convexity), so it is enough to
bound one pair: the batch with the row, and the batch without it. Where several bounds are proven, the least is taken at
each order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from privet.accounting.neighbor_distance import require_one_record, shift
from privet.accounting.pure import amplified, pure_epsilon
from privet.accounting.renyi_binomial import fixed_size_bound, interpolated, poisson_sum
from privet.accounting.renyi_chords import fixed_size_chords, poisson_chords
from privet.accounting.renyi_leaves import leaf_curve, log_moments, swapped
from privet.accounting.search import Array
from privet.core import Neighbours, NotProven, Unit
from privet.core import event as events

__all__ = ["sampled_curve", "two_points"]

_ULP = 2.0**-52
_HUGE = 1e100
"""Above this pure ε, which bounds every order, nothing else is worth computing."""
_HIGHER = 1 + np.geomspace(1e-4, 0.9, 64)


def sampled_curve(leaf: events.Leaf, sampling: events.Sampling, unit: Unit, orders: Array) -> Array:
    """D_a of one sampled run at each order, the larger of both directions."""
    rule = _SAMPLINGS.get(type(sampling))
    if rule is None:
        raise NotProven(f"{type(leaf).__name__} sampled by {type(sampling).__name__}: no Rényi bound is known to us")
    return rule(leaf, sampling, unit, orders)


def _passed(leaf: events.Leaf, _: Any, unit: Unit, orders: Array) -> Array:
    """Every row is used once a pass, so a pass is one run of the leaf; no amplification is claimed."""
    return leaf_curve(leaf, unit, orders)


def _poisson(leaf: events.Leaf, sampling: Any, unit: Unit, orders: Array) -> Array:
    require_one_record(leaf, unit)
    if unit.neighbours not in (Neighbours.ADD_REMOVE, Neighbours.ZERO_OUT):
        raise NotProven(f"Poisson sampling for {unit.neighbours.value} neighbors has no Rényi bound here; use pld")
    unsampled = leaf_curve(leaf, unit, orders)
    epsilon = pure_epsilon(leaf, unit)
    pair = two_points(epsilon, sampling.sample_rate, orders) if epsilon < math.inf else unsampled
    bound, better = np.minimum(unsampled, pair), _POISSON.get(type(leaf))
    return bound if better is None else np.minimum(bound, better(leaf, sampling.sample_rate, unit, orders))


def two_points(epsilon: float, rate: float, orders: Array) -> Array:
    """Sampled binary randomized response, exact at every order: it dominates any sampled ε-DP leaf.

    The pairs are ((1 − q)Q + qP, Q) and (P, (1 − q)P + qQ) (Zhu, Dong & Wang 2022, Thm 11).
    """
    up = amplified(epsilon, rate)
    if epsilon > _HUGE:
        return np.full_like(orders, up)
    finite = np.isfinite(orders)
    a = np.where(finite, orders, 2.0)
    down = math.log1p(rate * math.expm1(-epsilon))
    likely = 1 / (1 + math.exp(-epsilon))
    rare = math.exp(-epsilon) * likely
    log_likely, log_rare = -math.log1p(math.exp(-epsilon)), -epsilon - math.log1p(math.exp(-epsilon))
    removed = _log_mean(log_rare, a * up, log_likely, a * down, rare * _tangent(a, up) + likely * _tangent(a, down))
    b = 1 - a
    added = _log_mean(log_likely, b * down, log_rare, b * up, likely * _tangent(b, down) + rare * _tangent(b, up))
    grown = np.maximum(removed, added) / (a - 1)
    return np.where(finite, np.minimum(grown * (1 + 64 * _ULP), up), up)


def _tangent(power: Array, log_ratio: float) -> Array:
    """r^p − 1 − p(r − 1), rounded up; its mean is that of r^p − 1, as r has mean 1 (and r^p is bounded where used)."""
    ratio = math.expm1(min(log_ratio, 40.0))
    grown = np.expm1(np.minimum(power * log_ratio, 40.0))
    return np.asarray(np.maximum(grown - power * ratio, 0.0) + 4 * _ULP * (np.abs(grown) + np.abs(power * ratio)))


def _log_mean(log_p: float, x: Array, log_q: float, y: Array, excess: Array) -> Array:
    """log(p·e^x + q·e^y), from the excess over 1 where that is more precise."""
    plain = np.logaddexp(log_p + x, log_q + y)
    small = np.maximum(np.abs(x), np.abs(y)) < 1
    return np.where(small, np.log1p(np.where(small, excess, 0.0)), plain + 8 * _ULP * (1 + np.abs(x) + np.abs(y)))


def _by_moments(leaf: events.Leaf, rate: float, unit: Unit, orders: Array) -> Array:
    """Whole orders by the leaf's own moments, other orders between them; for noise that a reflection maps to itself."""
    return interpolated(orders, lambda whole: poisson_sum(whole, rate, partial(log_moments, leaf, unit)))


def _gaussian(leaf: Any, rate: float, unit: Unit, orders: Array) -> Array:
    moved = shift(unit) / leaf.noise_multiplier
    bounds = _by_moments(leaf, rate, unit, orders)
    between = (orders != np.floor(orders)) | ~np.isfinite(bounds)
    between &= np.isfinite(orders)
    if np.any(between):
        a = orders[between]
        bounds[between] = np.minimum(
            bounds[between], np.minimum(poisson_chords(a, rate, moved), _split(a, rate, moved))
        )
    return bounds


def _split(orders: Array, rate: float, moved: float) -> Array:
    """For 1 < a < 2 and little noise: r^a ≤ r·((1 − q)^(a−1) + (q·w)^(a−1)), as powers below 1 are subadditive.

    The bound grows again as a falls to 1, and D_a does not, so the least bound at any higher order will do as well.
    """
    below = orders < 2
    a = np.where(below, orders, 1.5)
    half = moved * moved / 2
    higher = np.minimum.accumulate(_split_at(_HIGHER, rate, half)[::-1])[::-1]
    least = np.append(higher, math.inf)[np.searchsorted(_HIGHER, a)]
    return np.where(below, np.minimum(_split_at(a, rate, half), least), math.inf)


def _split_at(a: Array, rate: float, half: float) -> Array:
    out, inside = math.log1p(-rate), math.log(rate)
    first = np.logaddexp((a - 1) * out + out, (a - 1) * out + inside)
    second = out + (a - 1) * inside + (a - 1) * (a - 2) * half
    third = a * inside + a * (a - 1) * half
    total = np.logaddexp(first, np.logaddexp(second, third)) + 1e-14 * (1 + a * half)
    return np.asarray(np.maximum(total, 0.0) / (a - 1))


_POISSON: dict[type[events.Leaf], Callable[[Any, float, Unit, Array], Array]] = {
    events.Gaussian: _gaussian,
    events.Laplace: _by_moments,
    events.DiscreteLaplace: _by_moments,
}


def _fixed_size(leaf: events.Leaf, sampling: Any, unit: Unit, orders: Array) -> Array:
    """A batch that lost the row has another one in its place, so the leaf is priced for replace-one neighbors.

    A blanked row is one that was replaced by a row that adds nothing; but the two batches that hold it, before and
    after, are themselves neighbors of the unit's own kind, so the unsampled curve of the unit is a bound as well.
    """
    require_one_record(leaf, unit)
    rate = sampling.batch_size / sampling.population
    unsampled = leaf_curve(leaf, unit, orders)
    if rate == 1:
        return unsampled
    other = replace(unit, neighbours=Neighbours.REPLACE)
    return np.minimum(unsampled, _FIXED.get(type(leaf), _three_points)(leaf, rate, other, orders))


def _three_points(leaf: events.Leaf, rate: float, other: Unit, orders: Array) -> Array:
    """Losses ±E with E = ln(1 + q(e^ε − 1)), and 0: the pair with the profile of a sampled ε-DP leaf.

    q·δ(ε′) for randomized response is (e^E − e^ε″)/(1 + e^ε), so +E has the probability e^E/(1 + e^ε)
    (Balle, Barthe & Gaboardi 2018, Thm 9); it holds in both directions, and dominates.
    """
    epsilon = pure_epsilon(leaf, other)
    left = amplified(epsilon, rate)
    share = math.exp(min(left - epsilon, 0.0)) * (1 + math.exp(-left)) / (1 + math.exp(-epsilon))
    return swapped(left, orders, min(1.0, share * (1 + 8 * _ULP)))


def _by_theorem(leaf: events.Leaf, rate: float, other: Unit, orders: Array) -> Array:
    return interpolated(orders, lambda whole: fixed_size_bound(whole, rate, partial(log_moments, leaf, other)))


def _gaussian_of_fixed_size(leaf: Any, rate: float, other: Unit, orders: Array) -> Array:
    chords = fixed_size_chords(orders, rate, shift(other) / leaf.noise_multiplier)
    return np.minimum(chords, _by_theorem(leaf, rate, other, orders))


_FIXED: dict[type[events.Leaf], Callable[[Any, float, Unit, Array], Array]] = {
    events.Gaussian: _gaussian_of_fixed_size,
    events.DiscreteGaussian: _by_theorem,
}
_SAMPLINGS: dict[type[events.Sampling], Callable[[Any, Any, Unit, Array], Array]] = {
    events.Poisson: _poisson,
    events.WithoutReplacement: _fixed_size,
    events.ShuffledEpoch: _passed,
    events.IndependentBatches: _passed,
}
