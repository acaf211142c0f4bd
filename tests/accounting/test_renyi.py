"""The Rényi accountant against published numbers, other people's accountants, and its own corners."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from privet.accounting import renyi
from privet.accounting.canonical import CountedEvent
from privet.accounting.conversions import rdp_to_epsilon, zcdp_to_epsilon
from privet.core.errors import InvalidInput, NotProven
from privet.core.event import (
    Approximate,
    Gaussian,
    Laplace,
    Poisson,
    Pure,
    RandomizedResponse,
    Sampling,
    WithoutReplacement,
    WithReplacement,
)
from privet.core.unit import Neighbours, Unit
from tests.accounting.divergences import ADD, REPLACE, rdp_to_epsilon_classic, value

ANCHORS = [
    (256 / 60000, 1.1, 14062, 1e-5, 3.009, 2.597, 2.3816),
    (256 / 60000, 1.3, 3515, 1e-5, 1.192, 0.954, 0.8644),
    (0.01, 4.0, 10000, 1e-5, 1.259, 1.035, 0.9469),
    (512 / 60000, 1.23, 4680, 1e-5, 2.994, 2.579, 2.3613),
]


@pytest.mark.parametrize(("rate", "noise", "steps", "delta", "classic", "tight", "truth"), ANCHORS)
def test_published_runs(
    rate: float, noise: float, steps: int, delta: float, classic: float, tight: float, truth: float
) -> None:
    """Catches a wrong conversion, noise taken by half, or a step too few: the numbers are those of published runs."""
    parts = [CountedEvent(Gaussian(noise), Poisson(rate), steps)]
    orders = tuple(float(a) for a in range(2, 257))
    curve = renyi.total(parts, ADD, orders)
    assert rdp_to_epsilon_classic(curve.orders, curve.values, delta) == pytest.approx(classic, abs=1e-3)
    ours = renyi.epsilon(parts, delta, ADD)
    assert ours == pytest.approx(tight, abs=1e-3)
    assert truth < ours <= rdp_to_epsilon(curve.orders, curve.values, delta)
    assert renyi.delta(parts, ours, ADD) == pytest.approx(delta, rel=1e-6)


def test_abadi_and_the_order_grid_edge() -> None:
    """Catches an answer that jumps with δ at 1e-18, or is an artefact of a grid of orders that ends too early."""
    parts = [CountedEvent(Gaussian(4.0), Poisson(0.00033), 10000)]
    orders = tuple(float(a) for a in range(2, 513))
    curve = renyi.total(parts, ADD, orders)
    for delta in (1.10e-18, 1.13e-18):
        assert rdp_to_epsilon_classic(curve.orders, curve.values, delta) == pytest.approx(0.171, abs=1e-3)
        assert renyi.epsilon(parts, delta, ADD) == pytest.approx(0.146, abs=1e-3)
    for steps, classic, tight in ((10000, 1.2586, 1.035), (40000, 2.576, 2.213)):
        curve = renyi.total([CountedEvent(Gaussian(4.0), Poisson(0.01), steps)], ADD, orders)
        assert rdp_to_epsilon_classic(curve.orders, curve.values, 1e-5) == pytest.approx(classic, abs=1e-3)
        assert rdp_to_epsilon(curve.orders, curve.values, 1e-5) == pytest.approx(tight, abs=1e-3)


def test_an_order_next_to_one_makes_no_zero() -> None:
    """Catches ε = 0 at a δ below the true δ(0) = 4.0e-4, which comes from an order too close to 1."""
    part = CountedEvent(Gaussian(1.0), Poisson(105 / 100000), 1)
    curve = renyi.curve(part, ADD, (1 + 1e-8, 1.5, 2.0, 8.0, math.inf))
    assert 0 <= curve.epsilon(1e-3) < 1
    assert curve.epsilon(3.9e-4) > 0
    assert renyi.epsilon([part], 3.9e-4, ADD) > 0


def test_never_looser_than_opacus_nor_below_its_certified_truth() -> None:
    """Catches a sampled divergence that is off either way: opacus has the same sums at its own orders."""
    analysis = pytest.importorskip("opacus.accountants.analysis.rdp")
    orders = [1 + x / 10 for x in range(1, 100)] + list(range(12, 64))
    for rate, noise, steps in ((0.01, 0.6, 100), (0.004, 1.0, 5000), (0.1, 5.0, 300), (0.5, 2.0, 10), (1e-4, 0.5, 10)):
        theirs = analysis.compute_rdp(q=rate, noise_multiplier=noise, steps=steps, orders=orders)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            epsilon, _ = analysis.get_privacy_spent(orders=orders, rdp=theirs, delta=1e-6)
        parts = [CountedEvent(Gaussian(noise), Poisson(rate), steps)]
        assert renyi.epsilon(parts, 1e-6, ADD) <= epsilon * (1 + 2e-3)
        whole = [a for a in orders if a == int(a)]
        ours = np.array(renyi.total(parts, ADD, whole).values)
        assert ours == pytest.approx(np.array([theirs[orders.index(a)] for a in whole]), rel=1e-6)


def test_repeated_randomized_response_is_not_priced_as_one() -> None:
    """A fault of dp-accounting 0.6: randomised response × 10 costs what one costs."""
    one = value(RandomizedResponse(0.5, 4), REPLACE, 3.0)
    assert value(RandomizedResponse(0.5, 4), REPLACE, 3.0, None, 10) == pytest.approx(10 * one)
    part, ten = CountedEvent(RandomizedResponse(0.5, 4), None, 1), CountedEvent(RandomizedResponse(0.5, 4), None, 10)
    assert renyi.epsilon([ten], 1e-6, REPLACE) > 2.5 * renyi.epsilon([part], 1e-6, REPLACE)


def test_replace_one_uses_two_clips() -> None:
    """A fault of dp-accounting 0.6: its Rényi accountant prices a Gaussian under replace-one as under add/remove."""
    assert value(Gaussian(2.0), REPLACE, 5.0) == pytest.approx(4 * value(Gaussian(2.0), ADD, 5.0))
    assert value(Laplace(2.0), REPLACE, math.inf) == pytest.approx(1.0)


def test_group_of_records_moves_together() -> None:
    """Catches √k or k instead of k² for Gaussian noise, and sampled groups that group privacy must price elsewhere."""
    group = Unit(records=3)
    assert value(Gaussian(2.0), group, 2.0) == pytest.approx(9 * value(Gaussian(2.0), ADD, 2.0))
    assert value(Laplace(2.0), group, math.inf) == pytest.approx(1.5)
    assert value(RandomizedResponse(0.5, 9), Unit(neighbours=Neighbours.REPLACE, records=2), math.inf) == 1.0
    for sampling in (Poisson(0.1), WithoutReplacement(10, 100)):
        unit = group if isinstance(sampling, Poisson) else Unit(neighbours=Neighbours.REPLACE, records=3)
        with pytest.raises(NotProven, match="group privacy"):
            value(Gaussian(2.0), unit, 2.0, sampling)


def test_refusals() -> None:
    """Catches a cell that is priced although the table has no theorem for it."""
    for leaf, sampling, unit in (
        (Gaussian(1.0), Poisson(0.1), REPLACE),
        (Gaussian(1.0), WithReplacement(10, 100), REPLACE),
        (Approximate(1.0, 1e-5), Poisson(0.1), ADD),
        (RandomizedResponse(1.0), None, ADD),
        (Laplace(1.0), None, Unit(neighbours=Neighbours.L2_BALL, radius=1.0)),
    ):
        with pytest.raises(NotProven):
            value(leaf, unit, 2.0, sampling)
    with pytest.raises(InvalidInput, match="orders"):
        renyi.curve(CountedEvent(Gaussian(1.0), None, 1), ADD, (1.0, 2.0))


def test_pure_events_need_no_delta() -> None:
    """Catches an order ∞ that is lost, rounded up, or let through where blocks have used up δ."""
    parts = [CountedEvent(Laplace(4.0), None, 3), CountedEvent(Pure(0.25), None, 1)]
    assert renyi.epsilon(parts, 0.0, ADD) == 1.0
    assert renyi.delta(parts, 1.0, ADD) == 0.0
    block = [CountedEvent(Approximate(1.0, 1e-6), None, 2)]
    assert renyi.epsilon(block, 1e-6, ADD) == math.inf
    assert renyi.epsilon(block, 1e-5, ADD) == pytest.approx(2.0, rel=1e-3)
    assert renyi.delta(block, 2.0, ADD) == pytest.approx(2e-6, rel=1e-4)
    assert renyi.epsilon([CountedEvent(Gaussian(1.0), None, 1)], 0.0, ADD) == math.inf


@pytest.mark.parametrize("sampling", [None, Poisson(0.01), Poisson(0.9)])
def test_monotone_and_finite_in_every_corner(sampling: Sampling | None) -> None:
    """Catches overflow, NaN, negative ε, and an ε that falls when steps are added or noise is taken away."""
    for delta in (1e-2, 1e-9, 1e-300):
        found = np.array(
            [
                [
                    renyi.epsilon([CountedEvent(Gaussian(noise), sampling, n)], delta, ADD)
                    for n in (1, 10**3, 10**6, 10**9)
                ]
                for noise in (1e6, 1e3, 10.0, 1.0, 0.1, 1e-3)
            ]
        )
        assert np.all(found >= 0)
        assert not np.any(np.isnan(found))
        assert np.all(np.diff(found, axis=0) >= 0)
        assert np.all(np.diff(found, axis=1) >= 0)
    for epsilon in (0.0, 1.0, 1e6):
        for noise in (1e6, 1.0, 1e-3):
            delta = renyi.delta([CountedEvent(Gaussian(noise), sampling, 10**9)], epsilon, ADD)
            assert 0 <= delta <= 1


def test_extension_beyond_the_default_orders() -> None:
    """Catches an answer stuck at the edge of the grid: closed forms say what the best order gives."""
    for noise, count in ((1e4, 1), (1e3, 10), (1.0, 10**6), (1e-2, 10**6)):
        rho = count / (2 * noise * noise)
        ours = renyi.epsilon([CountedEvent(Gaussian(noise), None, count)], 1e-12, ADD)
        assert ours == pytest.approx(zcdp_to_epsilon(rho, 1e-12), rel=1e-4)
