"""Rényi curves of one unsampled run of each leaf, and of the best of a random number of runs (`Selected`).

All of them hold in both directions, as each pair is symmetric.

*Selection* (Papernot & Steinke 2022, Theorem 2).
Let q and q′ be the chances, on the two data sets, that a run is no better than some
output (equal outputs are told apart by a uniform number that each run draws besides), and f the probability generating
function of the number K of runs. The output of the selection has the density f′(q) times that of one run, where
f′(q) = E[K]·(γ/p)^(1+η) with p = γ + (1 − γ)(1 − q). So, at order a,

    D_a(selection) ≤ D_a(one run) + log sup f′(q)^a·f′(q′)^(1−a) / (a − 1)
                   ≤ D_a(one run) + log E[K] / (a − 1) + (1 + η)·sup log(p′/p),

as f′ ≤ E[K]. Both p are chances of one event after the same post-processing, and p ≥ γ: for every order b ≥ 1 one has
p′ ≤ (e^(D_b)·p)^(1 − 1/b), hence log(p′/p) ≤ (1 − 1/b)·D_b + log(1/γ)/b. The last term does not depend on a, and the
least over b counts; b = ∞ gives (2 + η)·ε for what is ε-DP, and b = 1 needs no privacy at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from privet.accounting.canonical import canonical
from privet.accounting.conversions import group_privacy
from privet.accounting.neighbor_distance import gaussian_mu, stretch
from privet.accounting.pure import pure_epsilon
from privet.accounting.search import Array
from privet.accounting.shuffling import shuffled_curve
from privet.core import Trials, Unit
from privet.core import event as events

__all__ = ["failure", "leaf_curve", "linear", "log_moments", "log_ratios", "mean_up", "selected_curve", "swapped"]

_UP = 1 + 1e-14
_MEAN_UP = 1 + 1e-12
_ULP = 2.0**-52
_TINY = 5e-324
"""What underflows to 0 still costs something."""
_HUGE = 1e100
"""A pure ε above this is its own divergence at every order: D_a ≤ ε, and nothing else is worth computing."""


def leaf_curve(leaf: events.Leaf, unit: Unit, orders: Array) -> Array:
    """D_a of one run at each order; at order ∞ the pure ε, infinite where there is none."""
    return _LEAVES[type(leaf)](leaf, unit, orders)


def failure(leaf: events.Leaf, unit: Unit) -> float:
    """The probability outside of which the curve holds: 0 but for an (ε, δ) block (Kairouz, Oh & Viswanath 2015).

    A selection fails if any of its runs does, at most E[K] times as often. If none does, the number of runs has the law
    of the same shape with 1 − γ′ = (1 − γ)(1 − δ): a larger γ and a smaller mean, which cost less.
    """
    if isinstance(leaf, events.Selected):
        once = math.fsum(part.count * failure(part.leaf, unit) for part in canonical(leaf.event).parts)
        return min(1.0, mean_up(leaf.trials) * once)
    if isinstance(leaf, events.Approximate):
        return group_privacy(leaf.epsilon, leaf.delta, stretch(leaf, unit))[1]
    return 0.0


def mean_up(trials: Trials) -> float:
    """The mean number of runs, rounded up."""
    return trials.mean * _MEAN_UP


def log_ratios(trials: Trials, orders: Array, values: Array) -> Array:
    """A bound on log(p′/p) from the curve of one run, for each order b; at b = 1 it is log(1/γ)."""
    share = 1 / orders
    bounds: Array = ((1 - share) * values - math.log(trials.gamma) * share) * _UP
    return bounds


def selected_curve(trials: Trials, orders: Array, values: Array, ratio: float) -> Array:
    """D_a of the selection, from D_a of one run and the best bound on log(p′/p)."""
    grown: Array = values + (1 + trials.shape) * ratio * _UP + math.log(mean_up(trials)) / (orders - 1)
    return grown * _UP


def linear(rho: float, orders: Array) -> Array:
    """ρ·a: the curve of ρ-zCDP, and exactly that of Gaussian noise with ρ = μ²/2 (Mironov 2017, Prop. 7)."""
    if rho == 0:
        return np.zeros_like(orders)
    with np.errstate(over="ignore"):
        return rho * orders


def swapped(epsilon: float, orders: Array, share: float = 1.0) -> Array:
    """The pair with losses ±ε on a share of the mass and 0 on the rest, exact at every order.

    e^((a−1)D) = 1 − share + share·cosh((a − ½)ε)/cosh(ε/2), written so that nothing cancels or overflows. With share 1
    it is binary randomized response, which dominates every ε-DP mechanism (Kairouz, Oh & Viswanath 2015, Thm 3.1).
    """
    if epsilon == 0 or share == 0:
        return np.zeros_like(orders)
    if epsilon > _HUGE:
        return np.full_like(orders, epsilon)
    a = np.where(np.isfinite(orders), orders, 2.0)
    # cosh y − cosh x = 2·sinh((y + x)/2)·sinh((y − x)/2) with y = (a − ½)ε and x = ε/2
    product = math.log(2) + _log_sinh(a * epsilon / 2) + _log_sinh((a - 1) * epsilon / 2)
    half_cosh = epsilon / 2 + math.log1p(math.exp(-epsilon)) - math.log(2)
    grown = np.logaddexp(0.0, math.log(share) + product - half_cosh) / (a - 1)
    return np.where(np.isfinite(orders), np.minimum(grown * (1 + 32 * _ULP), epsilon), epsilon)


def log_moments(leaf: events.Leaf, unit: Unit, powers: Array) -> Array:
    """log E_Q[(P/Q)^k] = (k − 1)·D_k for whole k ≥ 2."""
    return np.asarray((powers - 1) * leaf_curve(leaf, unit, powers))


def _log_sinh(x: Array) -> Array:
    return np.asarray(x + np.log(-np.expm1(-2 * x)) - math.log(2))


def _gaussian(leaf: Any, unit: Unit, orders: Array) -> Array:
    mu = gaussian_mu(leaf, unit)
    return linear(max(mu * mu / 2, _TINY), orders)


def _exponentials(epsilon: float, share: Array, orders: Array) -> Array:
    """log((1 − B)·e^((a−1)ε) + B·e^(−aε))/(a − 1) with a share B ≤ ½: Laplace noise, continuous or discrete.

    As a function of the shift it is a log-sum-exp of linear terms that is 0 at 0, hence convex and superadditive: a
    shift spread over several coordinates costs at most what the whole shift costs in one of them.
    """
    if epsilon > _HUGE:
        return np.full_like(orders, epsilon)
    finite = np.isfinite(orders)
    a, down = np.where(finite, orders, 2.0), np.where(finite, share, 0.0)
    up = 1 - down
    small = np.minimum((a - 1) * epsilon, 1.0)
    rising, falling = up * np.expm1(small), down * np.expm1(-a * epsilon)
    near = np.log1p(np.maximum(rising + falling, 0.0) + 16 * _ULP * (rising - falling))
    far = np.logaddexp(np.log(up) + (a - 1) * epsilon, np.log(np.maximum(down, 1e-300)) - a * epsilon)
    grown = np.where((a - 1) * epsilon < 1, near, far) / (a - 1)
    return np.where(finite, np.minimum(grown * (1 + 32 * _ULP), epsilon), epsilon)


def _laplace(leaf: Any, unit: Unit, orders: Array) -> Array:
    # Mironov 2017, Prop. 6: B = (a − 1)/(2a − 1)
    a = np.where(np.isfinite(orders), orders, 2.0)
    return _exponentials(pure_epsilon(leaf, unit), (a - 1) / (2 * a - 1), orders)


def _discrete_laplace(leaf: Any, unit: Unit, orders: Array) -> Array:
    """Three geometric sums, left of both centers, between them and right of both.

    With h = τ/2 = 1/(2·scale) they give 1 − 2B = tanh(h)/tanh((2a − 1)h), that is
    B = sinh((2a − 2)h)/(2·sinh((2a − 1)h)·cosh(h)); as h → 0 this is the continuous (a − 1)/(2a − 1).
    """
    half = 0.5 / leaf.scale
    if math.isinf(half):
        return np.full_like(orders, math.inf)
    a = np.where(np.isfinite(orders), orders, 2.0)
    ratio = np.exp(-half) * np.expm1(-4 * (a - 1) * half) / np.expm1(-2 * (2 * a - 1) * half)  # of the two sinh
    inverse_cosh = 2 * math.exp(-half) / (1 + math.exp(-2 * half))
    return _exponentials(pure_epsilon(leaf, unit), ratio * inverse_cosh / 2, orders)


def _pure(leaf: Any, unit: Unit, orders: Array) -> Array:
    return swapped(pure_epsilon(leaf, unit), orders)


def _exponential(leaf: Any, unit: Unit, orders: Array) -> Array:
    # a loss of range ε is worth ε²/8 in zCDP (Cesar & Rogers 2021, Lemma 3.2), and it is ε-DP as well
    epsilon = pure_epsilon(leaf, unit)
    return np.minimum(linear(epsilon * epsilon / 8, orders), swapped(epsilon, orders))


def _randomized_response(leaf: Any, unit: Unit, orders: Array) -> Array:
    """Two answers trade places and the others stay; several records are several answers, of which only kε is known."""
    epsilon = pure_epsilon(leaf, unit)
    others = leaf.categories - 2
    share = 1.0 if unit.records > 1 else 1 / (1 + others * math.exp(-epsilon) / (1 + math.exp(-epsilon)))
    return swapped(epsilon, orders, share)


def _approximate(leaf: Any, unit: Unit, orders: Array) -> Array:
    return swapped(group_privacy(leaf.epsilon, leaf.delta, stretch(leaf, unit))[0], orders)


def _concentrated(leaf: Any, unit: Unit, orders: Array) -> Array:
    # Bun & Steinke 2016, Prop. 1.9: k steps cost k²ρ
    k = stretch(leaf, unit)
    return linear(leaf.rho * k * k, orders)


def _shuffled(leaf: Any, unit: Unit, orders: Array) -> Array:
    """The crowd's curve for one replaced answer; for several of one person only what each report is by itself."""
    alone = swapped(pure_epsilon(leaf, unit), orders)
    if unit.records > 1:
        return alone
    a = np.where(np.isfinite(orders), orders, 2.0)
    return np.where(np.isfinite(orders), np.minimum(shuffled_curve(leaf, a), alone), alone)


_LEAVES: dict[type[events.Leaf], Callable[[Any, Unit, Array], Array]] = {
    events.Gaussian: _gaussian,
    events.DiscreteGaussian: _gaussian,
    events.Laplace: _laplace,
    events.DiscreteLaplace: _discrete_laplace,
    events.Exponential: _exponential,
    events.NoisyMax: _pure,
    events.Pure: _pure,
    events.RandomizedResponse: _randomized_response,
    events.Approximate: _approximate,
    events.Concentrated: _concentrated,
    events.Shuffled: _shuffled,
}
