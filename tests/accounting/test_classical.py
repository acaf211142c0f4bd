"""Basic and advanced composition: numbers derived by hand, and exact enumeration that they must not undercut."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

from privet.accounting import gdp, renyi, zcdp
from privet.accounting.accountant import Accountant
from privet.accounting.canonical import CountedEvent
from privet.accounting.composition import ADVANCED, BASIC
from privet.accounting.conversions import gdp_to_delta, gdp_to_epsilon, zcdp_to_epsilon
from privet.accounting.table import TABLE, AccountantRow
from privet.core.errors import NotProven
from privet.core.event import (
    Approximate,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    IndependentBatches,
    Laplace,
    Leaf,
    NoisyMax,
    Poisson,
    Pure,
    RandomizedResponse,
    Sampling,
    Selected,
    Shuffled,
    ShuffledEpoch,
    WithoutReplacement,
    WithReplacement,
)
from privet.core.trials import Trials
from privet.core.unit import Neighbours, Unit

ADD, ZERO = Unit(), Unit(neighbours=Neighbours.ZERO_OUT)
REPLACE = Unit(neighbours=Neighbours.REPLACE)


def one(leaf: Leaf, delta: float, unit: Unit = ADD, sampling: Sampling | None = None, count: int = 1) -> float:
    return BASIC.epsilon([CountedEvent(leaf, sampling, count)], delta, unit)


def amplify(epsilon: float, rate: float) -> float:
    return math.log(1 + rate * (math.exp(epsilon) - 1))


def test_pure_leaves_add_up() -> None:
    """Catches a dropped count, a lost factor 2 under replace, and a scale used as its inverse."""
    assert one(Laplace(4.0), 0.0, count=8) == 2.0
    assert one(Laplace(4.0), 0.0, REPLACE, count=8) == 4.0
    assert one(Laplace(4.0), 0.0, Unit(neighbours=Neighbours.L1_BALL, radius=0.5), count=8) == 1.0
    assert one(DiscreteLaplace(8.0, 2), 0.0) == 0.25
    assert one(DiscreteLaplace(8.0, 2), 0.0, REPLACE) == 0.5
    for leaf in (Exponential(0.25), NoisyMax(0.25), Pure(0.25)):
        assert one(leaf, 0.0, count=3) == 0.75
        assert one(leaf, 0.0, REPLACE, count=3) == 1.5
        assert one(leaf, 0.0, Unit(records=4), count=3) == 3.0
    assert one(RandomizedResponse(0.25, 7), 0.0, REPLACE, count=3) == 0.75
    mixed = [CountedEvent(Laplace(4.0), None, 8), CountedEvent(Pure(0.5), None, 2)]
    assert BASIC.epsilon(mixed, 0.0, ADD) == 3.0


def test_others_share_delta() -> None:
    """Catches δ spent once for all steps, by a part that needs none, or not at all: the split is stated and simple."""
    assert one(Gaussian(5.0), 1e-5, count=10) == pytest.approx(10 * gdp_to_epsilon(0.2, 1e-6))
    assert one(Gaussian(5.0), 1e-5, REPLACE, count=10) == pytest.approx(10 * gdp_to_epsilon(0.4, 1e-6))
    assert one(Gaussian(5.0), 1e-5, ZERO, ShuffledEpoch(7), 10) == pytest.approx(10 * gdp_to_epsilon(0.2, 1e-6))
    assert one(DiscreteGaussian(5.0, 2.0), 1e-5, count=10) == pytest.approx(10 * zcdp_to_epsilon(0.08, 1e-6))
    assert one(Concentrated(0.02), 1e-5, count=10) == pytest.approx(10 * zcdp_to_epsilon(0.02, 1e-6))
    parts = [
        CountedEvent(Gaussian(5.0), None, 10),
        CountedEvent(Concentrated(0.02), None, 4),
        CountedEvent(Laplace(2.0), None, 3),
    ]
    expected = 10 * gdp_to_epsilon(0.2, 5e-7) + 4 * zcdp_to_epsilon(0.02, 1.25e-6) + 1.5
    assert BASIC.epsilon(parts, 1e-5, ADD) == pytest.approx(expected)
    assert BASIC.epsilon(parts, 0.0, ADD) == math.inf


def test_blocks_bring_their_own_delta() -> None:
    """Catches a block's δ that is not counted, counted once, or not grown by group privacy."""
    parts = [CountedEvent(Approximate(0.5, 1e-7), None, 20), CountedEvent(Gaussian(5.0), None, 1)]
    assert BASIC.epsilon(parts, 1e-5, ADD) == pytest.approx(10 + gdp_to_epsilon(0.2, 8e-6))
    assert BASIC.epsilon(parts, 1.9e-6, ADD) == math.inf
    assert one(Approximate(0.5, 1e-7), 1.01e-7 * (1 + math.exp(0.5)), REPLACE) == 1.0
    assert one(Approximate(0.5, 1e-7), 0.99e-7 * (1 + math.exp(0.5)), REPLACE) == math.inf
    assert one(Approximate(0.5, 1e-7), 1e-7 * (1 + 1e-9), Unit(records=1)) == 0.5


