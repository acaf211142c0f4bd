"""Settings that broke other accountants: each must give a finite, continuous, sane answer here."""

from __future__ import annotations

import math

import pytest

from privet import accounting
from privet.accounting import Accountant, renyi
from privet.accounting.canonical import CountedEvent
from privet.accounting.conversions import gdp_to_delta
from privet.core.event import Composed, Event, Gaussian, Joint, NonPrivate, Poisson, Repeated, Sampled
from privet.core.unit import Unit
from tests.accounting.divergences import rdp_to_epsilon_classic


def run(sigma: float, rate: float, steps: int) -> Event:
    return Repeated(Sampled(Gaussian(sigma), by=Poisson(rate)), steps)


def test_continuous_in_a_tiny_delta() -> None:
    """PRV jumped from 0.156 to 3.9 between these two δ; Rényi's own best is 0.146."""
    first, second = (accounting.epsilon(run(4.0, 0.00033, 10_000), d).epsilon for d in (1.10e-18, 1.13e-18))
    assert first.upper == pytest.approx(second.upper, rel=1e-2)
    assert second.upper <= first.upper <= 0.147


@pytest.mark.parametrize("steps", [10, 500])
def test_high_rate_does_not_fail(steps: int) -> None:
    """q = 0.2, σ = 1: an exception elsewhere."""
    found = accounting.epsilon(run(1.0, 0.2, steps), 1e-5).epsilon
    assert 0 < found.lower <= found.upper < 50


def test_target_of_a_thousand_returns() -> None:
    """A calibration that hung elsewhere."""
    sigma = accounting.noise_multiplier(epsilon=1000.0, delta=1e-5, sample_rate=0.01, steps=1000)
    assert accounting.upper(run(sigma, 0.01, 1000), 1e-5) <= 1000


def test_true_epsilon_of_zero() -> None:
    """σ = 1, q = 105/100000, one step, δ = 1e-3: δ(0) = q(2Φ(½) − 1) = 4.0e-4 < δ, so ε is 0."""
    found = accounting.epsilon(run(1.0, 105 / 100_000, 1), 1e-3).epsilon
    assert found.lower == 0
    assert found.upper <= 0.02


@pytest.mark.parametrize("accountant", [Accountant.PLD, Accountant.RENYI, Accountant.BASIC, Accountant.ADVANCED])
def test_never_negative(accountant: Accountant) -> None:
    """Very few steps and much noise gave negative ε elsewhere."""
    found = accounting.epsilon(run(100.0, 1e-4, 1), 0.1, accountant=accountant).epsilon
    assert 0 <= found.lower <= found.upper < 1


def test_moments_accountant_of_2016() -> None:
    """E = 100 and 400 epochs at q = 0.01, σ = 4, δ = 1e-5: 1.26 and 2.55 in the text, 1.2586 and 2.576 recomputed."""
    for steps, classic, tight in ((10_000, 1.2586, 1.035), (40_000, 2.576, 2.213)):
        curve = renyi.curve(CountedEvent(Gaussian(4.0), Poisson(0.01), steps), Unit(), renyi.default_orders())
        assert rdp_to_epsilon_classic(curve.orders, curve.values, 1e-5) == pytest.approx(classic, abs=2e-3)
        found = accounting.epsilon(run(4.0, 0.01, steps), 1e-5, accountant=Accountant.RENYI)
        assert found.epsilon.upper == pytest.approx(tight, abs=2e-3)


def test_huge_epsilon_is_finite() -> None:
    """δ(ε) of the Gaussian beyond ε = 709 was NaN elsewhere."""
    assert 0 <= gdp_to_delta(40.0, 750.0) < 1
    assert math.isfinite(accounting.epsilon(Gaussian(0.02), 1e-5).epsilon.upper)


@pytest.mark.parametrize(
    "event",
    [run(0.3, 0.5, 10**6), run(0.3, 1.0, 10**6), Repeated(Gaussian(0.1), 10**6), run(0.3, 0.01, 10**6)],
)
def test_enormous_cost_is_still_a_number(event: Event) -> None:
    """Above ε = 100 any certified bound will do, but it must come, finite."""
    found = accounting.epsilon(event, 1e-5).epsilon
    assert 100 < found.upper < math.inf


def test_few_large_losses_have_a_narrow_interval() -> None:
    """A tilt that suits many small losses suits these badly; the interval was wider than 10 % of ε."""
    found = accounting.epsilon(run(0.5, 1e-5, 10), 1e-10).epsilon
    assert found.upper - found.lower <= 0.01


def test_joint_releases_are_one_gaussian() -> None:
    """Two releases of one batch: σ_eff = σ/√2 under one sampling; two sampled events would claim 8.26 for 12.54."""
    joint = Repeated(Sampled(Joint((Gaussian(1.0), Gaussian(1.0))), by=Poisson(0.02)), 2000)
    wrong = run(1.0, 0.02, 4000)
    right = accounting.epsilon(joint, 1e-5).epsilon
    assert right.lower - 0.02 <= 12.54 <= right.upper + 0.02
    assert accounting.epsilon(wrong, 1e-5).epsilon.upper < 8.4
    assert right.upper == pytest.approx(accounting.upper(run(1 / math.sqrt(2), 0.02, 2000), 1e-5), rel=1e-3)


def test_no_noise_is_infinite() -> None:
    """σ = 0 and anything non-private cost ε = ∞, with the reason."""
    for event in (Gaussian(0.0), NonPrivate("plain average"), Composed((Gaussian(1.0), NonPrivate("raw rows")))):
        found = accounting.epsilon(event, 1e-5)
        assert found.epsilon.upper == math.inf
        assert "no guarantee" in found.assumptions[0]


def test_nothing_costs_nothing() -> None:
    """An empty composition is free."""
    for event in (Composed(()), Repeated(Gaussian(1.0), 0)):
        assert accounting.epsilon(event, 0.0).epsilon.upper == 0


def test_loose_published_epsilons() -> None:
    """What is published as ε = 3 under the classic conversion is about 2.39 by loss distributions."""
    found = accounting.epsilon(run(3.04, 4096 / 60000, 586), 1e-5).epsilon
    assert 2.3 < found.upper < 2.5
