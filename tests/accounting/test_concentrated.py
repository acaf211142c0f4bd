"""zCDP: every ρ against the Rényi curve it must dominate, and the conversion against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privet.accounting import renyi, zcdp
from privet.accounting.canonical import CountedEvent
from privet.accounting.conversions import zcdp_to_delta, zcdp_to_epsilon
from privet.core.errors import NotProven
from privet.core.event import (
    Approximate,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Leaf,
    NoisyMax,
    Poisson,
    Pure,
    RandomizedResponse,
    ShuffledEpoch,
)
from privet.core.unit import Neighbours, Unit

ADD, ZERO = Unit(), Unit(neighbours=Neighbours.ZERO_OUT)
REPLACE = Unit(neighbours=Neighbours.REPLACE)
ORDERS = tuple((1 + np.geomspace(1e-5, 1e5, 400)).tolist())


@pytest.mark.parametrize("size", [1e-4, 0.1, 1.0, 6.0, 50.0])
@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
def test_rho_dominates_the_exact_renyi_curve_and_touches_it(size: float, neighbours: Unit) -> None:
    """Catches ρ < D_a/a at some order (ε²/4, a forgotten 2) and ρ that is larger than its largest value (ε²/2)."""
    leaves: list[Leaf] = [
        Gaussian(1 / size),
        Laplace(1 / size),
        DiscreteLaplace(1 / size, 1),
        DiscreteLaplace(3 / size, 3),
    ]
    leaves += [Pure(size), NoisyMax(size), Pure(size, Neighbours.REPLACE) if neighbours is REPLACE else Pure(size)]
    for leaf in leaves:
        curve = renyi.curve(CountedEvent(leaf, None, 1), neighbours, ORDERS)
        largest = max(v / a for v, a in zip(curve.values, ORDERS, strict=True))
        assert zcdp.rho(leaf, neighbours) >= largest * (1 - 1e-6)
        assert zcdp.rho(leaf, neighbours) == pytest.approx(largest, rel=1e-3)


def test_rho_of_each_leaf() -> None:
    """Catches a swapped rule: the numbers are worked out by hand."""
    assert zcdp.rho(Gaussian(2.0), REPLACE) == pytest.approx(0.5)
    assert zcdp.rho(Gaussian(2.0), Unit(neighbours=Neighbours.L2_BALL, radius=3.0)) == pytest.approx(9 / 8)
    assert zcdp.rho(DiscreteGaussian(4.0, 2.0), ADD) == pytest.approx(1 / 8)
    assert zcdp.rho(DiscreteGaussian(4.0, 2.0), REPLACE) == pytest.approx(1 / 2)
    assert zcdp.rho(Exponential(1.0), ADD) == pytest.approx(1 / 8)
    assert zcdp.rho(Exponential(1.0), REPLACE) == pytest.approx(1 / 2)
    assert zcdp.rho(Exponential(100.0), ADD) == pytest.approx(100.0)  # pure ε is better than ε²/8 here
    assert zcdp.rho(Laplace(1.0), ADD) == pytest.approx(math.exp(-1))
    assert zcdp.rho(Pure(1.0), ADD) == pytest.approx(math.tanh(0.5))
    assert zcdp.rho(RandomizedResponse(1.0, 5), REPLACE) == pytest.approx(math.tanh(0.5))
    assert zcdp.rho(Concentrated(0.1), REPLACE) == pytest.approx(0.4)
    assert zcdp.rho(Concentrated(0.1), Unit(records=5)) == pytest.approx(2.5)


def test_sums_over_parts_and_counts() -> None:
    """Catches a dropped part or count: many parts cost what one block of their ρ costs."""
    parts = [
        CountedEvent(Gaussian(10.0), None, 70),
        CountedEvent(Concentrated(0.05), None, 2),
        CountedEvent(Gaussian(20.0), ShuffledEpoch(9), 40),
    ]
    rho = 70 / 200 + 0.1 + 40 / 800
    with pytest.raises(NotProven):
        zcdp.epsilon(parts, 1e-6, ADD)  # a shuffled epoch has no add/remove
    assert zcdp.epsilon(parts, 1e-6, ZERO) == pytest.approx(zcdp_to_epsilon(rho, 1e-6), rel=1e-9)
    assert zcdp.delta(parts, 4.0, ZERO) == pytest.approx(zcdp_to_delta(rho, 4.0), rel=1e-9)


def test_conversion_lies_between_the_truth_and_the_textbook() -> None:
    """Catches ρ + 2√(ρ·log(1/δ)) with a lost factor, and a conversion below the exact Gaussian curve."""
    from privet.accounting.conversions import gdp_to_epsilon

    for rho in (1e-8, 1e-3, 0.1, 2.0, 300.0, 1e6):
        for delta in (1e-2, 1e-5, 1e-12, 1e-300):
            found = zcdp_to_epsilon(rho, delta)
            assert gdp_to_epsilon(math.sqrt(2 * rho), delta) <= found
            assert found <= rho + 2 * math.sqrt(rho * math.log(1 / delta)) * (1 + 1e-12)
            if found > 0 and rho < 1e6:
                assert zcdp_to_delta(rho, found) == pytest.approx(delta, rel=1e-4)
    assert zcdp_to_epsilon(0.5, 1e-5) == pytest.approx(4.728, abs=1e-3)


def test_edges() -> None:
    """Catches NaN, a finite ε at δ = 0 for noise that has none, and a pure sum that is not used."""
    assert zcdp.epsilon([CountedEvent(Gaussian(1.0), None, 1)], 0.0, ADD) == math.inf
    assert zcdp.epsilon([CountedEvent(Laplace(4.0), None, 2)], 0.0, ADD) == 0.5
    assert zcdp.epsilon([CountedEvent(Laplace(1.0), None, 1)], 1e-9, ADD) == 1.0
    assert zcdp.delta([CountedEvent(Laplace(4.0), None, 2)], 0.5, ADD) == 0.0
    assert zcdp.epsilon([CountedEvent(Concentrated(0.0), None, 3)], 0.0, ADD) == 0.0
    assert zcdp.epsilon([], 1e-5, ADD) == 0.0
    for leaf, sampling in ((Gaussian(1.0), Poisson(0.1)), (Approximate(1.0, 1e-6), None)):
        with pytest.raises(NotProven):
            zcdp.epsilon([CountedEvent(leaf, sampling, 1)], 1e-5, ADD)


def test_monotone_in_every_corner() -> None:
    """Catches overflow, and an ε that falls with more steps or less noise."""
    for delta in (1e-3, 1e-300):
        found = np.array(
            [
                [zcdp.epsilon([CountedEvent(Gaussian(noise), None, n)], delta, ADD) for n in (1, 10**4, 10**9)]
                for noise in (1e6, 10.0, 1.0, 1e-3)
            ]
        )
        assert np.all(np.isfinite(found))
        assert np.all(found >= 0)
        assert np.all(np.diff(found, axis=0) >= 0)
        assert np.all(np.diff(found, axis=1) >= 0)
    assert 0 <= zcdp.delta([CountedEvent(Gaussian(1e-3), None, 10**9)], 1e6, ADD) <= 1
    assert zcdp.delta([CountedEvent(Gaussian(1e6), None, 1)], 1e6, ADD) == 0.0
