"""Conversions against their own theorems, written out, and against each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from privet.accounting.conversions import (
    gdp_to_delta,
    group_privacy,
    rdp_to_epsilon,
    zcdp_to_delta,
)
from privet.core.errors import InvalidInput
from tests.accounting.divergences import rdp_to_delta, rdp_to_epsilon_classic


def test_tight_conversion_term_by_term() -> None:
    """Catches a lost log a, a minimum taken over the wrong thing, and an order ∞ that is ignored."""
    orders, values, delta = [1.5, 2.0, 10.0, 64.0], [0.05, 0.1, 0.6, 5.0], 1e-5
    terms = [
        r + math.log((a - 1) / a) - (math.log(delta) + math.log(a)) / (a - 1)
        for a, r in zip(orders, values, strict=True)
    ]
    assert rdp_to_epsilon(orders, values, delta) == pytest.approx(min(terms), rel=1e-12)
    assert rdp_to_epsilon(orders, values, delta) >= min(terms)
    assert rdp_to_epsilon([*orders, math.inf], [*values, 0.3], delta) == 0.3
    assert rdp_to_epsilon([*orders, math.inf], [*values, 0.3], 0.0) == 0.3
    assert rdp_to_epsilon(orders, values, 0.0) == math.inf


def test_epsilon_and_delta_are_inverse() -> None:
    """Catches two conversions that come from different theorems."""
    orders = list(range(2, 60))
    values = [0.01 * a for a in orders]
    for delta in (1e-3, 1e-6, 1e-12):
        epsilon = rdp_to_epsilon(orders, values, delta)
        assert rdp_to_delta(orders, values, epsilon) == pytest.approx(delta, rel=1e-9)
        assert rdp_to_epsilon_classic(orders, values, delta) > epsilon


def test_conversion_holds_for_a_real_mechanism() -> None:
    """Catches a conversion below the truth: Gaussian noise has an exact curve to compare with."""
    for mu in (0.1, 1.0, 4.0):
        orders = (1 + np.geomspace(1e-3, 1e4, 600)).tolist()
        values = [mu * mu * a / 2 for a in orders]
        for epsilon in (0.0, 0.5, 3.0, 20.0):
            assert rdp_to_delta(orders, values, epsilon) >= gdp_to_delta(mu, epsilon)
            assert zcdp_to_delta(mu * mu / 2, epsilon) >= gdp_to_delta(mu, epsilon)
            assert zcdp_to_delta(mu * mu / 2, epsilon) <= rdp_to_delta(orders, values, epsilon) * (1 + 1e-9)


def test_group_privacy_is_the_sum_of_the_walk() -> None:
    """Catches k·δ, δ·e^(kε), and a formula that breaks at ε = 0 or overflows."""
    for epsilon, delta, k in ((0.3, 1e-6, 1), (0.3, 1e-6, 4), (0.0, 1e-6, 4), (2.0, 1e-9, 5)):
        total, grown = group_privacy(epsilon, delta, k)
        assert total == k * epsilon
        assert grown == pytest.approx(delta * sum(math.exp(j * epsilon) for j in range(k)), rel=1e-9)
    assert group_privacy(1e6, 1e-300, 1000) == (1e9, 1.0)
    assert group_privacy(1.0, 1.0, 2) == (2.0, 1.0)
    assert group_privacy(1e-12, 1e-6, 3)[1] == pytest.approx(3e-6)
    with pytest.raises(InvalidInput, match="k"):
        group_privacy(1.0, 0.0, 0)


def test_group_privacy_covers_gaussian_noise() -> None:
    """Catches a group price below the truth: k records of Gaussian noise are one of shift k."""
    for mu, epsilon, k in ((0.5, 1.0, 3), (0.2, 0.1, 8)):
        total, grown = group_privacy(epsilon, gdp_to_delta(mu, epsilon), k)
        assert grown >= gdp_to_delta(k * mu, total)


def test_bad_curves_are_refused() -> None:
    """Catches orders and values that do not belong together, which would give a number all the same."""
    with pytest.raises(InvalidInput, match="values"):
        rdp_to_epsilon([2.0, 3.0], [0.1], 1e-5)
    with pytest.raises(InvalidInput, match="orders"):
        rdp_to_epsilon([1.0], [0.1], 1e-5)
    with pytest.raises(InvalidInput, match="values"):
        rdp_to_epsilon([2.0], [math.nan], 1e-5)
    with pytest.raises(InvalidInput, match="delta"):
        rdp_to_epsilon([2.0], [0.1], 1.5)
    assert rdp_to_epsilon([2.0], [math.inf], 1e-5) == math.inf
    assert rdp_to_delta([2.0], [math.inf], 1.0) == 1.0


def test_delta_is_a_mean_over_the_loss() -> None:
    """Catches a curve that is a plain tail: δ(ε) is E[(1 − e^(ε−L))₊], with L normal for Gaussian noise."""
    mu = 0.8
    for epsilon in (0.0, 0.5, 2.0):

        def inside(loss: float, epsilon: float = epsilon) -> float:
            density = math.exp(-((loss - mu * mu / 2) ** 2) / (2 * mu * mu)) / (mu * math.sqrt(2 * math.pi))
            return density * -math.expm1(epsilon - loss)

        assert gdp_to_delta(mu, epsilon) == pytest.approx(quad(inside, epsilon, 12)[0], rel=1e-8)
