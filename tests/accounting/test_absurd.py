"""Absurd scales, rates and δ: what cannot be computed is infinite, never 0; and what can be is not below the truth."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet import accounting
from privet.accounting import renyi
from privet.accounting.accountant import Accountant
from privet.accounting.analytic_gaussian import gdp_delta_below, gdp_epsilon_below, gdp_to_delta, gdp_to_epsilon
from privet.accounting.canonical import CountedEvent, canonical
from privet.accounting.certified_bounds import between, certain
from privet.accounting.composition import ADVANCED
from privet.accounting.conversions import zcdp_to_delta, zcdp_to_epsilon
from privet.accounting.directions import Side
from privet.accounting.laws import Array, Removed, Symmetric, randomized_response
from privet.accounting.laws.law import law_delta
from privet.accounting.price import epsilon, upper
from privet.accounting.pure import amplified, pure_epsilon
from privet.core.errors import NotProven
from privet.core.event import (
    Approximate,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    Leaf,
    Poisson,
    Pure,
    RandomizedResponse,
    Repeated,
    Sampled,
    WithoutReplacement,
)
from privet.core.unit import Neighbours, Unit

REPLACE = Unit(neighbours=Neighbours.REPLACE)
UNITS = (Unit(), REPLACE, Unit(neighbours=Neighbours.ZERO_OUT), Unit(records=2))
ONE = 1 - 2.0**-53
SCALES = (5e-324, 1e-308, 1e-200, 1e-155, 1e-20, 1e-3, 0.3, 3.0, 1e3, 1e20, 1e155, 1e308)
RATES = (5e-324, 5.5e-309, 1e-300, 1e-30, 1e-3, 0.5, ONE)
DELTAS = (0.0, 5e-324, 1e-300, 1e-72, 1e-5, 0.5, ONE)


def leaves(scale: float) -> list[Leaf]:
    return [
        Laplace(scale),
        Laplace(scale, 3),
        Gaussian(scale),
        DiscreteLaplace(scale, 2),
        DiscreteGaussian(scale, 2.0),
        Pure(scale),
        Approximate(scale, 1e-9),
        RandomizedResponse(scale, 3),
    ]


def exact_loss(scale: float, rate: float, unit: Unit) -> mpmath.mpf:
    """The ε of one Laplace answer for Poisson-sampled rows at δ = 0: the larger of both directions."""
    with mpmath.workdps(700):
        q, loss = mpmath.mpf(rate), 1 / mpmath.mpf(scale)
        up = loss + mpmath.log(q + (1 - q) * mpmath.exp(-loss)) if loss < 10**5 else loss + mpmath.log(q)
        down = -mpmath.log1p(-q + q * mpmath.exp(-loss) if loss < 10**5 else -q) if q < 1 else loss
        return up + down if unit == REPLACE else max(up, down)


@pytest.mark.parametrize("unit", [Unit(), REPLACE], ids=str)
@pytest.mark.parametrize("scale", SCALES)
def test_a_sampled_answer_is_never_below_its_largest_loss(scale: float, unit: Unit) -> None:
    """Catches a NaN that becomes ε = 0, and sums that lose what lies beyond e^700: against 700 digits."""
    for rate in RATES:
        event = Sampled(Laplace(scale), by=Poisson(rate))
        found = epsilon(event, 0.0, unit=unit).epsilon
        exact = exact_loss(scale, rate, unit)
        assert mpmath.mpf(found.upper) >= exact
        assert mpmath.mpf(found.lower) <= exact
        assert mpmath.mpf(upper(event, 0.0, unit=unit)) >= exact


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    scale=st.sampled_from(SCALES),
    kind=st.integers(0, 7),
    rate=st.sampled_from((None, *RATES)),
    count=st.sampled_from((1, 2, 10**90)),
    delta=st.sampled_from(DELTAS),
    unit=st.sampled_from(UNITS),
)
def test_no_price_is_a_false_zero(
    scale: float, kind: int, rate: float | None, count: int, delta: float, unit: Unit
) -> None:
    """Catches NaN, exceptions, warnings and contradictions; and a price of 0 where a row is given away too often."""
    leaf = leaves(scale)[kind]
    event: Event = Repeated(leaf if rate is None else Sampled(leaf, by=Poisson(rate)), count)
    try:
        found = epsilon(event, delta, unit=unit).epsilon
    except NotProven:
        return
    assert 0 <= found.lower <= found.upper
    assert upper(event, delta, unit=unit) >= found.lower
    if delta == 0:
        assert found.upper > 0  # all of these say something about the row
    spent = accounting.delta(event, 1.0, unit=unit)
    assert 0 <= spent.lower <= spent.upper <= 1


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("loss", [1e-320, 1e-9, 1.0, 29.0, 31.0, 700.0, 744.0, 760.0, 1e5])
def test_amplification_is_rounded_up(loss: float, rate: float) -> None:
    """Catches 0·∞ at rates below 1/max, and a logarithm that is rounded to the nearest number."""
    with mpmath.workdps(700):
        q, e = mpmath.mpf(rate), mpmath.mpf(loss)
        assert amplified(loss, rate) >= mpmath.log1p(q * mpmath.expm1(e))
    assert amplified(loss, rate) <= loss


@pytest.mark.parametrize("noise", [3.0, 7.0, 11.0, 49.0])
def test_pure_prices_are_rounded_up_and_their_sums_once(noise: float) -> None:
    """Catches 1/3 as a number below it, and three of them as more than 1: a plan of exactly ε fits a budget of ε."""
    exact = Fraction(1) / Fraction(noise)
    assert pure_epsilon(Laplace(noise), Unit()) >= exact
    for count in (1, 3, int(noise), 1000):
        for accountant in (Accountant.BASIC, Accountant.RENYI, Accountant.ZCDP):
            found = epsilon(Repeated(Laplace(noise), count), 0.0, accountant=accountant).epsilon.upper
            assert found >= count * exact
            assert math.nextafter(found, 0.0) < count * exact
    whole = Composed((Repeated(Laplace(noise), int(noise) - 1), Laplace(noise)))
    assert epsilon(whole, 0.0).epsilon.upper == 1.0
    assert renyi.total(canonical(whole).parts, Unit(), (2.0, math.inf)).values[-1] == 1.0


def test_a_loss_that_is_no_number_is_not_known_to_be_finite() -> None:
    """Catches max(0, NaN), which is 0: in the largest loss, in δ of one run, and at the front door."""

    class Nothing:
        infinite = 0.0
        support = (math.nan, math.nan)

        def cells(self, bounds: Array) -> tuple[Array, Array]:
            return np.full(len(bounds) + 1, math.nan), np.full(len(bounds) + 1, math.nan)

    law = Nothing()
    assert Side(((law, 2),), ((-1.0, 1.0),)).largest == math.inf
    assert law_delta(law, 1.0, 1) == 1.0
    assert law_delta(law, 1.0, -1) == 0.0
    assert certain(math.nan) == between(0.0, math.nan).upper == math.inf


def test_contradicting_bounds_raise() -> None:
    """Catches a lower end that is cut to the upper one, which hides that one of two proofs is wrong."""
    assert between(1.0 + 1e-12, 1.0).lower == 1.0  # rounding
    with pytest.raises(ArithmeticError, match="contradict"):
        between(1.001, 1.0)


@pytest.mark.parametrize("mu", [1e-200, 1e-9, 1e-7, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("loss", [0.0, 1e-300, 1e-3, 1.0, 20.0])
def test_both_ends_of_a_gaussian_enclose_it(mu: float, loss: float) -> None:
    """Catches a lower end made from the upper one, which may be far above the truth where digits cancel."""
    if loss > 30 * mu + mu * mu:
        return  # δ is too small for a double
    with mpmath.workdps(450):
        m, e = mpmath.mpf(mu), mpmath.mpf(loss)
        exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        assert gdp_delta_below(mu, loss) <= exact <= gdp_to_delta(mu, loss)
    delta = gdp_to_delta(mu, loss)
    assert delta <= gdp_delta_below(mu, loss) * (1 + 1e-7)
    assert gdp_epsilon_below(mu, delta) <= loss <= gdp_to_epsilon(mu, gdp_delta_below(mu, loss))


def test_squares_that_underflow_still_cost() -> None:
    """Catches Σε² = 0 in advanced composition: δ was 2.5e-321 where the truth is 2.5e-199."""
    parts = [CountedEvent(Gaussian(1e200), None, 1000)]
    assert ADVANCED.delta(parts, 0.0, REPLACE) >= gdp_delta_below(2e-200 * math.sqrt(1000), 0.0)


def test_zcdp_conversions_at_both_ends() -> None:
    """Catches the logarithm of a quotient that has underflowed to 0."""
    assert zcdp_to_epsilon(1e308, ONE) > 0
    assert zcdp_to_delta(1e308, 1.0) == 1.0
    assert epsilon(Laplace(1e-308), ONE).epsilon.upper >= 0


def test_a_side_that_is_wider_than_the_other_is_priced_on_its_own_grid() -> None:
    """Catches 700 million cells: the lower bound's laws reach further than the step for the upper one allows."""
    run = Composed(
        (
            Repeated(DiscreteGaussian(22.669952866529613, 1.0, 7), 10),
            Sampled(DiscreteGaussian(0.4517927923339332, 5.0), by=Poisson(0.10742778877155723)),
        )
    )
    found = epsilon(run, 0.99).epsilon
    assert 0 <= found.lower <= found.upper < 1


