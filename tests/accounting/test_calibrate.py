"""Calibration never exceeds the target, and 0.1 % less noise, or one more step, does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet import accounting
from privet.core.errors import InvalidInput
from privet.core.event import Gaussian, Laplace, Poisson, RandomizedResponse, Repeated, Sampled
from privet.core.unit import Neighbours, Unit

REPLACE = Unit(neighbours=Neighbours.REPLACE)


def price(sigma: float, rate: float, steps: int, delta: float = 1e-5) -> float:
    return accounting.epsilon(Repeated(Sampled(Gaussian(sigma), by=Poisson(rate)), steps), delta).epsilon.upper


@settings(max_examples=15)
@given(
    epsilon=st.floats(0.1, 15.0),
    delta=st.sampled_from([1e-3, 1e-5, 1e-9]),
    rate=st.floats(0.001, 1.0),
    steps=st.integers(1, 3000),
)
def test_noise_is_the_least(epsilon: float, delta: float, rate: float, steps: int) -> None:
    """ε(σ) ≤ target always, and 0.1 % less noise has an upper end above the target."""
    sigma = accounting.noise_multiplier(epsilon=epsilon, delta=delta, sample_rate=rate, steps=steps)
    assert price(sigma, rate, steps, delta) <= epsilon
    assert price(sigma * 0.999, rate, steps, delta) > epsilon


@pytest.mark.parametrize(("epsilon", "expected"), [(1.0, 6.19), (2.0, 3.375), (3.0, 2.418)])
def test_scattering_recipe(epsilon: float, expected: float) -> None:
    """q = 4096/60000, T = 560: the reference used an upper bound with 0.01 of error in it, so ours is a little less."""
    sigma = accounting.noise_multiplier(epsilon=epsilon, delta=1e-5, sample_rate=4096 / 60000, steps=560)
    assert expected * 0.985 < sigma <= expected * 1.001


@pytest.mark.parametrize(
    ("epsilon", "sigma"), [(0.5, 7.0318), (1.0, 3.7306), (2.0, 1.9938), (3.0, 1.3906), (8.0, 0.6002)]
)
def test_analytic_gaussian(epsilon: float, sigma: float) -> None:
    """Balle & Wang's values at δ = 1e-5; the classical formula would give 3–38 % more."""
    found = accounting.least(Gaussian, epsilon=epsilon, delta=1e-5)
    assert found == pytest.approx(sigma, rel=1.2e-3)
    assert accounting.upper(Gaussian(found), 1e-5) <= epsilon


def test_one_more_step_exceeds() -> None:
    """The number of steps is the most there is."""
    event = Sampled(Gaussian(1.1), by=Poisson(0.01))
    steps = accounting.most_steps(event, epsilon=2.0, delta=1e-5)
    assert price(1.1, 0.01, steps) <= 2.0 < price(1.1, 0.01, steps + 1)
    assert accounting.most_steps(Gaussian(0.1), epsilon=0.5, delta=1e-5) == 0


def test_rate() -> None:
    """The rate fits, and 0.1 % more does not."""
    rate = accounting.sample_rate(epsilon=1.0, delta=1e-5, noise_multiplier=1.0, steps=1000)
    assert price(1.0, rate, 1000) <= 1.0 < price(1.0, rate * 1.0011, 1000)


@pytest.mark.parametrize("count", [1, 7])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_laplace_and_randomised_response(count: int, delta: float) -> None:
    """Scale and ε of pure mechanisms, composed: never above the target, and tight."""
    scale = accounting.laplace_scale(epsilon=1.0, delta=delta, count=count)
    event = Repeated(Laplace(scale), count)
    assert accounting.epsilon(event, delta).epsilon.upper <= 1.0
    assert accounting.epsilon(Repeated(Laplace(scale * 0.999), count), delta).epsilon.upper > 1.0
    each = accounting.randomized_response_epsilon(epsilon=1.0, delta=delta, count=count)
    price_of = accounting.epsilon(Repeated(RandomizedResponse(each), count), delta, unit=REPLACE).epsilon.upper
    assert price_of <= 1.0
    more = Repeated(RandomizedResponse(each * 1.0011), count)
    assert accounting.epsilon(more, delta, unit=REPLACE).epsilon.upper > 1.0
    if delta == 0:
        assert scale == pytest.approx(count, rel=1.1e-3)
        assert each == pytest.approx(1 / count, rel=1.1e-3)


@pytest.mark.parametrize("bad", [{"epsilon": 0.0}, {"epsilon": float("nan")}, {"delta": 1.0}, {"steps": 0}])
def test_bad_targets_are_named(bad: dict[str, float]) -> None:
    """The argument's name is in the message."""
    arguments = {"epsilon": 1.0, "delta": 1e-5, "sample_rate": 0.1, "steps": 10} | bad
    with pytest.raises(InvalidInput, match=next(iter(bad))):
        accounting.noise_multiplier(**arguments)  # type: ignore[arg-type]


def test_a_target_out_of_reach_is_said() -> None:
    """δ = 0 cannot be had from a Gaussian."""
    with pytest.raises(InvalidInput, match="cannot be reached"):
        accounting.least(Gaussian, epsilon=1.0, delta=0.0)
