"""A seeded scan over samplings × neighbours: loss distributions answer wherever they can, and in order.

Their ε once fell to ∞ at random, where a window reached losses whose exponential overflows, and a far looser method
answered instead.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from privet import accounting
from privet.accounting import pld, renyi
from privet.accounting.canonical import canonical
from privet.accounting.conversions import gdp_to_delta, gdp_to_epsilon
from privet.accounting.convolution import compose
from privet.accounting.grid import optimistic, pessimistic
from privet.accounting.laws import GaussianLoss, reach
from privet.core.errors import NotProven
from privet.core.event import (
    Approximate,
    Event,
    Gaussian,
    Laplace,
    Leaf,
    Poisson,
    Pure,
    Repeated,
    Sampled,
    Sampling,
    WithoutReplacement,
    WithReplacement,
)
from privet.core.unit import Neighbours, Unit

ADD, ZERO, REPLACE = (Unit(neighbours=n) for n in (Neighbours.ADD_REMOVE, Neighbours.ZERO_OUT, Neighbours.REPLACE))
DRAWN = Sampled(Gaussian(1.1), by=WithReplacement(256, 60000))


def settings() -> list[tuple[Leaf, Sampling, int, float, Unit]]:
    """Sixty-six: eleven of each sampling × neighbours, with noise, rate, steps and δ drawn over orders of magnitude."""
    rng = np.random.default_rng(20240)
    found: list[tuple[Leaf, Sampling, int, float, Unit]] = []
    for index in range(66):
        noise, rate = float(10 ** rng.uniform(-0.5, 0.7)), float(10 ** rng.uniform(-4.5, -0.5))
        steps, delta = int(10 ** rng.uniform(0.5, 4.3)), float(10 ** rng.uniform(-10, -3))
        population = int(10 ** rng.uniform(3, 5.5))
        batch = max(1, round(rate * population))
        other: Leaf = Laplace(noise) if rng.random() < 0.5 else Pure(1 / noise)
        row: tuple[Leaf, Sampling, Unit] = [
            (Gaussian(noise), Poisson(rate), ADD),
            (Gaussian(noise), Poisson(rate), REPLACE),
            (Gaussian(noise), WithoutReplacement(batch, population), REPLACE),
            (Gaussian(noise), WithoutReplacement(batch, population), ZERO),
            (Gaussian(noise), WithReplacement(batch, population), REPLACE),
            (other, Poisson(rate), REPLACE),
        ][index % 6]
        found.append((row[0], row[1], steps, delta, row[2]))
    return found


def renyi_bound(event: Event, delta: float, unit: Unit) -> float:
    try:
        return renyi.epsilon(canonical(event).parts, delta, unit)
    except NotProven:
        return math.inf


@pytest.mark.parametrize(("leaf", "by", "steps", "delta", "unit"), settings())
def test_finite_tight_and_in_order(leaf: Leaf, by: Sampling, steps: int, delta: float, unit: Unit) -> None:
    """Finite where ε ≤ 100 is known otherwise; within 3 % of where the certified δ(ε) crosses; rising with steps."""
    event = Repeated(Sampled(leaf, by=by), steps)
    parts = canonical(event).parts
    found = pld.epsilon(parts, delta, unit)
    known = renyi_bound(event, delta, unit)
    if known <= 100 or pld.delta(parts, 100.0, unit).upper <= delta:
        assert found.upper <= min(known * (1 + 1e-6) + 1e-3, 100.0)
    if found.upper > 100:
        return
    least = found.upper / 1.03 - 1e-3
    assert least <= 0 or pld.delta(parts, least, unit).upper > delta, "a smaller ε is certified"
    more = pld.upper_epsilon(canonical(Repeated(Sampled(leaf, by=by), 2 * steps)).parts, delta, unit)
    assert more >= found.lower
    assert more >= found.upper * (1 - 2e-3)
    assert pld.upper_epsilon(parts, delta / 10, unit) >= found.upper * (1 - 2e-3)


@pytest.mark.parametrize(
    ("steps", "delta", "epsilon"),
    [(52, 1e-5, 7.824), (101, 1e-5, 8.863), (704, 1e-5, 11.999), (704, 1e-6, 16.086), (1408, 1e-5, 13.542)],
)
def test_draws_with_replacement_are_priced_throughout(steps: int, delta: float, epsilon: float) -> None:
    """52 and 704 steps at δ = 1e-5 cost 405 and 8098 by advanced composition, between prices of 8 and 14."""
    found = accounting.epsilon(Repeated(DRAWN, steps), delta, unit=REPLACE)
    assert found.accountant == "pld"
    assert found.epsilon.upper == pytest.approx(epsilon, abs=2e-3)


def test_little_noise_is_priced_throughout() -> None:
    """53691 by advanced composition; a fixed batch of the same rate is never cheaper here, and was certified at 136."""
    found = accounting.epsilon(Repeated(Sampled(Gaussian(0.41), by=Poisson(0.00203)), 1666), 4.2e-8, unit=REPLACE)
    assert found.accountant == "pld"
    fixed = pld.epsilon(
        canonical(Repeated(Sampled(Gaussian(0.41), by=WithoutReplacement(203, 10**5)), 1666)).parts, 4.2e-8, REPLACE
    )
    assert found.epsilon.upper < fixed.upper < 137


@pytest.mark.parametrize("target", [9.0, 12.0])
def test_one_more_step_exceeds_with_replacement(target: float) -> None:
    """The search for steps stopped at 50 for both targets, where the price jumped to 396."""
    steps = accounting.most_steps(DRAWN, epsilon=target, delta=1e-5, unit=REPLACE)
    fits, exceeds = (accounting.epsilon(Repeated(DRAWN, n), 1e-5, unit=REPLACE).epsilon for n in (steps, steps + 1))
    assert fits.upper <= target < exceeds.upper < target * 1.01


def test_a_rate_whose_price_jumps_is_found() -> None:
    """With little noise ε jumps from 0 to 40 as rate × steps passes δ: the answer fits and 0.11 % more does not."""
    rate = accounting.sample_rate(epsilon=3.0, delta=1e-5, noise_multiplier=0.12, steps=50)

    def price(rate: float) -> float:
        return accounting.epsilon(Repeated(Sampled(Gaussian(0.12), by=Poisson(rate)), 50), 1e-5).epsilon.upper

    assert price(rate) <= 3.0 < price(rate * 1.0011)


@pytest.mark.parametrize("tilt", [0.3, 3.0, 40.0])
def test_windows_wider_than_a_double(tilt: float) -> None:
    """Losses from −2000 to 3000 on one grid: either end stays certified beside the closed form, at any tilt."""
    law, count = GaussianLoss(5.0), 50
    mu = 5.0 * math.sqrt(count)
    ends = reach(law, 1e-18)
    above = compose([(pessimistic(law, 0.05, *ends), count)], tilt)
    below = compose([(optimistic(law, 0.05, *ends), count)], tilt)
    for epsilon in (0.0, 300.0, 700.0, 1500.0):
        exact = gdp_to_delta(mu, epsilon)
        assert below.delta(epsilon, -1) <= exact * (1 + 1e-9) + 1e-300
        assert exact <= above.delta(epsilon, 1) * (1 + 1e-9)
    for delta in (1e-3, 1e-8):
        exact = gdp_to_epsilon(mu, delta)
        assert below.epsilon(delta, -1) <= exact <= above.epsilon(delta, 1)


def test_blocks_that_reveal_a_little_keep_their_curve() -> None:
    """δ(ε) of (0.5, 1e-6) five times: the gate once asked at a δ below the block's own, and let only bounds through."""
    event = Repeated(Approximate(0.5, 1e-6), 5)
    assert accounting.delta(event, 2.0).upper == pytest.approx(pld.delta(canonical(event).parts, 2.0, ADD).upper)