def test_poisson_amplifies() -> None:
    """Catches ε·q, a δ that is not divided by q inside, and a replace-one leaf priced as add/remove."""
    rate = 0.01
    assert one(Pure(1.0), 0.0, ADD, Poisson(rate), 5) == pytest.approx(5 * amplify(1.0, rate))
    assert one(Pure(1.0), 0.0, REPLACE, Poisson(rate), 5) == pytest.approx(5 * amplify(2.0, rate))
    gaussian = amplify(gdp_to_epsilon(0.5, 1e-6 / rate), rate)
    assert one(Gaussian(2.0), 1e-5, ADD, Poisson(rate), 10) == pytest.approx(10 * gaussian)
    replaced = amplify(gdp_to_epsilon(1.0, 1e-6 / rate), rate)
    assert one(Gaussian(2.0), 1e-5, REPLACE, Poisson(rate), 10) == pytest.approx(10 * replaced)
    assert one(Approximate(1.0, 1e-6), 1.01e-8, ADD, Poisson(rate)) == pytest.approx(amplify(1.0, rate))
    assert one(Approximate(1.0, 1e-6), 0.99e-8, ADD, Poisson(rate)) == math.inf
    assert one(DiscreteGaussian(2.0, 1.0), 1e-5, ADD, Poisson(rate)) == pytest.approx(
        amplify(zcdp_to_epsilon(1 / 8, 1e-3), rate)
    )


def test_fixed_size_amplifies_the_replace_one_leaf() -> None:
    """Catches the add/remove leaf under sampling without replacement, for zero-out too, and a wrong rate."""
    sampling, rate = WithoutReplacement(20, 1000), 0.02
    for unit in (REPLACE, ZERO):
        expected = amplify(gdp_to_epsilon(1.0, 1e-5 / rate), rate)
        assert one(Gaussian(2.0), 1e-5, unit, sampling) == pytest.approx(expected)
        assert one(Laplace(2.0), 0.0, unit, sampling) == pytest.approx(amplify(1.0, rate))
    assert one(RandomizedResponse(1.0, 3), 0.0, REPLACE, sampling) == pytest.approx(amplify(1.0, rate))
    everyone = WithoutReplacement(1000, 1000)
    assert one(Gaussian(2.0), 1e-5, REPLACE, everyone) == pytest.approx(gdp_to_epsilon(1.0, 1e-5))
    assert one(Gaussian(2.0), 1e-5, ZERO, everyone) == pytest.approx(gdp_to_epsilon(0.5, 1e-5))


