"""The exact Gaussian curve against high-precision arithmetic, published values and other people's accountants."""

from __future__ import annotations

import math

import mpmath
import pytest

from privet.accounting import gdp, renyi
from privet.accounting.analytic_gaussian import log_gdp_delta
from privet.accounting.canonical import CountedEvent
from privet.accounting.conversions import (
    analytic_gaussian_sigma,
    classical_gaussian_sigma,
    gdp_to_delta,
    gdp_to_epsilon,
)
from privet.accounting.gdp import gdp_clt_not_a_guarantee
from privet.core.errors import InvalidInput, NotProven
from privet.core.event import Gaussian, IndependentBatches, Laplace, Poisson, ShuffledEpoch
from privet.core.unit import Neighbours, Unit

ADD, ZERO = Unit(), Unit(neighbours=Neighbours.ZERO_OUT)
REPLACE = Unit(neighbours=Neighbours.REPLACE)


def exact_log_delta(mu: float, epsilon: float) -> mpmath.mpf:
    m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
    return mpmath.log(mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m))


@pytest.mark.parametrize("mu", [1e-12, 1e-6, 1e-3, 0.05, 0.3, 1.0, 2.0, 7.0, 40.0, 1e3])
def test_log_delta_is_exact_and_rounded_up(mu: float) -> None:
    """Catches cancellation, e^ε overflow beyond 709, and rounding towards a δ that is too small."""
    for epsilon in (0.0, 1e-8, 1e-3, 0.1, 1.0, 5.0, 30.0, 100.0, 720.0, 5000.0, 1e5):
        if epsilon / mu - mu / 2 > 36:
            continue
        with mpmath.workdps(700):
            assert 0 <= log_gdp_delta(mu, epsilon) - exact_log_delta(mu, epsilon) < 1e-6


def test_published_values() -> None:
    """Catches a wrong sign, a lost factor e^ε, σ and μ mixed up: published values."""
    for mu, epsilon in ((0.5, 1.9931), (1.0, 4.3772), (2.0, 9.9973), (3.0, 16.6755)):
        assert gdp_to_epsilon(mu, 1e-5) == pytest.approx(epsilon, abs=1e-4)
    assert gdp_to_delta(1.0, 1.0) == pytest.approx(0.126936, abs=1e-6)
    for epsilon, sigma in ((0.5, 7.0318), (1.0, 3.7306), (2.0, 1.9938), (3.0, 1.3906), (8.0, 0.6002)):
        assert analytic_gaussian_sigma(epsilon, 1e-5) == pytest.approx(sigma, abs=1e-4)


def test_composition_of_parts() -> None:
    """Catches σ instead of σ² in the sum, a dropped count, 1C under replace, and a pass counted for each batch."""
    parts = [CountedEvent(Gaussian(4.0), None, 8), CountedEvent(Gaussian(2.0), None, 2)]
    assert gdp.mu(parts, ADD) == pytest.approx(1.0)
    assert gdp.mu(parts, REPLACE) == pytest.approx(2.0)
    assert gdp.mu(parts, Unit(records=3)) == pytest.approx(3.0)
    assert gdp.mu(parts, Unit(neighbours=Neighbours.L2_BALL, radius=0.25)) == pytest.approx(0.25)
    assert gdp.epsilon(parts, 1e-5, ADD) == pytest.approx(4.3772, abs=1e-4)
    assert gdp.delta(parts, 1.0, ADD) == pytest.approx(0.126936, abs=1e-6)
    assert gdp.mu([CountedEvent(Gaussian(3.0), ShuffledEpoch(50), 9)], ZERO) == pytest.approx(1.0)
    assert gdp.mu([CountedEvent(Gaussian(3.0), IndependentBatches(50), 9)], REPLACE) == pytest.approx(2.0)
    for leaf, sampling in ((Gaussian(1.0), Poisson(0.1)), (Laplace(1.0), None)):
        with pytest.raises(NotProven):
            gdp.epsilon([CountedEvent(leaf, sampling, 1)], 1e-5, ADD)


