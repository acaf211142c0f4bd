"""The curves that plots and meanings are made of agree with the prices, and bound what they say they bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from privet import accounting
from privet.accounting import Profile
from privet.core.errors import NotProven
from privet.core.event import (
    Composed,
    Concentrated,
    Event,
    Gaussian,
    Laplace,
    NonPrivate,
    Poisson,
    Repeated,
    Sampled,
    ShuffledEpoch,
)
from privet.core.unit import Unit

RUN = Repeated(Sampled(Gaussian(1.0), by=Poisson(0.01)), 1000)


@pytest.mark.parametrize(
    ("event", "unit"),
    [
        (RUN, Unit()),
        (Gaussian(1.0), Unit()),
        (Laplace(1.0), Unit()),
        (Repeated(Laplace(4.0), 9), Unit()),
        (Composed((Gaussian(3.0), Laplace(4.0))), Unit()),
        (Concentrated(0.1), Unit()),
        (Repeated(Sampled(Gaussian(2.0), by=Poisson(0.01)), 50), Unit(records=2)),
    ],
    ids=str,
)
def test_profile_agrees_with_the_price(event: Event, unit: Unit) -> None:
    """δ(ε) falls, stays within [0, 1], and is never below the proven lower bound of the price."""
    profile = Profile(event, unit)
    values = [profile.delta(epsilon) for epsilon in (0.0, 0.3, 1.0, 2.0, 4.0)]
    assert all(0 <= v <= 1 for v in values)
    assert values == sorted(values, reverse=True)
    for epsilon, value in zip((0.3, 2.0), (values[1], values[3]), strict=True):
        exact = accounting.delta(event, epsilon, unit=unit)
        assert value >= exact.lower * (1 - 1e-9)
        assert value <= max(exact.upper * 1.1, exact.upper + 1e-9)


def test_tail_bounds_the_loss() -> None:
    """For one Gaussian the tail is known: P(N(μ²/2, μ²) > l)."""
    profile, mu = Profile(Gaussian(1.0)), 1.0
    for loss in (1.0, 3.0, 5.0):
        exact = float(ndtr((mu**2 / 2 - loss) / mu))
        assert exact <= profile.tail(loss) <= 12 * exact
    assert profile.tail(0.001) == 1.0


def test_density_is_a_density() -> None:
    """It integrates to one, and its mean is the divergence."""
    for event in (RUN, Gaussian(2.0)):
        losses, density = Profile(event).density()
        width = losses[1] - losses[0]
        assert float(np.sum(density) * width) == pytest.approx(1.0, abs=1e-3)
    mean = float(np.sum(losses * density) * width)
    assert mean == pytest.approx(1 / 8, abs=1e-3)


def test_no_guarantee_has_no_curve() -> None:
    """Non-private events give δ = 1; unproven ones are refused before anything is drawn."""
    assert Profile(NonPrivate("raw")).delta(3.0) == 1.0
    with pytest.raises(NotProven):
        Profile(Sampled(Gaussian(1.0), by=ShuffledEpoch(3)))
    with pytest.raises(NotProven):
        Profile(Concentrated(0.1)).density()
    assert math.isinf(Profile(NonPrivate("raw")).epsilon(1e-5))
