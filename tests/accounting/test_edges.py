"""δ = 0, underflow, enormous counts, and what is not proven: a false number here would look like a very good one."""

from __future__ import annotations

import math

import pytest

from privet import accounting
from privet.accounting import Profile
from privet.accounting.laws import draws_of_one_row
from privet.core.errors import InvalidInput, NotProven
from privet.core.event import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    IndependentBatches,
    Laplace,
    Poisson,
    Pure,
    Repeated,
    Sampled,
    ShuffledEpoch,
    WithoutReplacement,
    WithReplacement,
)
from privet.core.guarantee import Interval
from privet.core.unit import Neighbours, Unit
from tests.accounting.test_contract import UNITS, events, name_of

REPLACE = Unit(neighbours=Neighbours.REPLACE)
ZERO = Unit(neighbours=Neighbours.ZERO_OUT)


def price(event: Event, delta: float, unit: Unit) -> Interval | None:
    try:
        return accounting.epsilon(event, delta, unit=unit).epsilon
    except NotProven:
        return None


@pytest.mark.parametrize("leaf", [Gaussian(5.0), DiscreteGaussian(5.0, 1), DiscreteGaussian(5.0, 2, 3)], ids=str)
@pytest.mark.parametrize(
    "by",
    [None, Poisson(0.5), WithoutReplacement(5, 10), WithReplacement(5, 10), ShuffledEpoch(3), IndependentBatches(3)],
    ids=str,
)
def test_gaussian_noise_is_never_pure(leaf: Gaussian | DiscreteGaussian, by: Poisson | None) -> None:
    """No finite ε holds at δ = 0, whatever the sampling; a law cut to finitely many atoms would claim one."""
    event = leaf if by is None else Sampled(leaf, by=by)
    for unit in UNITS:
        found = price(event, 0.0, unit)
        assert found is None or found.upper == math.inf


def test_far_out_delta_is_tiny_and_not_zero() -> None:
    """An underflowed δ of 0 would claim pure privacy."""
    for event in (Gaussian(1.0), Sampled(DiscreteGaussian(1.0, 1), by=Poisson(0.5))):
        assert accounting.delta(event, 1000.0).upper > 0
        assert Profile(event).delta(1000.0) > 0
    assert accounting.delta(Laplace(1.0), 1.001).upper == 0


@pytest.mark.parametrize("event", events(), ids=name_of)
def test_rungs_do_not_contradict_each_other(event: Event) -> None:
    """Every accountant's upper end lies above every accountant's lower end, at δ = 0 and elsewhere."""
    for unit in (Unit(), ZERO, REPLACE):
        for delta in (0.0, 1e-3):
            for composed in (event, Repeated(event, 100)):
                if price(composed, delta, unit) is None:
                    continue
                rungs = [r.guarantee.epsilon for r in accounting.ladder(composed, delta, unit=unit) if r.guarantee]
                assert max(r.lower for r in rungs) <= min(r.upper for r in rungs) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("event", "truth"),
    [
        (Repeated(Laplace(1e90), 10**91), 10.0),
        (Repeated(Pure(1e-90), 10**91), 10.0),
        (Repeated(DiscreteLaplace(1e90, 1), 10**91), 10.0),
        (Laplace(1e200), 1e-200),
        (Pure(1e-300), 1e-300),
    ],
)
def test_what_underflows_still_costs(event: Event, truth: float) -> None:
    """Squares of tiny numbers are 0 in floating point; the price must not be."""
    assert accounting.epsilon(event, 0.0).epsilon.upper >= truth * (1 - 1e-12)
    for rung in accounting.ladder(event, 0.0):
        assert rung.guarantee is None or rung.guarantee.epsilon.upper >= truth * (1 - 1e-12)


def test_tiny_gaussians_add_up() -> None:
    """10^98 Gaussians of μ = 1e-49 are one of μ = 1."""
    many = Repeated(Gaussian(1e49), 10**98)
    assert accounting.delta(many, 1.0).upper >= accounting.delta(Gaussian(1.0), 1.0).lower * (1 - 1e-9)
    assert accounting.delta(Gaussian(1e200), 0.0).upper > 0
    with pytest.raises(InvalidInput, match="count"):
        accounting.epsilon(Repeated(Repeated(Gaussian(1.0), 10**60), 10**60), 1e-5)


@pytest.mark.parametrize("size", [10**3, 10**5, 2**31 - 1, 2**32 + 1, 10**12, 10**18])
def test_draws_with_replacement_have_a_limit(size: int) -> None:
    """n draws of n rows approach one law; integers of 32 bits inside a special function once broke it."""
    chance, weights, rest = draws_of_one_row(size, size, 1e-12)
    assert chance == pytest.approx(1 - math.exp(-1), abs=1e-3)
    assert 1 <= math.fsum(weights) + rest <= 1 + 1e-6
    assert weights[1] / weights[0] == pytest.approx(0.5, abs=1e-3)
    found = accounting.epsilon(Sampled(Gaussian(5.0), by=WithReplacement(size, size)), 1e-3, unit=REPLACE).epsilon
    assert found.upper == pytest.approx(3.283, abs=0.02)


def test_rows_drawn_thousands_of_times_are_refused() -> None:
    """Nothing is cut off silently, and nothing runs for ever."""
    with pytest.raises(NotProven):
        accounting.epsilon(Sampled(Gaussian(5.0), by=WithReplacement(10**9, 3)), 1e-3, unit=REPLACE)
    assert draws_of_one_row(3, 1, 1e-9) == (1.0, (0.0, 0.0, 1.0), 0.0)


@pytest.mark.parametrize("by", [ShuffledEpoch(2), IndependentBatches(2)], ids=str)
def test_passes_prove_no_lower_bound(by: ShuffledEpoch) -> None:
    """Which batch a row went to may be hidden: ½N(e₁) + ½N(e₂) against N(0) has δ(1) = 0.059, one batch 0.127."""
    found = accounting.epsilon(Sampled(Gaussian(1.0), by=by), 1e-5, unit=ZERO).epsilon
    assert found.lower == 0
    assert found.upper == accounting.upper(Gaussian(1.0), 1e-5)
    assert accounting.delta(Sampled(Gaussian(1.0), by=by), 1.0, unit=ZERO).lower <= 0.0592


def test_lower_bounds_survive_an_underflowed_mass() -> None:
    """δ(799.8946) is 0.2705 here, by high-precision arithmetic, so ε(0.5) is below; Q-masses underflow on the way."""
    found = accounting.epsilon(Sampled(DiscreteGaussian(1.0, 40), by=Poisson(0.9)), 0.5).epsilon
    assert found.lower <= 799.8946


def test_compositions_of_pure_and_not() -> None:
    """One Gaussian in a composition of pure mechanisms takes purity away."""
    assert math.isinf(accounting.upper(Composed((Laplace(1.0), Gaussian(1000.0))), 0.0))
