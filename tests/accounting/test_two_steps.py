"""Two sampled Gaussian steps by numerical integration: an independent truth for both ends of the interval."""

from __future__ import annotations

import math

import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from privet import accounting
from privet.core.event import Gaussian, Poisson, Repeated, Sampled

SQRT2PI = math.sqrt(2 * math.pi)


def loss(x: float, sigma: float, rate: float) -> float:
    """log of (1 − q)N(0) + qN(1) over N(0) at x."""
    return math.log1p(rate * math.expm1(min((2 * x - 1) / (2 * sigma**2), 700.0)))


def cut(target: float, sigma: float, rate: float) -> float:
    """The x at which the loss is `target`; −∞ below its infimum."""
    inside = math.expm1(target) + rate
    return sigma**2 * math.log(inside / rate) + 0.5 if inside > 0 else -math.inf


def one_step(epsilon: float, sigma: float, rate: float, added: bool) -> float:
    """δ of a single step for any real ε, in closed form."""
    if added:  # P = N(0), Q = mixture, the loss is −loss(x): large for small x
        x = cut(-epsilon, sigma, rate)
        if x == -math.inf:
            return 0.0
        p, shifted = float(ndtr(x / sigma)), float(ndtr((x - 1) / sigma))
        return p - math.exp(epsilon) * ((1 - rate) * p + rate * shifted)
    x = cut(epsilon, sigma, rate)
    if x == -math.inf:
        return 1 - math.exp(epsilon)
    q, shifted = float(ndtr(-x / sigma)), float(ndtr((1 - x) / sigma))
    return (1 - rate) * q + rate * shifted - math.exp(epsilon) * q


def two_steps(epsilon: float, sigma: float, rate: float, added: bool) -> float:
    """E over the first step of the second step's δ at what is left of ε."""

    def inner(x: float) -> float:
        base = math.exp(-(x**2) / (2 * sigma**2)) / (SQRT2PI * sigma)
        if added:
            return base * one_step(epsilon + loss(x, sigma, rate), sigma, rate, True)
        mixed = base * (1 - rate) + rate * math.exp(-((x - 1) ** 2) / (2 * sigma**2)) / (SQRT2PI * sigma)
        return mixed * one_step(epsilon - loss(x, sigma, rate), sigma, rate, False)

    points = sorted({0.0, 1.0, max(-9 * sigma, min(1 + 9 * sigma, cut(epsilon, sigma, rate)))})
    low, high = -12 * sigma, 1 + 12 * sigma
    return float(quad(inner, low, high, points=points, limit=500, epsabs=1e-15, epsrel=1e-10)[0])


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("rate", [1e-3, 0.05, 0.6])
@pytest.mark.parametrize("epsilon", [0.05, 0.4, 1.5])
def test_interval_holds_the_integral(sigma: float, rate: float, epsilon: float) -> None:
    """Would fail if either grid rounded the wrong way, a direction were missed or a step were dropped."""
    exact = max(two_steps(epsilon, sigma, rate, added) for added in (False, True))
    found = accounting.delta(Repeated(Sampled(Gaussian(sigma), by=Poisson(rate)), 2), epsilon)
    assert found.lower <= exact * (1 + 1e-8) + 1e-14
    assert exact <= found.upper * (1 + 1e-8) + 1e-14
    if exact > 1e-9:
        price = accounting.epsilon(Repeated(Sampled(Gaussian(sigma), by=Poisson(rate)), 2), exact).epsilon
        assert price.lower <= epsilon * (1 + 1e-6) + 1e-9
        assert epsilon <= price.upper * (1 + 1e-6) + 1e-9


def test_the_closed_form_of_one_step() -> None:
    """The integrand's own building block against the engine, which has no grid for one step."""
    for sigma, rate, epsilon in ((1.0, 0.01, 0.1), (0.7, 0.3, 1.0)):
        exact = max(one_step(epsilon, sigma, rate, added) for added in (False, True))
        found = accounting.delta(Sampled(Gaussian(sigma), by=Poisson(rate)), epsilon)
        assert found.lower <= exact <= found.upper
        assert found.upper - found.lower <= 1e-9 * exact + 1e-12
