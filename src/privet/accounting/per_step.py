"""One step of a part as an (ε, δ) pair: what basic and advanced composition add up.

Sampling is amplification (Balle, Barthe & Gaboardi 2018): (ε, δ) of the leaf becomes (ln(1 + q(e^ε − 1)), qδ).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

from privet.accounting.accountant import Accountant
from privet.accounting.analytic_gaussian import log_gdp_delta
from privet.accounting.canonical import CountedEvent
from privet.accounting.conversions import gdp_to_epsilon, group_privacy, zcdp_to_epsilon
from privet.accounting.laws import draws_of_one_row
from privet.accounting.neighbor_distance import gaussian_mu, require_one_record, stretch
from privet.accounting.pure import amplified, exact_epsilon, pure_epsilon
from privet.accounting.search import falling_root
from privet.accounting.shuffling import shuffled_epsilon
from privet.accounting.table import require_all
from privet.accounting.zcdp import rho
from privet.core import Neighbours, Unit
from privet.core import event as events

__all__ = ["StepBounds", "least_delta", "steps_of"]

_UP = 1 + 1e-12
_CLASSES = 64


@dataclass(frozen=True)
class StepBounds:
    """All runs of one part: each is (`epsilon_at(δ₀)`, δ₀ + `own_delta`)-DP for any δ₀ that is spent on it."""

    count: int
    own_delta: float
    """What an (ε, δ) block brings along."""
    spends: bool
    """Whether δ₀ helps; if not, δ₀ = 0 will do."""
    epsilon_at: Callable[[float], float]
    exact: Fraction | None = None
    """The pure ε of each run before rounding, where it is known so."""


def steps_of(parts: Sequence[CountedEvent], unit: Unit, accountant: Accountant) -> tuple[StepBounds, ...]:
    """The steps of each part, after a look at the table."""
    require_all(parts, unit, accountant)
    return tuple(_SAMPLINGS[type(part.sampling)](part, unit) for part in parts)


def least_delta(epsilon_at: Callable[[float], float], epsilon: float) -> float:
    """The least δ, rounded up, at which a falling bound ε(δ) has come down to ε; 1 if it never does."""
    if epsilon_at(0.0) <= epsilon:
        return 0.0
    if epsilon_at(1 - 2.0**-53) > epsilon:
        return 1.0
    return math.exp(falling_root(lambda x: epsilon_at(math.exp(x)) - epsilon, -744.0, -(2.0**-53), tolerance=1e-12))


def _leaf_epsilon(leaf: events.Leaf, unit: Unit, delta: float) -> float:
    """ε of one unsampled run at δ; any mechanism is (0, 1)-DP."""
    return 0.0 if delta >= 1 else _LEAVES[type(leaf)](leaf, unit, delta)


def _own_delta(leaf: events.Leaf, unit: Unit) -> float:
    if isinstance(leaf, events.Approximate):
        return group_privacy(leaf.epsilon, leaf.delta, stretch(leaf, unit))[1]
    return 0.0


def _whole(part: CountedEvent, unit: Unit) -> StepBounds:
    """Unsampled, or a pass in which every row is used once."""
    spends = type(part.leaf) in _SPENDING
    return StepBounds(
        part.count,
        _own_delta(part.leaf, unit),
        spends,
        lambda d: _leaf_epsilon(part.leaf, unit, d),
        None if spends else exact_epsilon(part.leaf, unit),
    )


def _amplified(part: CountedEvent, unit: Unit, priced_for: Unit, rate: float) -> StepBounds:
    """The leaf's (ε, δ₀/q) for the batch's neighbors, amplified; or the unsampled leaf for the unit's own, if less."""
    require_one_record(part.leaf, unit)
    plain = _whole(part, unit)

    def epsilon_at(delta: float) -> float:
        inner = _leaf_epsilon(part.leaf, priced_for, delta / rate * (1 - 1e-15))
        sampled = amplified(inner, rate) * _UP
        return min(sampled, plain.epsilon_at(delta)) if plain.own_delta == 0 else sampled

    return StepBounds(part.count, rate * _own_delta(part.leaf, priced_for), plain.spends, epsilon_at)