def test_with_replacement_sums_over_the_draws() -> None:
    """Catches shift k for 2k, a row that can be drawn once only, and η = m/n; the theorem is evaluated term by term."""
    draws, population, noise, delta = 50, 200, 5.0, 1e-4
    found = one(Gaussian(noise), delta, REPLACE, WithReplacement(draws, population))
    chance = 1 - (1 - 1 / population) ** draws
    inner = math.log(1 + (math.exp(found) - 1) / chance)
    terms = [binom.pmf(k, draws, 1 / population) * gdp_to_delta(2 * k / noise, inner) for k in range(1, draws + 1)]
    assert math.fsum(terms) == pytest.approx(delta, rel=2e-3)
    assert math.fsum(terms) <= delta
    assert one(Gaussian(noise), delta, ZERO, WithReplacement(draws, population)) == found
    single = one(Gaussian(noise), delta, REPLACE, WithReplacement(1, population))
    assert single == pytest.approx(one(Gaussian(noise), delta, REPLACE, WithoutReplacement(1, population)), rel=1e-6)
    assert one(Gaussian(noise), 1e-30, REPLACE, WithReplacement(draws, population)) < math.inf
    many = one(Gaussian(500.0), delta, REPLACE, WithReplacement(20000, 10))
    assert 0 < many < math.inf


def closed_form(epsilon: float, count: int, slack: float) -> float:
    """Kairouz, Oh & Viswanath 2015, Thm 3.4, written out."""
    drift = (math.exp(epsilon) - 1) * epsilon * count / (math.exp(epsilon) + 1)
    first = drift + epsilon * math.sqrt(2 * count * math.log(math.e + math.sqrt(count * epsilon**2) / slack))
    second = drift + epsilon * math.sqrt(2 * count * math.log(1 / slack))
    return min(count * epsilon, first, second)


def test_advanced_is_the_theorem() -> None:
    """Catches a wrong constant in the closed form, ε² without its count, and an answer above basic composition."""
    for epsilon, count, delta in (
        (0.1, 1000, 1e-6),
        (0.01, 10**6, 1e-9),
        (1.0, 3, 1e-6),
        (0.5, 40, 1e-3),
        (0.01, 100, 1e-3),
    ):
        found = ADVANCED.epsilon([CountedEvent(Pure(epsilon), None, count)], delta, ADD)
        assert found == pytest.approx(closed_form(epsilon, count, delta), rel=1e-9)
        textbook = epsilon * math.sqrt(2 * count * math.log(1 / delta)) + count * epsilon * (math.exp(epsilon) - 1)
        assert found <= min(textbook, count * epsilon)
    parts = [CountedEvent(Pure(0.1), None, 500), CountedEvent(Laplace(10.0), None, 500)]
    assert ADVANCED.epsilon(parts, 1e-6, ADD) == pytest.approx(closed_form(0.1, 1000, 1e-6), rel=1e-9)
    blocks = [CountedEvent(Approximate(0.1, 1e-9), None, 1000)]
    slack = -math.expm1(math.log1p(-2e-6) - 1000 * math.log1p(-1e-9))
    assert ADVANCED.epsilon(blocks, 2e-6, ADD) == pytest.approx(closed_form(0.1, 1000, slack), rel=1e-6)
    assert ADVANCED.epsilon(blocks, 0.9e-6, ADD) == math.inf


def exact_composition(epsilon: float, categories: int, count: int, delta: float) -> float:
    """The true ε of `count` K-ary responses at δ: how many reports favour one answer, the other, or neither."""
    weights = np.array([math.exp(epsilon), 1.0, categories - 2.0])
    keep, flip, rest = np.log(np.maximum(weights, 1e-300) / weights.sum())
    losses, logs = [], []
    for up in range(count + 1):
        for down in range(count + 1 - up):
            other = count - up - down
            ways = math.lgamma(count + 1) - math.lgamma(up + 1) - math.lgamma(down + 1) - math.lgamma(other + 1)
            losses.append((up - down) * epsilon)
            logs.append(ways + up * keep + down * flip + other * rest)
    loss, log_mass = np.array(losses), np.array(logs)
    assert abs(logsumexp(log_mass)) < 1e-9
    low, high = 0.0, count * epsilon
    for _ in range(60):
        middle = (low + high) / 2
        spent = float(np.sum(np.exp(log_mass) * np.maximum(0.0, -np.expm1(np.minimum(middle - loss, 0.0)))))
        low, high = (low, middle) if spent <= delta else (middle, high)
    return high


