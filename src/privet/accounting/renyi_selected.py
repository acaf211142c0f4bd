"""The Rényi curve of the best of a random number of runs, from the curve of one run.

Papernot & Steinke 2022, Theorem 2. Let q and q′ be the chances, on the two data sets, that a run is no better than some
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

from privet.accounting.search import Array
from privet.core.trials import Trials

__all__ = ["log_ratios", "mean_up", "selected_curve"]

_UP = 1 + 1e-14
_MEAN_UP = 1 + 1e-12


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
