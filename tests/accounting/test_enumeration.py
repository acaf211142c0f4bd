"""Compositions by enumeration of every outcome: nested counts, and both directions of pairs that are not symmetric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import pytest

from privet import accounting
from privet.accounting import Accountant, renyi
from privet.accounting.analytic_gaussian import gdp_to_epsilon
from privet.accounting.canonical import canonical
from privet.accounting.laws import GaussianLoss, LaplaceLoss, Law
from privet.accounting.laws.law import law_delta, law_epsilon
from privet.accounting.profile import Profile
from privet.core.event import (
    Approximate,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    Leaf,
    Poisson,
    Pure,
    RandomizedResponse,
    Repeated,
    Sampled,
    Shuffled,
)
from privet.core.unit import Neighbours, Unit
from tests.accounting.divergences import REPLACE

Pair = list[tuple[float, float]]
"""The masses of each outcome under the two data sets."""


def noise_pair(leaf: DiscreteLaplace | DiscreteGaussian) -> Pair:
    """Integer noise moved by its bound, and noise that is not moved; what is cut off is below 1e-17."""

    def weight(x: int) -> float:
        if isinstance(leaf, DiscreteLaplace):
            return math.exp(-abs(x) / leaf.scale)
        return math.exp(-(x**2) / (2 * leaf.sigma**2))

    bound = int(leaf.bound)
    reach = (60 if isinstance(leaf, DiscreteLaplace) else 30) + bound
    span = range(-reach, reach + 1)
    total = math.fsum(weight(x) for x in span)
    return merged([(weight(x - bound) / total, weight(x) / total) for x in span])


def merged(pair: Pair) -> Pair:
    """Outcomes of one likelihood ratio are one outcome: the divergences stay, and there are fewer to enumerate."""
    classes: dict[float, tuple[float, float]] = {}
    for p, q in pair:
        key = round(math.log(p / q), 9)
        before = classes.get(key, (0.0, 0.0))
        classes[key] = (before[0] + p, before[1] + q)
    return list(classes.values())


def sampled(pair: Pair, rate: float) -> Pair:
    """A row that enters by a coin: with it against without it."""
    return [((1 - rate) * q + rate * p, q) for p, q in pair]


def delta_of(pairs: Sequence[Pair], epsilon: float, reverse: bool) -> float:
    """δ(ε) of independent runs: the sum over all outcomes of max(0, P − e^ε·Q)."""
    sides = [[(q, p) if reverse else (p, q) for p, q in pair] for pair in pairs]
    terms = []
    for outcome in product(*sides):
        p = math.prod(one for one, _ in outcome)
        q = math.prod(other for _, other in outcome)
        terms.append(max(0.0, p - math.exp(epsilon) * q))
    return math.fsum(terms)


def check(event: Event, pairs: Sequence[Pair], epsilon: float, unit: Unit) -> tuple[float, float]:
    """Check that δ(ε) and ε(δ) enclose the larger of both directions closely, and return both."""
    both = delta_of(pairs, epsilon, False), delta_of(pairs, epsilon, True)
    exact = max(both)
    found = accounting.delta(event, epsilon, unit=unit)
    assert found.lower <= exact * (1 + 1e-9)
    assert exact * (1 - 1e-9) <= found.upper <= exact * 1.02 + 1e-9
    assert Profile(event, unit).delta(epsilon) >= exact * (1 - 1e-9)
    price = accounting.epsilon(event, exact, unit=unit).epsilon
    assert price.lower <= epsilon + 1e-6
    assert epsilon - 1e-6 <= price.upper <= epsilon + 0.02
    assert accounting.epsilon(event, exact, unit=unit, accountant=Accountant.PLD).epsilon.upper >= epsilon - 1e-6
    return both


@pytest.mark.parametrize(
    ("leaf", "rate", "steps", "epsilon"),
    [
        (DiscreteLaplace(0.7, 1), 0.1, 3, 0.05),
        (DiscreteLaplace(0.7, 1), 0.5, 2, 0.1),
        (DiscreteLaplace(1.5, 3), 0.2, 3, 0.05),
        (DiscreteGaussian(1.0, 1), 0.3, 2, 0.2),
        (DiscreteGaussian(1.0, 1), 0.1, 2, 0.02),
    ],
    ids=repr,
)
def test_sampled_integer_noise_in_both_directions(
    leaf: DiscreteLaplace | DiscreteGaussian, rate: float, steps: int, epsilon: float
) -> None:
    """Fails when a loss distribution is computed in one direction only: a row that is added can cost more than one that
    is removed, and the larger of both is the price.
    """
    pair = sampled(noise_pair(leaf), rate)
    event = Repeated(Sampled(leaf, by=Poisson(rate)), steps)
    check(event, [pair] * steps, epsilon, Unit())


def test_a_row_that_is_added_costs_more_at_a_small_epsilon() -> None:
    """Fails when the case above no longer tells the two directions apart: 0.0865 when removed, 0.0896 when added."""
    pair = sampled(noise_pair(DiscreteLaplace(0.7, 1)), 0.1)
    removed, added = (delta_of([pair] * 3, 0.05, reverse) for reverse in (False, True))
    assert round(removed, 4) == 0.0865
    assert round(added, 4) == 0.0896


def test_parts_with_different_rates_share_their_direction() -> None:
    """Fails when directions are priced part by part, or the larger of two parts' directions is mixed with the other."""
    first, second = DiscreteLaplace(0.7, 1), DiscreteGaussian(1.0, 1)
    pairs = [sampled(noise_pair(first), 0.1)] * 2 + [sampled(noise_pair(second), 0.4)]
    event = Composed((Repeated(Sampled(first, by=Poisson(0.1)), 2), Sampled(second, by=Poisson(0.4))))
    check(event, pairs, 0.1, Unit())