@pytest.mark.parametrize(("epsilon", "categories", "count"), [(0.1, 2, 60), (0.3, 5, 40), (1.0, 3, 10)])
def test_no_accountant_undercuts_exact_enumeration(epsilon: float, categories: int, count: int) -> None:
    """Catches any of these accountants below the truth: ten responses priced as one would fail by far."""
    truth = exact_composition(epsilon, categories, count, 1e-5)
    parts = [CountedEvent(RandomizedResponse(epsilon, categories), None, count)]
    by_renyi, by_advanced = renyi.epsilon(parts, 1e-5, REPLACE), ADVANCED.epsilon(parts, 1e-5, REPLACE)
    assert truth <= by_renyi <= by_advanced <= BASIC.epsilon(parts, 1e-5, REPLACE) == pytest.approx(count * epsilon)
    assert by_renyi < 1.25 * truth
    assert ADVANCED.delta(parts, by_advanced, REPLACE) <= 1e-5 * (1 + 1e-6)


def test_ladder_of_one_training_run() -> None:
    """Catches a rung that is missing or out of order for the run that is shown to everyone."""
    parts = [CountedEvent(Gaussian(1.1), Poisson(256 / 60000), 14062)]
    rungs = [renyi.epsilon(parts, 1e-5, ADD), ADVANCED.epsilon(parts, 1e-5, ADD), BASIC.epsilon(parts, 1e-5, ADD)]
    assert rungs == sorted(rungs)
    assert rungs[0] < 3 < rungs[1] < math.inf
    whole = [CountedEvent(Gaussian(30.0), None, 100)]
    rungs = [module.epsilon(whole, 1e-5, ADD) for module in (gdp, renyi, ADVANCED, BASIC)]
    assert rungs == sorted(rungs)


def test_delta_is_the_inverse_of_epsilon() -> None:
    """Catches a δ that is too small for its ε, and one that is far too large."""
    cases: list[tuple[list[CountedEvent], Unit]] = [
        ([CountedEvent(Gaussian(3.0), Poisson(0.1), 20)], ADD),
        ([CountedEvent(Gaussian(20.0), None, 20), CountedEvent(Laplace(30.0), None, 5)], REPLACE),
        ([CountedEvent(Approximate(0.2, 1e-8), None, 30)], ADD),
        ([CountedEvent(Gaussian(20.0), WithReplacement(20, 1000), 10)], REPLACE),
    ]
    for parts, unit in cases:
        for module in (BASIC, ADVANCED):
            epsilon = module.epsilon(parts, 1e-5, unit)
            found = module.delta(parts, epsilon * (1 + 1e-9), unit)
            assert found <= 1e-5 * (1 + 1e-6)
            assert module.epsilon(parts, found, unit) <= epsilon * (1 + 2e-9)
    assert BASIC.delta([CountedEvent(Pure(1.0), None, 3)], 3.0, ADD) == 0.0
    assert BASIC.delta([CountedEvent(Pure(1.0), None, 3)], 2.9, ADD) == 1.0
    assert BASIC.delta([CountedEvent(Approximate(1.0, 1e-4), None, 3)], 3.0, ADD) == pytest.approx(3e-4, rel=1e-6)


