"""Mechanisms for means: exact laws and density ratios, unbiased estimates, variances, and joint questions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privet.accounting import epsilon as priced
from privet.core.errors import InvalidInput
from privet.core.event import Approximate, Composed, Pure
from privet.core.random import SeededRng
from privet.core.unit import Neighbours
from privet.local import (
    MEANS,
    Duchi,
    GeneralizedRandomizedResponse,
    LocalGaussian,
    LocalLaplace,
    MeanMechanism,
    Piecewise,
    SampledQuestions,
    SplitQuestions,
    additive_noise,
    best_mean,
)
from privet.local.multiple_questions import split_epsilon
from privet.mechanisms.coins import growth
from tests.local.branches import largest_odds
from tests.local.laws import law_of
from tests.mechanisms.laws import gaussian_mass, hockey_stick

STEPS = 8
BOUNDED: list[type[MeanMechanism]] = [Duchi, Piecewise]


def grid(part: MeanMechanism) -> list[float]:
    return [part.low + (part.high - part.low) * step / part.steps for step in range(part.steps + 1)]


@pytest.mark.parametrize("kind", BOUNDED)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_bounded_reports_are_private_unbiased_and_vary_as_stated(
    kind: type[MeanMechanism], epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a report about one number is more than e^ε times as likely as about another, when its mean is not the
    number, or its variance not the formula: all summed over every report."""
    part = kind(epsilon, 2.0, 6.0, STEPS)
    laws = [law_of(part, value, monkeypatch) for value in grid(part)]
    odds = largest_odds(laws)
    assert odds <= growth(epsilon)
    assert math.log(odds) == pytest.approx(epsilon, rel=1e-9)
    for value, law in zip(grid(part), laws, strict=True):
        weights = np.array([float(each) for each in law.values()])
        found = np.array([part.estimate(part.aggregate([each])).estimate for each in law])
        assert weights @ found == pytest.approx(value, abs=1e-9)
        assert weights @ (found - value) ** 2 == pytest.approx(part.variance(value), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 5.0])
