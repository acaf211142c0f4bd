"""The density of the loss is drawn from the distribution itself, and not from how its grid falls into bins."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from privet.accounting import epsilon
from privet.core.event import DiscreteGaussian, Event, Gaussian, Poisson, Repeated, Sampled, WithoutReplacement
from privet.core.unit import Neighbours, Unit
from privet.report.bound import Bound
from privet.report.loss import LossDensity, loss_of

RUNS: dict[str, tuple[Event, Unit]] = {
    "many steps": (Repeated(Sampled(Gaussian(1.1), by=Poisson(0.01)), 500), Unit()),
    "ten steps": (Repeated(Sampled(Gaussian(1.1), by=Poisson(0.01)), 10), Unit()),
    "three steps": (Repeated(Sampled(Gaussian(1.1), by=Poisson(0.1)), 3), Unit()),
    "a large loss": (Repeated(Sampled(Gaussian(0.5), by=Poisson(0.1)), 200), Unit()),
    "batches of a fixed size": (
        Repeated(Sampled(Gaussian(2.0), by=WithoutReplacement(30, 1000)), 200),
        Unit(neighbours=Neighbours.REPLACE),
    ),
    "no sampling": (Gaussian(4.0), Unit()),
}


def drawn(event: Event, unit: Unit) -> LossDensity:
    stated = epsilon(event, 1e-5, unit=unit)
    found = loss_of(Bound(event, unit, stated), stated)
    assert found is not None
    return found


@pytest.mark.parametrize("name", RUNS)
def test_the_density_rises_and_falls_once(name: str) -> None:
    """Fails when bins that do not fit the grid make a saw of the curve, or when its two halves do not meet.

    Each of these losses has one peak: it is a sum of equal parts with one peak each.
    """
    loss = drawn(*RUNS[name])
    peak = loss.density.index(max(loss.density))
    before, after = loss.density[: peak + 1], loss.density[peak:]
    assert loss.is_whole
    assert list(loss.losses) == sorted(loss.losses)
    # The halves come from two computations, each a little above the truth.
    assert all(b >= a * 0.99 for a, b in pairwise(before))
    assert all(b <= a * 1.01 for a, b in pairwise(after))


@pytest.mark.parametrize("name", RUNS)
def test_the_density_adds_up_to_one(name: str) -> None:
    """Fails when a coarse grid is drawn with the width of finer bins: ten steps once had an area of 1.54."""
    loss = drawn(*RUNS[name])
    points = zip(loss.losses, loss.density, strict=True)
    area = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points))
    assert area == pytest.approx(1, abs=0.01)


def test_the_left_half_is_that_of_the_run() -> None:
    """Fails when the density below 0 is not the run's: compared with 200,000 drawn losses of ten steps.

    The chance of each loss bin lies within 5 deviations of its share among the draws (and 2 % for the grid): five bins,
    so a false alarm has a probability of less than 3e-6. The seed is fixed.
    """
    sigma, rate, steps, draws = 1.1, 0.01, 10, 200_000
    loss = drawn(*RUNS["ten steps"])
    rng = np.random.default_rng(7)
    outputs = rng.normal(size=(draws, steps)) * sigma + (rng.random((draws, steps)) < rate)
    losses = np.log1p(rate * np.expm1((2 * outputs - 1) / (2 * sigma**2))).sum(axis=1)
    places, heights = np.array(loss.losses), np.array(loss.density)
    cumulative = np.concatenate([[0.0], np.cumsum(np.diff(places) * (heights[1:] + heights[:-1]) / 2)])
    for low, high in pairwise([-0.06, -0.045, -0.03, -0.02, -0.01, -0.005]):
        shown = float(np.interp(high, places, cumulative) - np.interp(low, places, cumulative))
        seen = float(np.mean((losses > low) & (losses <= high)))
        deviation = math.sqrt(seen * (1 - seen) / draws)
        assert abs(shown - seen) < 5 * deviation + 0.02 * seen


def test_rounding_errors_are_not_drawn() -> None:
    """Fails when the noise of the convolution, some 1e-16 of the peak between the atoms of a discrete law, is shown."""
    loss = drawn(Repeated(DiscreteGaussian(2.0, 1), 5), Unit())
    assert min(loss.density) > 1e-12 * max(loss.density)