def nested(parts: Sequence[Leaf], outer: int, inner: int) -> Event:
    """The same composition, repeated inside a repetition."""
    return Repeated(Repeated(Composed(tuple(parts)), inner), outer)


def flat(parts: Sequence[Event], count: int) -> Event:
    """The same runs, part by part."""
    return Composed(tuple(Repeated(part, count) for part in parts))


FAMILIES: dict[str, tuple[tuple[Leaf, ...], Unit]] = {
    "gaussians": ((Gaussian(6.0), Gaussian(9.0)), Unit()),
    "pure": ((Laplace(8.0), DiscreteLaplace(9.0, 1)), Unit()),
    "answers": ((RandomizedResponse(0.2), RandomizedResponse(0.1, 3)), REPLACE),
    "mixed": ((Gaussian(8.0), Pure(0.05)), Unit()),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_repeated_composition_is_priced_as_its_runs_by_every_accountant(family: str) -> None:
    """Fails when the count of Repeated(Composed((a, b)), n) is forgotten, by any accountant that has a price."""
    parts, unit = FAMILIES[family]
    ours = accounting.ladder(nested(parts, 2, 3), 1e-5, unit=unit)
    theirs = accounting.ladder(flat(parts, 6), 1e-5, unit=unit)
    once = accounting.ladder(Composed(parts), 1e-5, unit=unit)
    assert [rung.guarantee for rung in ours] == [rung.guarantee for rung in theirs]
    priced = [(rung, one) for rung, one in zip(ours, once, strict=True) if rung.guarantee and one.guarantee]
    assert len(priced) >= 4
    for rung, one in priced:
        assert rung.guarantee is not None
        assert one.guarantee is not None
        assert rung.guarantee.epsilon.upper > 1.5 * one.guarantee.epsilon.upper


def test_repeated_composition_of_answers_by_enumeration() -> None:
    """Fails when the count of Repeated(Composed((a, b)), n) is forgotten, however else it is written."""
    pairs = []
    for epsilon in (0.6, 0.3):
        keep = 1 / (1 + math.exp(-epsilon))
        pairs += [[(keep, 1 - keep), (1 - keep, keep)]] * 3
    event = Repeated(Composed((RandomizedResponse(0.6), RandomizedResponse(0.3))), 3)
    exact = delta_of(pairs, 0.5, False)
    check(event, pairs, 0.5, REPLACE)
    for rung in accounting.ladder(event, exact, unit=REPLACE):
        assert rung.guarantee is None or rung.guarantee.epsilon.upper >= 0.5 - 1e-9


def test_repeated_composition_inside_a_shuffled_report() -> None:
    """Fails when the count of a repeated composition is forgotten inside a report of several answers."""
    unit = Unit(neighbours=Neighbours.REPLACE)
    once = Composed((RandomizedResponse(0.2), RandomizedResponse(0.3)))
    several = accounting.epsilon(Shuffled(Repeated(once, 2), 1000), 1e-6, unit=unit).epsilon
    spelled = Composed((*once.events, *once.events))
    assert several == accounting.epsilon(Shuffled(spelled, 1000), 1e-6, unit=unit).epsilon
    assert several.upper > 1.5 * accounting.epsilon(Shuffled(once, 1000), 1e-6, unit=unit).epsilon.upper


@pytest.mark.parametrize("leaf", [Gaussian(0.0), Laplace(0.0), DiscreteGaussian(0.0, 1), DiscreteLaplace(0.0, 1)])
def test_noiseless_leaves_have_no_guarantee(leaf: Leaf) -> None:
    """Fails when noise of scale 0 is priced at all, sampled or not, instead of being called unprotected."""
    for event in (leaf, Sampled(leaf, by=Poisson(0.01)), Composed((Gaussian(1.0), leaf))):
        price = accounting.epsilon(event, 1e-5)
        assert price.epsilon.upper == math.inf
        assert price.accountant == "none"
        assert "without noise" in price.assumptions[0]
        assert accounting.delta(event, 1.0).upper == 1.0


def test_delta_of_blocks_is_not_spent_again_by_the_renyi_conversion() -> None:
    """Fails when the δ that blocks reveal outright is also used to convert the Rényi curve of the others."""
    revealed, delta = 4e-6, 1e-5
    noise = canonical(Gaussian(2.0)).parts
    both = canonical(Composed((Gaussian(2.0), Approximate(0.0, revealed)))).parts
    found = renyi.epsilon(both, delta, Unit())
    assert found == pytest.approx(renyi.epsilon(noise, (delta - revealed) / (1 - revealed), Unit()), rel=1e-9)
    assert renyi.delta(both, found, Unit()) <= delta * (1 + 1e-9)
    assert found > renyi.epsilon(noise, delta, Unit()) * (1 + 1e-3)


@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("law", [LaplaceLoss(1.0), LaplaceLoss(0.3), GaussianLoss(1.0)], ids=repr)
def test_epsilon_of_a_single_run_is_a_bound_at_its_own_delta(law: Law, delta: float) -> None:
    """Fails when the upper end of ε is the last value that did not fit, or the lower end the first that did."""
    assert law_delta(law, law_epsilon(law, delta, 1), 1) <= delta
    assert law_delta(law, law_epsilon(law, delta, -1), -1) >= delta


def test_advanced_composition_splits_delta_between_the_steps_and_itself() -> None:
    """Fails when the δ that the steps spend is spent a second time by advanced composition."""
    noise, count, delta = 40.0, 500, 1e-6
    tried = []
    for share in (0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 0.99):
        each = gdp_to_epsilon(1 / noise, -math.expm1(math.log1p(-delta) * (1 - share) / count))
        slack = -math.expm1(math.log1p(-delta) * share)
        root = math.sqrt(count) * each
        spread = min(math.log(math.e + root / slack), math.log(1 / slack))
        tried.append(count * each * math.tanh(each / 2) + root * math.sqrt(2 * spread))
    found = accounting.epsilon(Repeated(Gaussian(noise), count), delta, accountant=Accountant.ADVANCED)
    assert found.epsilon.upper == pytest.approx(min(tried), rel=1e-6)