def test_against_dp_accounting() -> None:
    """Catches any systematic error: its PLD of an unsampled Gaussian is exact up to its grid."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    for noise, count in ((1.0, 1), (5.0, 20), (0.5, 1)):
        theirs = pld.from_gaussian_mechanism(noise / math.sqrt(count), value_discretization_interval=1e-4)
        ours = gdp.epsilon([CountedEvent(Gaussian(noise), None, count)], 1e-6, ADD)
        assert ours == pytest.approx(theirs.get_epsilon_for_delta(1e-6), abs=2e-4)
        assert ours < renyi.epsilon([CountedEvent(Gaussian(noise), None, count)], 1e-6, ADD)


def test_epsilon_and_delta_are_inverse_and_monotone() -> None:
    """Catches a root that is rounded the wrong way, and a jump between the two formulae of the curve."""
    for delta in (0.3, 1e-5, 1e-100, 1e-300):
        before = 0.0
        for mu in (1e-6, 1e-4, 0.01, 0.5, 1.0, 1.5, 3.0, 30.0, 1e3):
            epsilon = gdp_to_epsilon(mu, delta)
            assert epsilon >= before
            assert gdp_to_delta(mu, epsilon) <= delta
            if epsilon > 0:
                assert gdp_to_delta(mu, epsilon * (1 - 1e-6)) > delta
            before = epsilon
    assert gdp_to_epsilon(1e6, 1e-5) == pytest.approx(5e11, rel=1e-4)
    assert gdp_to_delta(1.0, 1e6) == 0.0


def test_edges() -> None:
    """Catches NaN and a finite ε at δ = 0."""
    assert gdp_to_epsilon(1.0, 0.0) == math.inf
    assert gdp_to_epsilon(0.0, 0.0) == 0.0
    assert gdp_to_epsilon(math.inf, 1e-5) == math.inf
    assert gdp_to_delta(math.inf, 3.0) == 1.0
    assert gdp_to_delta(0.0, 0.0) == 0.0
    with pytest.raises(InvalidInput, match="delta"):
        gdp_to_epsilon(1.0, 1.0)
    with pytest.raises(InvalidInput, match="mu"):
        gdp_to_delta(-1.0, 1.0)


def test_sigma_is_the_least_that_works() -> None:
    """Catches a calibration that overshoots the target or leaves 0.1 % on the table, at ordinary and at odd targets."""
    for epsilon in (0.0, 1e-3, 0.5, 8.0, 800.0, 1e6):
        for delta in (0.5, 1e-5, 1e-20, 1e-300):
            sigma = analytic_gaussian_sigma(epsilon, delta)
            assert gdp_to_delta(1 / sigma, epsilon) <= delta * (1 + 1e-9)
            assert gdp_to_delta(1 / (0.999 * sigma), epsilon) > delta
    with pytest.raises(InvalidInput, match="delta"):
        analytic_gaussian_sigma(1.0, 0.0)


def test_classical_formula_only_where_it_holds() -> None:
    """Catches the classical formula used beyond ε = 1, where it is not proven, or with its constant lost."""
    for epsilon, sigma in ((0.5, 9.69), (1.0, 4.84)):
        assert classical_gaussian_sigma(epsilon, 1e-5) == pytest.approx(sigma, abs=0.01)
        assert classical_gaussian_sigma(epsilon, 1e-5) > analytic_gaussian_sigma(epsilon, 1e-5)
    with pytest.raises(InvalidInput, match=r"epsilon.*analytic_gaussian_sigma"):
        classical_gaussian_sigma(1.01, 1e-5)


def test_the_clt_is_not_a_guarantee() -> None:
    """Catches the approximation sold as a bound: it is below the truth (4.7512) by a factor of 2.8."""
    rows = (
        (256 / 60000, 1.1, 14062, 1e-5, 2.324),
        (256 / 60000, 1.3, 3515, 1e-5, 0.834),
        (0.01, 4.0, 10000, 1e-5, 0.942),
    )
    for rate, noise, steps, delta, epsilon in rows:
        assert gdp_clt_not_a_guarantee(rate, noise, steps, delta) == pytest.approx(epsilon, abs=1e-3)
    found = gdp_clt_not_a_guarantee(0.01, 0.6, 100, 1e-6)
    assert found == pytest.approx(1.710, abs=1e-3)
    assert found < 4.75 / 2.7
    assert gdp_clt_not_a_guarantee(0.01, 0.03, 100, 1e-6) == math.inf