def test_variances_are_the_published_ones(epsilon: float) -> None:
    """Fails when a mechanism on its grid is another one than its paper's."""
    e, root = math.exp(epsilon), math.exp(epsilon / 2)
    for t in (-1.0, 0.0, 0.5):
        assert Duchi(epsilon).variance(t) == pytest.approx(((e + 1) / (e - 1)) ** 2 - t**2, rel=1e-4)
        paper = t**2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
        assert Piecewise(epsilon).variance(t) == pytest.approx(paper, rel=1e-4)
        assert LocalLaplace(epsilon).variance(t) == pytest.approx(8 / epsilon**2, rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_laplace_pays_for_the_whole_range(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the noise is halved, or made for a number that comes or goes in place of one that is replaced: the
    density ratio of the ends is e^(steps/scale), and the scale is what the sampler was really given."""
    asked: list[Fraction] = []

    def spy(scale: Fraction, size: int, rng: Any) -> Any:
        asked.append(scale)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(additive_noise, "discrete_laplace", spy)
    part = LocalLaplace(epsilon, -3.0, 5.0)
    ends = part.randomize([-3.0, 5.0, 99.0, -99.0], SeededRng(1))
    moved = int(ends.max() - ends.min())
    assert Fraction(moved) / asked[0] == Fraction(epsilon)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (1.0, 1e-5), (4.0, 1e-3)])
def test_gaussian_meets_its_delta_and_hardly_less(
    epsilon: float, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when σ is for half the range, or 1 % too small or too large: δ(ε) is summed over the discrete law."""
    asked: list[float] = []

    def spy(sigma: float, size: int, rng: Any) -> Any:
        asked.append(sigma)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(additive_noise, "discrete_gaussian", spy)
    part = LocalGaussian(epsilon, 0.0, 10.0, delta=delta)
    ends = part.randomize([0.0, 10.0], SeededRng(1))
    moved = int(ends[1] - ends[0])

    def at(sigma: float) -> float:
        x = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + moved)
        return hockey_stick(gaussian_mass(sigma, x), gaussian_mass(sigma, x - moved), epsilon)

    assert at(asked[0]) <= delta < at(0.99 * asked[0])
    assert part.event == Approximate(epsilon, delta, Neighbours.REPLACE)


@pytest.mark.parametrize("name", MEANS)
def test_many_reports_give_the_mean(name: str) -> None:
    """Fails when rounding to the grid, merging or scaling biases the mean, or the variance is off; within 4.5
    deviations of the noise (a false alarm in 10^5 runs), and the seed is fixed."""
    part = MEANS[name](1.5, 10.0, 90.0)
    values = np.linspace(15.3, 61.7, 40_000)
    reports = part.randomize(values, SeededRng(4))
    found = part.estimate(part.aggregate(reports[:100]) + part.aggregate(reports[100:]))
    assert abs(found.estimate - values.mean()) < 4.5 * math.sqrt(found.variance)
    true = float(np.mean([part.variance(value) for value in values[::40]])) / values.size
    assert true * 0.95 <= found.variance <= true * 1.12
    low, high = found.interval()
    assert 10.0 <= low < found.consistent() < high <= 90.0


@pytest.mark.parametrize("name", MEANS)
def test_numbers_between_two_steps_are_not_biased(name: str) -> None:
    """Fails when a number is rounded to the nearest step: 40,000 at a third of a step of two, within 5 deviations of
    the rounding, which here is known without noise; a false alarm in 10^6 runs, and the seed is fixed."""
    part = MEANS[name](1.0, 0.0, 1.0, 2)
    steps = part._on_grid(np.full(40_000, 1 / 6), SeededRng(3))
    assert set(steps.tolist()) == {0, 1}
    assert abs(steps.mean() - 1 / 3) < 5 * math.sqrt(2 / 9 / 40_000)


@pytest.mark.parametrize("name", MEANS)
def test_what_cannot_be_is_refused(name: str) -> None:
    """Fails when a missing number or an impossible report is taken."""
    part = MEANS[name](1.0)
    for bad in ([float("nan")], ["x"], [[0.0]]):
        with pytest.raises(InvalidInput, match="values"):
            part.randomize(bad, SeededRng(1))
    for report in (1 << 41, 0.5, -(1 << 41)):
        with pytest.raises(InvalidInput, match="reports"):
            part.aggregate([report])
    with pytest.raises(InvalidInput, match="no reports"):
        part.estimate(part.empty())
    with pytest.raises(InvalidInput, match="another"):
        part.empty() + MEANS[name](2.0).empty()
    for low, high in ((1.0, 1.0), (2.0, 1.0), (-1e308, 1e308)):
        with pytest.raises(InvalidInput, match="high"):
            MEANS[name](1.0, low, high)


def test_the_best_mechanism_for_means() -> None:
    """Fails when the choice is not by the worst variance, which changes at about ε = 1.3."""
    assert isinstance(best_mean(1.2), Duchi)
    assert isinstance(best_mean(1.4), Piecewise)


@pytest.mark.parametrize("epsilon", [1.0, 0.3, 2.7])
@pytest.mark.parametrize("weights", [(1, 1), (1, 1, 1), (1, 2, 7, 0.1)])
def test_a_split_budget_adds_up(epsilon: float, weights: tuple[float, ...]) -> None:
    """Fails when parts of ε sum to more than it, by however little, or to noticeably less."""
    parts = split_epsilon(epsilon, weights)
    total = sum(map(Fraction, parts))
    assert total <= Fraction(epsilon)
    assert float(total) == pytest.approx(epsilon, rel=1e-12)


def test_split_questions_are_composed_and_sampled_ones_are_not() -> None:
    """Fails when every question is given the whole ε in a split, or a part of it where one question is drawn; the
    accountant's price is compared."""
    both = SplitQuestions.of(1.0, [lambda e: GeneralizedRandomizedResponse(2, e), Duchi])
    assert isinstance(both.event, Composed)
    assert priced(both.event, 0.0, unit=both.unit).epsilon.upper == pytest.approx(1.0)
    wrong = SplitQuestions((GeneralizedRandomizedResponse(2, 1.0), Duchi(1.0)))
    assert priced(wrong.event, 0.0, unit=wrong.unit).epsilon.upper == pytest.approx(2.0)
    one = SampledQuestions((GeneralizedRandomizedResponse(2, 1.0), Duchi(1.0)))
    assert one.event == Pure(1.0, Neighbours.REPLACE)
    dearest = SampledQuestions((GeneralizedRandomizedResponse(2, 0.5), Duchi(2.0)))
    assert dearest.event == Pure(2.0, Neighbours.REPLACE)


@pytest.mark.parametrize("kind", [SplitQuestions, SampledQuestions])
def test_joint_questions_are_estimated_each_by_itself(kind: Any) -> None:
    """Fails when answers are given to the wrong question, or drawn ones are counted as given by all; within 5
    deviations, a false alarm in 10^6 runs, and the seed is fixed."""
    joint = kind((GeneralizedRandomizedResponse(2, 1.0), Duchi(1.0)))
    n = 20_000
    answers = [np.arange(n) % 4 == 0, np.full(n, 0.5)]
    states = joint.aggregate(joint.randomize([answers[0].astype(int), answers[1]], SeededRng(8)))
    assert sum(state.reports for state in states) == (2 * n if kind is SplitQuestions else n)
    shares, mean = (part.estimate(state) for part, state in zip(joint.parts, states, strict=True))
    assert abs(shares.estimate[1] - 0.25) < 5 * math.sqrt(shares.variance(0.25)[1] + 0.2 / shares.reports)
    assert abs(mean.estimate - 0.5) < 5 * math.sqrt(mean.variance)
    with pytest.raises(InvalidInput, match="answers"):
        joint.randomize([[1, 0], [0.5]], SeededRng(1))