def test_corners() -> None:
    """Catches overflow, NaN and falling ε for counts up to 1e9, noise from 1e-3 to 1e6 and δ down to 1e-300."""
    for sampling in (None, Poisson(0.01)):
        for delta in (1e-3, 1e-300):
            for module in (BASIC, ADVANCED):
                found = np.array(
                    [
                        [
                            module.epsilon([CountedEvent(Gaussian(s), sampling, n)], delta, ADD)
                            for n in (1, 10**4, 10**9)
                        ]
                        for s in (1e6, 10.0, 1.0, 1e-3)
                    ]
                )
                assert not np.any(np.isnan(found))
                assert np.all(found >= 0)
                assert np.all(np.diff(found, axis=0) >= 0)
                assert np.all(np.diff(found, axis=1) >= 0)
    assert one(Laplace(1e-3), 0.0, count=10**9) == pytest.approx(1e12)
    assert BASIC.epsilon([], 0.0, ADD) == 0.0
    assert ADVANCED.epsilon([], 1e-5, ADD) == 0.0
    assert ADVANCED.epsilon([CountedEvent(Pure(1e6), Poisson(0.5), 1)], 1e-5, ADD) == pytest.approx(1e6 - math.log(2))


def test_sampled_groups_are_refused() -> None:
    """Catches a group of records amplified as if it were one record."""
    for sampling, neighbours in (
        (Poisson(0.1), Neighbours.ADD_REMOVE),
        (WithoutReplacement(1, 9), Neighbours.REPLACE),
        (WithReplacement(1, 9), Neighbours.REPLACE),
    ):
        with pytest.raises(NotProven, match="group privacy"):
            one(Gaussian(1.0), 1e-5, Unit(records=2, neighbours=neighbours), sampling)


LEAVES: dict[type[Leaf], Leaf] = {
    type(leaf): leaf
    for leaf in (
        Gaussian(2.0),
        DiscreteGaussian(2.0, 1.0),
        Laplace(2.0),
        DiscreteLaplace(2.0, 1),
        Exponential(0.5),
        NoisyMax(0.5),
        RandomizedResponse(0.5, 3),
        Pure(0.5),
        Approximate(0.5, 1e-9),
        Concentrated(0.01),
        Selected(Gaussian(4.0), Trials(0.2, 0.5)),
        Shuffled(RandomizedResponse(0.5, 3), 100),
    )
}
SAMPLINGS: dict[type[Sampling], Sampling] = {
    type(by): by
    for by in (
        Poisson(0.1),
        WithoutReplacement(10, 100),
        WithReplacement(10, 100),
        ShuffledEpoch(5),
        IndependentBatches(5),
    )
}
MODULES: dict[Accountant, Any] = {
    Accountant.RENYI: renyi,
    Accountant.ZCDP: zcdp,
    Accountant.GDP: gdp,
    Accountant.ADVANCED: ADVANCED,
    Accountant.BASIC: BASIC,
}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.theorem[:30])
def test_every_cell_of_the_table_has_a_rule(row: AccountantRow) -> None:
    """Catches a cell without a rule, and one whose ε and δ disagree, shrink with more runs or grow with more δ."""
    for kind, neighbours in product(row.leaves, row.neighbours):
        sampling = SAMPLINGS[row.sampling] if row.sampling is not None else None
        ball = neighbours in (Neighbours.L1_BALL, Neighbours.L2_BALL)
        unit = Unit(neighbours=neighbours, radius=1.0 if ball else 0.0)
        few, many = ([CountedEvent(LEAVES[kind], sampling, n)] for n in (3, 6))
        for accountant in set(row.accountants) & set(MODULES):
            module = MODULES[accountant]
            epsilon = module.epsilon(few, 1e-5, unit)
            assert 0 < epsilon < math.inf
            assert epsilon < module.epsilon(many, 1e-5, unit)
            assert module.epsilon(few, 1e-7, unit) >= epsilon
            assert module.delta(few, epsilon * (1 + 1e-9), unit) <= 1e-5 * (1 + 1e-6)