def _poisson(part: CountedEvent, unit: Unit) -> StepBounds:
    """Add/remove and zero-out: their Thm 8. Replace-one: their Thm 2, with both terms below the replace-one leaf."""
    sampling: Any = part.sampling
    return _amplified(part, unit, unit, sampling.sample_rate)


def _fixed_size(part: CountedEvent, unit: Unit) -> StepBounds:
    """Their Thm 9: a batch without the row has another in its place, so the leaf is priced for replace-one."""
    sampling: Any = part.sampling
    rate = sampling.batch_size / sampling.population
    if rate == 1:
        return _whole(part, unit)
    return _amplified(part, unit, replace(unit, neighbours=Neighbours.REPLACE), rate)


def _with_replacement(part: CountedEvent, unit: Unit) -> StepBounds:
    """Their Thm 10: a row drawn k times moves the sum by 2k clips; δ′ = Σ_k P(k draws)·δ_k(ε), and η = P(k ≥ 1)."""
    require_one_record(part.leaf, unit)
    leaf, sampling = cast("events.Gaussian", part.leaf), cast("events.WithReplacement", part.sampling)
    draws, population, noise = sampling.draws, sampling.population, leaf.noise_multiplier

    def epsilon_at(delta: float) -> float:
        if delta <= 0:
            return math.inf
        chance, weights, rest = draws_of_one_row(draws, population, delta * 1e-3)
        classes = _classes(weights)

        def excess(epsilon: float) -> float:
            known = math.fsum(w * math.exp(log_gdp_delta(2 * k / noise, epsilon)) for k, w in classes)
            total = chance * (known + rest)
            return math.log(total) - math.log(delta) if total > 0 else -math.inf

        if excess(0.0) <= 0:
            return 0.0
        most = gdp_to_epsilon(2 * classes[-1][0] / noise, delta / 2)
        while excess(most) > 0:
            most *= 2
            if math.isinf(most):
                return math.inf
        return amplified(falling_root(excess, 0.0, most, tolerance=1e-10), chance) * _UP

    return StepBounds(part.count, 0.0, True, epsilon_at)


def _classes(weights: Sequence[float]) -> list[tuple[int, float]]:
    """(k, P(k draws)); when there are many k, neighbors are put together under the largest of them."""
    size = -(-len(weights) // _CLASSES)
    ends = range(size, len(weights) + size, size)
    return [(min(end, len(weights)), math.fsum(weights[end - size : end])) for end in ends]


def _gaussian(leaf: Any, unit: Unit, delta: float) -> float:
    return gdp_to_epsilon(gaussian_mu(leaf, unit), delta)


def _by_rho(leaf: Any, unit: Unit, delta: float) -> float:
    return zcdp_to_epsilon(rho(leaf, unit), delta)


def _pure(leaf: Any, unit: Unit, _: float) -> float:
    return pure_epsilon(leaf, unit)


def _approximate(leaf: Any, unit: Unit, _: float) -> float:
    return group_privacy(leaf.epsilon, leaf.delta, stretch(leaf, unit))[0]


def _shuffled(leaf: Any, unit: Unit, delta: float) -> float:
    return shuffled_epsilon(leaf, delta) if unit.records == 1 else pure_epsilon(leaf, unit)


_LEAVES: dict[type[events.Leaf], Callable[[Any, Unit, float], float]] = {
    events.Gaussian: _gaussian,
    events.DiscreteGaussian: _by_rho,
    events.Concentrated: _by_rho,
    events.Laplace: _pure,
    events.DiscreteLaplace: _pure,
    events.Exponential: _pure,
    events.NoisyMax: _pure,
    events.Pure: _pure,
    events.RandomizedResponse: _pure,
    events.Approximate: _approximate,
    events.Shuffled: _shuffled,
}
_SPENDING = frozenset({events.Gaussian, events.DiscreteGaussian, events.Concentrated, events.Shuffled})
_SAMPLINGS: dict[type[events.Sampling] | type[None], Callable[[CountedEvent, Unit], StepBounds]] = {
    type(None): _whole,
    events.Poisson: _poisson,
    events.WithoutReplacement: _fixed_size,
    events.WithReplacement: _with_replacement,
    events.ShuffledEpoch: _whole,
    events.IndependentBatches: _whole,
}