@pytest.mark.parametrize("categories", [2, 3, 100])
@pytest.mark.parametrize("bounds", [(0.0,), (-0.3, 0.0, 0.2), (-0.3, -0.01, 0.02, 0.2)])
def test_a_mirrored_pair_has_mass_one(categories: int, bounds: tuple[float, ...]) -> None:
    """Catches the atom at 0 (answers that stay) counted in both halves: the mass was up to 1.9, to the power of T."""
    law = Symmetric(Removed(randomized_response(1.0, categories), 0.3))
    p, q = law.cells(np.array(bounds))
    assert p.sum() == pytest.approx(1.0, abs=1e-13)
    assert q.sum() == pytest.approx(1.0, abs=1e-13)
    assert p.min() >= 0
    run = Repeated(Sampled(RandomizedResponse(1.0, categories), by=WithoutReplacement(3, 10)), 30)
    found = {
        a: epsilon(run, 1e-5, unit=REPLACE, accountant=a).epsilon.upper for a in (Accountant.PLD, Accountant.RENYI)
    }
    assert found[Accountant.PLD] <= found[Accountant.RENYI]


@pytest.mark.parametrize("delta", [1e-10, 1e-40, 1e-72, 1e-140])
@pytest.mark.parametrize(("noise", "rate"), [(0.7, 0.01), (2.0, 0.3), (5.0, 0.9)])
def test_far_tails_of_one_run_are_enclosed(noise: float, rate: float, delta: float) -> None:
    """Catches a rounding error that is taken to be the same far out, where the exponents themselves are large."""
    found = epsilon(Sampled(Gaussian(noise), by=Poisson(rate)), delta, accountant=Accountant.PLD).epsilon

    def exact(e: mpmath.mpf) -> mpmath.mpf:
        q, m = mpmath.mpf(rate), 1 / mpmath.mpf(noise)
        inner = mpmath.log((mpmath.exp(e) - 1 + q) / q)
        return q * (mpmath.ncdf(m / 2 - inner / m) - mpmath.exp(inner) * mpmath.ncdf(-m / 2 - inner / m))

    with mpmath.workdps(200):
        assert exact(mpmath.mpf(found.upper)) <= delta
        assert exact(mpmath.mpf(found.lower)) >= delta
    assert found.upper - found.lower <= 1e-9 * found.upper
