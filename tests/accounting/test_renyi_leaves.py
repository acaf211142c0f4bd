"""Rényi curves of unsampled leaves against sums and integrals of the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import logsumexp

from privet.accounting import renyi
from privet.accounting.canonical import CountedEvent
from privet.core.event import (
    Approximate,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    NoisyMax,
    Pure,
    RandomizedResponse,
)
from privet.core.unit import Neighbours, Unit
from tests.accounting.divergences import ADD, ORDERS, REPLACE, ZERO, integrated, laplace, normal, summed, value

UNITS = [(ADD, 1.0), (ZERO, 1.0), (REPLACE, 2.0), (Unit(neighbours=Neighbours.L1_BALL, radius=0.3), 0.3)]


@pytest.mark.parametrize(("unit", "moved"), UNITS)
@pytest.mark.parametrize("order", ORDERS)
def test_gaussian_and_laplace_are_their_integrals(unit: Unit, moved: float, order: float) -> None:
    """Catches a forgotten factor 2 (replace, or variance against deviation), and a wrong Laplace closed form."""
    for noise in (0.7, 3.0):
        end = 12 * noise * 3 + order * moved
        exact = integrated(normal(moved, noise), normal(0, noise), order, -end, end, [0, moved])
        assert value(Gaussian(noise), unit, order) == pytest.approx(exact, rel=1e-7)
        end = 60 * noise + moved
        exact = integrated(laplace(moved, noise), laplace(0, noise), order, -end, end, [0, moved])
        assert value(Laplace(noise), unit, order) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("scale", "bound"), [(0.4, 1), (2.0, 1), (3.0, 7), (30.0, 2)])
def test_discrete_laplace_is_its_sum(order: float, scale: float, bound: int) -> None:
    """Catches a wrong geometric sum and a bound that is not doubled when a contribution is replaced."""
    for unit, moved in ((ADD, bound), (REPLACE, 2 * bound)):
        k = np.arange(-60 * int(scale + 2), 60 * int(scale + 2) + moved + 1)
        normaliser = math.log(math.tanh(0.5 / scale))
        p, q = normaliser - np.abs(k - moved) / scale, normaliser - np.abs(k) / scale
        assert value(DiscreteLaplace(scale, bound), unit, order) == pytest.approx(summed(p, q, order), rel=1e-9)
        two = summed(p, q, order)
        halves = 2 * value(DiscreteLaplace(scale, 1), Unit(), order)
        if moved == 2 * bound and bound == 1:
            assert halves <= two * (1 + 1e-12)  # a shift spread over two coordinates costs no more


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("sigma", "bound"), [(0.5, 1.0), (2.0, 1.0), (8.0, 3.0)])
def test_discrete_gaussian_is_bounded_by_the_continuous_one(order: float, sigma: float, bound: float) -> None:
    """Catches a bound below the true divergence, and one that is loose where discretisation no longer matters."""
    k = np.arange(-400, 401)
    p, q = -((k - 2 * bound) ** 2) / (2 * sigma**2), -(k**2) / (2 * sigma**2)
    exact = summed(p - logsumexp(p), q - logsumexp(q), order)
    ours = value(DiscreteGaussian(sigma, bound), REPLACE, order)
    assert ours >= exact * (1 - 1e-12)
    if sigma >= 2:
        assert ours == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("categories", [2, 3, 50])
def test_randomized_response_has_k_atoms(order: float, categories: int) -> None:
    """Catches binary response in the place of K-ary, and ε doubled under replace-one (a report is always there)."""
    for epsilon in (1e-6, 0.5, 3.0, 40.0):
        weights = np.zeros(categories)
        p, q = weights.copy(), weights.copy()
        p[0] = q[1] = epsilon
        exact = summed(p - logsumexp(p), q - logsumexp(q), order)
        ours = value(RandomizedResponse(epsilon, categories), REPLACE, order)
        assert ours == pytest.approx(exact, rel=1e-6 if epsilon > 1e-3 else 1e-2)


def test_pure_blocks_are_binary_randomized_response() -> None:
    """Catches a Pure, NoisyMax or Approximate block that forgets its ε, its two steps under replace, or its δ."""
    for order in ORDERS:
        one, two = value(RandomizedResponse(0.8), REPLACE, order), value(RandomizedResponse(1.6), REPLACE, order)
        assert value(Pure(0.8), ADD, order) == one
        assert value(Pure(0.8), REPLACE, order) == two
        assert value(Pure(0.8, Neighbours.REPLACE), REPLACE, order) == one
        assert value(NoisyMax(0.8), REPLACE, order) == two
        assert value(Approximate(0.8, 1e-6), ADD, order) == one
    found = renyi.curve(CountedEvent(Approximate(0.8, 1e-6), None, 1000), ADD, (2.0,))
    assert found.delta == pytest.approx(1 - (1 - 1e-6) ** 1000, rel=1e-9)
    doubled = renyi.curve(CountedEvent(Approximate(0.8, 1e-6), None, 1), REPLACE, (2.0,))
    assert doubled.delta == pytest.approx(1e-6 * (1 + math.exp(0.8)), rel=1e-9)


def test_exponential_mechanism_instances_stay_below_the_curve() -> None:
    """Catches ε²/2 or ε/2 in place of ε²/8, and a bound that some exponential mechanism breaks (seeded instances)."""
    rng = np.random.default_rng(7)
    worst = dict.fromkeys((1.5, 2.0, 8.0), 0.0)
    for epsilon in (0.3, 1.0, 4.0):
        for _ in range(300):
            score = rng.uniform(-4, 4, size=rng.integers(2, 6))
            other = score + rng.choice([-1.0, 1.0], size=score.size)
            p, q = epsilon * score / 2, epsilon * other / 2
            for order in worst:
                exact = summed(p - logsumexp(p), q - logsumexp(q), order)
                ours = value(Exponential(epsilon), ADD, order)
                assert exact <= ours * (1 + 1e-9)
                worst[order] = max(worst[order], exact / ours)
    assert min(worst.values()) > 0.9  # half of ε, or ε²/2, would leave far more room
    assert value(Exponential(1.0), REPLACE, 2.0) == pytest.approx(4 * 2 / 8)


def test_concentrated_block_is_a_line() -> None:
    """Catches k steps priced kρ instead of k²ρ."""
    assert value(Concentrated(0.1), ADD, 3.0) == pytest.approx(0.3)
    assert value(Concentrated(0.1), REPLACE, 3.0) == pytest.approx(1.2)
    assert value(Concentrated(0.1), Unit(records=3), 3.0) == pytest.approx(2.7)
