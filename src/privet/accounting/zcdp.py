"""The zCDP accountant (Bun & Steinke 2016): every part is worth a ρ, the ρ add up, and the sum becomes ε or δ."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from privet.accounting.accountant import Accountant
from privet.accounting.canonical import CountedEvent
from privet.accounting.conversions import zcdp_to_delta, zcdp_to_epsilon
from privet.accounting.neighbor_distance import gaussian_mu, stretch
from privet.accounting.pure import exact_epsilon, pure_epsilon, sum_up
from privet.accounting.table import require_all
from privet.core import Unit
from privet.core import event as events

__all__ = ["delta", "epsilon", "rho"]

_UP = 1 + 1e-14
_ULP = 2.0**-52
_TINY = 5e-324


def epsilon(parts: Sequence[CountedEvent], delta: float, unit: Unit) -> float:
    """Return a certified ε at δ, from Σρ; where every part is pure, no more than Σε.

    Args:
        parts: The canonical parts of an event.
        delta: The δ.
        unit: Whose data is protected.

    Raises:
        NotProven: No theorem covers a part for the unit.
    """
    return min(zcdp_to_epsilon(_total(parts, unit), delta), _pure(parts, unit))


def delta(parts: Sequence[CountedEvent], epsilon: float, unit: Unit) -> float:
    """Return a certified δ at ε, from Σρ; where every part is pure, 0 once ε reaches Σε.

    Args:
        parts: The canonical parts of an event.
        epsilon: The ε.
        unit: Whose data is protected.

    Raises:
        NotProven: No theorem covers a part for the unit.
    """
    from_rho = zcdp_to_delta(_total(parts, unit), epsilon)
    return 0.0 if _pure(parts, unit) <= epsilon else from_rho


def rho(leaf: events.Leaf, unit: Unit) -> float:
    """The ρ of one unsampled run (or of one whole pass).

    For a pair with losses ±ε, and for Laplace noise, D_a ≤ a·KL at every order a ≥ 1, so ρ is the KL divergence, the
    limit of D_a at a = 1. Proof: E = e^((a−1)D_a) depends on a through v = (2a − 1)² alone, and is an entire function
    of v of order ½: cosh(√v·ε/2)/cosh(ε/2) for losses ±ε, e^(−ε/2)·(cosh(√v·ε/2) + sinh(√v·ε/2)/√v) for Laplace noise.
    All its zeros are real and negative (those of cos(x); −x² with cos(xε/2) + sin(xε/2)/x = 0, the eigenvalues of a
    vibrating string with one elastic end; for discrete noise those of T_m(c) + tanh(τ/2)·c·U_(m−1)(c), which changes
    its sign between any two of the m + 1 extrema of T_m). By Hadamard's theorem log E is then a sum of terms
    log(1 + v/z), which is concave: log E ≤ (v − 1)·(log E)′(1) = a(a − 1)·KL, as v − 1 = 4a(a − 1) and log E = 0 at 1.

    >>> rho(events.Gaussian(2.0), Unit())
    0.125
    """
    value = _RHO[type(leaf)](leaf, unit)
    free = isinstance(leaf, events.Concentrated) or pure_epsilon(leaf, unit) == 0
    return value if value > 0 or free else _TINY  # what underflows to 0 still costs something


def _total(parts: Sequence[CountedEvent], unit: Unit) -> float:
    require_all(parts, unit, Accountant.ZCDP)
    return sum_up((part.count, rho(part.leaf, unit)) for part in parts) * _UP


def _pure(parts: Sequence[CountedEvent], unit: Unit) -> float:
    exact = ((part.count, exact_epsilon(part.leaf, unit)) for part in parts)
    return sum_up((count, math.inf if epsilon is None else epsilon) for count, epsilon in exact)


def _gaussian(leaf: Any, unit: Unit) -> float:
    mu = gaussian_mu(leaf, unit)
    return mu * mu / 2


def _pure_rho(epsilon: float) -> float:
    """ε·tanh(ε/2) ≤ ε²/2: binary randomized response, which dominates every ε-DP mechanism."""
    return epsilon * math.tanh(epsilon / 2) * _UP


def _laplace(leaf: Any, unit: Unit) -> float:
    return _noise(pure_epsilon(leaf, unit), 1.0)


def _discrete_laplace(leaf: Any, unit: Unit) -> float:
    step = 1 / float(leaf.scale)
    return _noise(pure_epsilon(leaf, unit), step / math.sinh(step) if step < 700 else 0.0)


def _noise(epsilon: float, share: float) -> float:
    """KL = ε − (1 − e^(−ε))·τ/sinh τ for discrete Laplace noise of scale 1/τ; τ → 0 is the continuous one."""
    if math.isinf(epsilon):
        return math.inf
    return min(epsilon * _UP + math.expm1(-epsilon) * share * (1 - 4 * _ULP), _pure_rho(epsilon))


def _steps(leaf: Any, unit: Unit) -> float:
    return _pure_rho(pure_epsilon(leaf, unit))


def _exponential(leaf: Any, unit: Unit) -> float:
    range_of_loss = pure_epsilon(leaf, unit)  # Cesar & Rogers 2021, Lemma 3.2: a bounded range ε is worth ε²/8
    return min(range_of_loss * range_of_loss / 8 * _UP, _pure_rho(range_of_loss))


def _block(leaf: Any, unit: Unit) -> float:
    k = stretch(leaf, unit)  # Bun & Steinke 2016, Prop. 1.9: k steps cost k²ρ
    return float(leaf.rho) * k * k


_RHO: dict[type[events.Leaf], Callable[[Any, Unit], float]] = {
    events.Gaussian: _gaussian,
    events.DiscreteGaussian: _gaussian,
    events.Laplace: _laplace,
    events.DiscreteLaplace: _discrete_laplace,
    events.Exponential: _exponential,
    events.NoisyMax: _steps,
    events.Pure: _steps,
    events.RandomizedResponse: _steps,
    events.Concentrated: _block,
}
