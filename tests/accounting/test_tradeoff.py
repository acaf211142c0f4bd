"""Trade-off functions: there and back, against the Gaussian one, which is known exactly."""

from __future__ import annotations

import math

import pytest

from privet.accounting.conversions import gdp_to_delta
from privet.accounting.tradeoff import delta_of, gaussian_tradeoff, piecewise, tradeoff_of
from privet.core.errors import InvalidInput

RATES = (0.0, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9, 0.999, 1.0)


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 3.0, 12.0])
def test_gaussian_curve_gives_the_gaussian_tradeoff(mu: float) -> None:
    """Catches a missing line (large rates come from the second one), a bound that is too large, a coarse grid."""
    for rate in RATES:
        exact = gaussian_tradeoff(mu, rate)
        found = tradeoff_of(lambda epsilon: gdp_to_delta(mu, epsilon), rate)
        assert found <= exact
        assert found == pytest.approx(exact, rel=2e-4, abs=1e-12)


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 3.0, 12.0])
def test_gaussian_tradeoff_gives_the_gaussian_curve(mu: float) -> None:
    """Catches a conjugate with the wrong sign, and a supremum that is missed from below."""
    for epsilon in (0.0, 0.3, 1.0, 4.0, 20.0):
        exact = gdp_to_delta(mu, epsilon)
        found = delta_of(lambda x: gaussian_tradeoff(mu, x), epsilon)
        assert exact * (1 - 1e-9) - 1e-15 <= found <= exact + 1e-9


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (0.7, 0.01), (6.0, 1e-5)])
def test_one_pair_is_three_lines(epsilon: float, delta: float) -> None:
    """Catches wrong corners: the lines are those of the hypothesis-testing definition, and lead back to (ε, δ)."""
    lines = piecewise(epsilon, delta)
    for rate in RATES:
        wanted = max(0.0, 1 - delta - math.exp(epsilon) * rate, math.exp(-epsilon) * (1 - delta - rate))
        assert lines(rate) == pytest.approx(wanted, abs=1e-12)
    middle = lines.points[1]
    assert middle[0] == middle[1] == pytest.approx((1 - delta) / (1 + math.exp(epsilon)))
    assert delta_of(lines, epsilon) == pytest.approx(delta, abs=1e-12)
    if epsilon > 0:
        half = epsilon / 2
        wanted = delta + (1 - delta) * (math.exp(epsilon) - math.exp(half)) / (1 + math.exp(epsilon))
        assert delta_of(lines, half) == pytest.approx(wanted, rel=1e-9)

    def curve(at: float) -> float:
        return delta if at >= epsilon else 1.0

    for rate in (0.001, 0.01, 0.1):
        assert tradeoff_of(curve, rate) <= lines(rate) * (1 + 1e-12)


def test_a_curve_that_reveals_everything_promises_nothing() -> None:
    """Catches a bound from nowhere, and one above what blind guessing gives."""
    for rate in RATES:
        assert tradeoff_of(lambda _: 1.0, rate) == 0.0
        assert tradeoff_of(lambda _: 0.0, rate) == pytest.approx(1 - rate)
        assert tradeoff_of(lambda _: 0.0, rate) <= 1 - rate


def test_bad_rates_are_refused() -> None:
    """Catches a percentage given as a rate."""
    with pytest.raises(InvalidInput, match="fpr"):
        tradeoff_of(lambda _: 0.0, 10.0)
    with pytest.raises(InvalidInput, match="fpr"):
        piecewise(1.0)(-0.1)
