"""Errors and widths that are stated are those of the laws; groups, internal values and bounds do what they say."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

from privet import accounting
from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.core.unit import Unit
from privet.mechanisms import (
    Binomial,
    BoundedSum,
    Bounds,
    Categories,
    Cells,
    Count,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    Histogram,
    Keys,
    LaplaceMechanism,
    Magnitudes,
    Partitions,
    PermuteAndFlip,
    Quantile,
    Reach,
    ReportNoisyMax,
    RunningSums,
    Sensitivities,
    SmoothMedian,
    SparseVector,
    TopK,
)
from privet.mechanisms.partitions import keeping
from tests.mechanisms.examples import ADD, REPLACE
from tests.mechanisms.laws import (
    exponential_law,
    gaussian_mass,
    laplace_mass,
    noisy_max_law,
    permute_and_flip_law,
)

X = np.arange(-3000, 3001)


def binomial_mass(coins: int) -> Any:
    logs = [math.lgamma(coins + 1) - math.lgamma(k + 1) - math.lgamma(coins - k + 1) for k in range(coins + 1)]
    mass = np.zeros(len(X))
    mass[3000 - coins // 2 : 3001 + coins // 2] = np.exp(np.array(logs) - coins * math.log(2))
    return mass


NOISES: list[tuple[Any, Any]] = [
    *((DiscreteLaplaceMechanism(scale), laplace_mass(scale, X)) for scale in (0.2, 1.0, 3.7, 60.0)),
    *((DiscreteGaussianMechanism(sigma), gaussian_mass(sigma, X)) for sigma in (0.3, 2.0, 49.0, 51.0)),
    *((Binomial(coins, 1.0), binomial_mass(coins)) for coins in (16, 160, 1600)),
    (LaplaceMechanism.for_epsilon(0.5, Count(REPLACE)), laplace_mass(4.0, X)),
]


@pytest.mark.parametrize(("mechanism", "mass"), NOISES, ids=lambda value: getattr(value, "event", None) and str(value))
def test_errors_and_widths_are_those_of_the_law(mechanism: Any, mass: Any) -> None:
    """The mean error is the mean of |noise|; the width holds the confidence, and one step less would not (for large
    Gaussian noise: two steps, as its tail is bounded and not summed).
    """
    step = getattr(getattr(mechanism, "grid", None), "step", 1.0)
    assert mechanism.expected_error == pytest.approx(float((np.abs(X) * mass).sum()) * step, rel=1e-6)
    for confidence in (0.01, 0.5, 0.95, 0.9999):
        width = round(mechanism.interval(confidence) / step)
        assert mass[np.abs(X) <= width].sum() >= confidence - 1e-12
        slack = 2 if isinstance(mechanism, DiscreteGaussianMechanism) and mechanism.sigma > 50 else 1
        assert width < slack or mass[np.abs(X) <= width - slack].sum() < confidence


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (ExponentialMechanism, exponential_law),
        (PermuteAndFlip, permute_and_flip_law),
        (ReportNoisyMax, lambda scores, rate: noisy_max_law(scores, 1 / rate)),
    ],
    ids=["exponential", "permute-and-flip", "noisy-max"],
)
def test_choices_are_as_good_as_stated(kind: Any, law: Any) -> None:
    """The mean gap and the chance of a larger gap than stated, summed over the law, for several sets of scores."""
    reach = Reach(linf=1.0, dimension=5, whole=True)
    mechanism = kind.for_epsilon(1.0, reach)
    for scores in ((0, 0, 0, 0, 0), (5, 4, 0, 0, 0), (20, 0, 0, 0, 0), (9, 8, 7, 6, 5)):
        chances, gaps = law(scores, 0.5), max(scores) - np.array(scores)
        assert (chances * gaps).sum() <= mechanism.expected_error
        for confidence in (0.5, 0.9, 0.99):
            assert chances[gaps > mechanism.interval(confidence)].sum() <= 1 - confidence


def test_permute_and_flip_is_never_worse() -> None:
    """McKenna & Sheldon 2020, Thm 2: for the same ε its mean gap is at most that of the exponential mechanism."""
    for scores in ((5, 4, 0, 0), (3, 3, 3, 0), (10, 9, 8, 7)):
        gaps = max(scores) - np.array(scores)
        assert (permute_and_flip_law(scores, 0.5) * gaps).sum() <= (exponential_law(scores, 0.5) * gaps).sum() + 1e-12


def test_quantile_errors_are_in_rows() -> None:
    """With 99 % confidence no more rows than stated lie between the answer and the quantile: 300 draws, at most 15 miss
    (a false alarm below 1e-6).
    """
    of = Histogram(Cells(0, 100, 100))
    rows, rng = np.linspace(0, 100, 1001), SeededRng(1)
    query = of(rows)
    median = Quantile.for_epsilon(0.5, of)
    far = median.interval(0.99)
    misses = sum(abs(median.release(query, rng=rng).value - 50) * 10 > far + 10 for _ in range(300))
    assert misses <= 15
    end = Quantile.for_epsilon(0.5, of, 1.0)
    assert end.expected_error == pytest.approx(median.expected_error), "all scores move one way, but twice as far"
    largest = Quantile.for_epsilon(5.0, of, 1.0).release(query, rng=rng).value
    assert largest > 95


def test_running_sums_grow_with_the_logarithm() -> None:
    """A year of days costs nine levels; the width covers what the noise does, in 6 draws of 365 sums."""
    of = Histogram(Cells(0, 365, 365))
    plan = RunningSums.for_epsilon(1.0, 1e-6, of)
    assert plan.levels == 9
    assert accounting.epsilon(plan.event, 1e-6).epsilon.upper <= 1.0
    quiet = of([])
    drawn = np.array([plan.release(quiet, rng=SeededRng(seed)).value for seed in range(6)])
    assert (np.abs(drawn) > plan.interval(0.99)).mean() < 0.01
    assert np.abs(drawn).mean() < plan.expected_error


def test_keys_are_kept_from_the_stated_count_on() -> None:
    """Catches a count that is off by one."""
    mechanism = Partitions.for_epsilon(1.0, 1e-6, Keys())
    chances = keeping(mechanism.epsilon, mechanism.delta)
    least = int(mechanism.interval(0.95))
    assert chances[least] / 2**64 >= 0.95 > chances[least - 1] / 2**64
    assert least - 8 < mechanism.expected_error < least


def test_bounds_hold_almost_everyone() -> None:
    """1,000 ages and one typing error: the bounds are powers of two around the ages, for ten seeds.

    Under seeds picked at random, noise in an empty count would pass in one of a hundred such tests.
    """
    of = Histogram(Magnitudes())
    mechanism = Bounds.for_epsilon(1.0, of)
    ages = [20 + i % 70 for i in range(1000)] + [4e11]
    assert {mechanism.release(of(ages), rng=SeededRng(seed)).value for seed in range(10)} == {(16.0, 128.0)}
    both = mechanism.release(of([-3.0] * 200 + [0.0] * 200 + [900.0] * 200), rng=SeededRng(1)).value
    assert both == (-4.0, 1024.0)
    assert mechanism.release(of([0.0] * 500), rng=SeededRng(1)).value == (-(2.0**-20), 2.0**-20)
    assert mechanism.release(of([0.0] * 500 + [-3.0] * 500), rng=SeededRng(1)).value == (-4.0, 0.0)
    lower, upper = mechanism.release(of([]), rng=SeededRng(1)).value
    assert lower < upper
    assert mechanism.interval(0.9) < 40


def test_a_group_of_k_needs_k_times_the_noise() -> None:
    """Catches a unit of several records whose records are counted once, or squared."""
    one, three = LaplaceMechanism.for_epsilon(1.0, Count()), LaplaceMechanism.for_epsilon(1.0, Count(Unit(records=3)))
    assert three.scale == pytest.approx(3 * one.scale)
    group = accounting.epsilon(one.event, 0.0, unit=Unit(records=3)).epsilon.upper
    assert group == pytest.approx(3.0)
    wide = GaussianMechanism.for_epsilon(1.0, 1e-5, Count(Unit(records=3)))
    assert wide.sigma == pytest.approx(3 * GaussianMechanism.for_epsilon(1.0, 1e-5, Count()).sigma, rel=5e-3)


def test_replaced_rows_cost_what_they_move() -> None:
    """A count needs no more noise for replaced rows, a histogram twice as much Laplace and √2 times as much Gaussian
    noise. Catches a factor of 2 that is forgotten, and one too many.
    """
    assert LaplaceMechanism.for_epsilon(1.0, Count(REPLACE)).scale == LaplaceMechanism.for_epsilon(1.0, Count()).scale
    letters = [Histogram(Categories(tuple("abc")), unit) for unit in (ADD, REPLACE)]
    plain, replaced = (LaplaceMechanism.for_epsilon(1.0, of).scale for of in letters)
    assert replaced == 2 * plain
    plain, replaced = (GaussianMechanism.for_epsilon(1.0, 1e-5, of).sigma for of in letters)
    assert replaced == pytest.approx(math.sqrt(2) * plain, rel=5e-3)


def test_a_delta_buys_more_choices() -> None:
    """Ten choices at δ = 1e-6 get more ε each than a tenth."""
    of = Histogram(Cells(0, 50, 50))
    assert TopK.for_epsilon(1.0, of, k=10).epsilon == pytest.approx(0.1)
    assert TopK.for_epsilon(1.0, of, k=10, delta=1e-6).epsilon > 0.12


def test_internal_values_stay_inside() -> None:
    """Catches a local sensitivity that is printed or pickled; the global one is public."""
    internal = Sensitivities(100.0, 3.25, 4.5)
    assert repr(internal) == "Sensitivities(largest=100.0)"
    with pytest.raises(TypeError, match="private"):
        pickle.dumps(internal)
    of = Histogram(Cells(0, 100, 1000, missing=0.0), REPLACE)
    found = SmoothMedian(1.0, 1e-6, of).sensitivities(of([50 + 0.01 * i for i in range(1000)]))
    assert found.local <= found.smooth < found.largest / 50


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (lambda: BoundedSum(3, 3), "upper"),
        (lambda: BoundedSum(0, math.inf), "upper"),
        (lambda: BoundedSum(0, 1e300), "linf"),
        (lambda: Cells(0, 1, 0), "size"),
        (lambda: Categories(("a", "a")), "names"),
        (lambda: Magnitudes(3, 3), "most"),
        (lambda: LaplaceMechanism(0.0), "scale"),
        (lambda: LaplaceMechanism(1e30), "scale"),
        (lambda: LaplaceMechanism(1.0, "count"), "of"),  # type: ignore[arg-type]
        (lambda: DiscreteLaplaceMechanism(1.0, BoundedSum(0, 1)), "of"),
        (lambda: Binomial(17, 1.0), "coins"),
        (lambda: Quantile(1.0, Histogram(Categories(tuple("ab")))), "of"),
        (lambda: Quantile(1.0, Histogram(Cells(0, 1, 4)), 1.5), "quantile"),
        (lambda: SmoothMedian(1.0, 1e-6, Histogram(Cells(0, 1, 4, missing=0.0))), "of"),
        (lambda: SmoothMedian(1.0, 1e-6, Histogram(Cells(0, 1, 4), REPLACE)), "of"),
        (lambda: SmoothMedian(1.0, 0.0, Histogram(Cells(0, 1, 4, missing=0.0), REPLACE)), "delta"),
        (lambda: TopK.for_epsilon(1.0, Histogram(Categories(tuple("ab"))), k=3), "k"),
        (lambda: SparseVector.for_epsilon(1.0, Count(), threshold=math.nan), "threshold"),
        (lambda: Partitions.for_epsilon(1.0, 1e-25, Keys()), "delta"),
        (lambda: Partitions.for_epsilon(1e-9, 1e-12, Keys()), "epsilon"),
        (lambda: Bounds.for_epsilon(1.0, Histogram(Cells(0, 1, 4))), "of"),
        (Reach, "l1"),
        (lambda: Reach(REPLACE, linf=1.0, monotone=True), "monotone"),
    ],
)
def test_public_mistakes_get_one_clear_line(wrong: Any, word: str) -> None:
    """Catches a plan that cannot hold and is taken all the same; the error names the argument."""
    with pytest.raises(InvalidInput) as caught:
        wrong()
    assert caught.value.argument == word
