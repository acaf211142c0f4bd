"""Data-dependent prices: the papers' formulae, never below the truth, and accepted nowhere."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet.accounting import renyi
from privet.accounting.canonical import canonical
from privet.core.codec import encode
from privet.core.disclosure import Public
from privet.core.errors import InvalidInput, NotProven
from privet.core.event import Approximate, Pure
from privet.core.guarantee import Guarantee, Interval
from privet.core.randomness import Randomness
from privet.core.release import Release
from privet.core.unit import Neighbours, Unit
from privet.ledger import Ledger
from privet.pate import Aggregator, Confident, DataDependent, GNMax, Interactive, LNMax, Plan, Votes, data_dependent
from privet.pate.data_dependent import log_missed, question_cost
from privet.pate.tails import log_ahead_gaussian, log_ahead_laplace, log_at_least
from privet.pate.theorems import theorem_3, theorem_6
from tests.accounting.divergences import rdp_to_epsilon_classic
from tests.pate import reference
from tests.pate.reference import ORDERS, divergence, gaussian, laplace, neighbours, passed, rows_of, winners

MATRIX = [[250, 0, 0], [240, 6, 4], [200, 30, 20], [150, 60, 40], [130, 120, 0], [84, 83, 83]]


@pytest.mark.parametrize("sigma", [10.0, 40.0, 100.0])
def test_gaussian_prices_are_the_papers(sigma: float) -> None:
    """Fails when Theorem 6, Proposition 7, 8 or 10, or one of their conditions, is not what the paper has."""
    applied = 0
    for row in MATRIX:
        q = reference.printed_proposition_7(row, sigma)
        log_q = min(math.log(q), 0.0)
        # Discrete noise of this width has the law of continuous noise at every gap, but for rounding at the tie.
        assert log_missed(GNMax(sigma), np.array([row]))[0] == pytest.approx(log_q, rel=0.05, abs=0.05)
        for order in ORDERS:
            expected = None if q >= 1 else reference.printed_theorem_6(q, sigma, order)
            found = float(theorem_6(np.array([log_q]), 1 / sigma**2, order)[0])
            applied += expected is not None
            assert found == (math.inf if expected is None else pytest.approx(expected, rel=1e-6, abs=2e-14))
    assert applied > 5


def test_laplace_prices_are_the_papers() -> None:
    """Fails when Theorem 3 of 2017, or its condition on q, is not what the paper has."""
    for q in (1e-12, 1e-6, 1e-3, 0.1, 0.4, 0.49):
        for epsilon in (0.02, 0.1, 1.0):
            for order in ORDERS:
                expected = reference.printed_theorem_3(q, epsilon, order)
                found = float(theorem_3(np.array([math.log(q)]), epsilon, order)[0])
                assert found == (math.inf if expected is None else pytest.approx(expected, rel=1e-6, abs=2e-14))


@pytest.mark.parametrize("sigma", [1.0, 7.0, 40.0])
def test_the_bound_rises_with_q(sigma: float) -> None:
    """Fails when a condition lets through a q below which some smaller q has a larger bound: orders of q̃, every q."""
    for log_q in np.linspace(-40, -0.05, 60):
        mu2 = sigma * math.sqrt(-log_q)
        for order in ORDERS:
            bound = float(theorem_6(np.array([log_q]), 1 / sigma**2, order)[0])
            if math.isinf(bound):
                continue
            q = np.exp(log_q) * np.linspace(1e-3, 1, 200)
            e1, e2 = (mu2 + 1) / sigma**2, mu2 / sigma**2
            first = (1 - q) / (1 - (q * math.exp(e2)) ** (1 - 1 / mu2))
            second = math.exp(e1) / q ** (1 / mu2)
            sums = np.log((1 - q) * first ** (order - 1) + q * second ** (order - 1)) / (order - 1)
            assert sums.max() <= bound + 1e-12


@pytest.mark.parametrize("scale", [0.3, 0.7, 1.0, 2.5, 6.0])
def test_tails_are_those_of_the_noise_drawn(scale: float) -> None:
    """Fails when a tie is not counted as overtaken, or a tail is that of continuous noise."""
    gaps = np.arange(12)
    for noise, found in ((gaussian(scale), log_ahead_gaussian), (laplace(scale), log_ahead_laplace)):
        difference = np.convolve(noise, noise[::-1])
        centre = len(difference) // 2
        beyond = [difference[centre + gap :].sum() for gap in gaps]
        assert np.exp(found(gaps, scale)) == pytest.approx(beyond, rel=1e-9, abs=1e-15)
        # the sanitised price rests on this: the chance to overtake is convex in the gap, from 1 on
        chances = np.exp(found(np.arange(1, 40), scale))
        assert (np.diff(chances, 2) >= -1e-16).all()
    noise = gaussian(scale)
    at_least = [noise[len(noise) // 2 + k :].sum() for k in range(-5, 6)]
    assert np.exp(log_at_least(np.arange(-5, 6), scale)) == pytest.approx(at_least, rel=1e-9)


def law(aggregator: Aggregator, row: list[int], place: int) -> np.ndarray:
    """What one question releases, by brute force; no answer comes last."""
    if isinstance(aggregator, LNMax):
        return winners(row, laplace(aggregator.scale))
    if isinstance(aggregator, GNMax):
        return winners(row, gaussian(aggregator.sigma))
    assert isinstance(aggregator, (Confident, Interactive))
    support = max(row)
    if isinstance(aggregator, Interactive):
        support = int(max(np.array(row) - np.rint(aggregator.student[place] * sum(row)).astype(int)))
    answered, not_answered = passed(support, aggregator.threshold, gaussian(aggregator.threshold_sigma))
    return np.append(answered * winners(row, gaussian(aggregator.sigma)), not_answered)


@pytest.mark.parametrize(
    ("teachers", "labels", "make"),
    [
        (12, 2, lambda rows: GNMax(1.5)),
        (9, 3, lambda rows: GNMax(1.0)),
        (40, 2, lambda rows: GNMax(4.0)),
        (12, 2, lambda rows: LNMax(1.0)),
        (8, 3, lambda rows: LNMax(0.8)),
        (12, 2, lambda rows: Confident(9, 2.0, 1.5)),
        (8, 3, lambda rows: Confident(6, 1.0, 1.0)),
        (12, 2, lambda rows: Interactive(3, 2.0, 1.5, np.tile([0.7, 0.3], (rows, 1)))),
    ],
)
def test_never_below_the_truth(teachers: int, labels: int, make: Callable[[int], Aggregator]) -> None:
    """Fails when some votes cost more than their price: every row, each of its neighbours, exact divergences.

    And fails when the price does not depend on the votes at all: somewhere it must be less than half of the
    data-independent one.
    """
    rows = list(rows_of(teachers, labels))
    aggregator = make(len(rows))
    plan = Plan(aggregator, len(rows), teachers, labels)
    once = Plan(aggregator, 1, teachers, labels)
    least = math.inf
    laws = {(place, tuple(row)): law(aggregator, row, place) for place, row in enumerate(rows)}
    for order in ORDERS:
        bounds = question_cost(plan, np.array(rows), order)
        whatever = renyi.total(canonical(once.event).parts, once.unit, (order,)).values[0]
        assert (bounds <= whatever * (1 + 1e-8)).all()
        least = min(least, float(bounds.min()) / whatever)
        for place, row in enumerate(rows):
            for other in neighbours(row):
                theirs = laws.setdefault((place, tuple(other)), law(aggregator, other, place))
                assert divergence(laws[place, tuple(row)], theirs, order) <= bounds[place] + 1e-9
    assert least < 0.5


def test_likely_misses_are_never_underestimated() -> None:
    """Fails when the union bound is below the exact chance that the plurality loses."""
    for aggregator, noise in ((GNMax(2.0), gaussian(2.0)), (LNMax(2.0), laplace(2.0))):
        for row in rows_of(10, 3):
            top = int(np.argmax(row))
            missed = 1 - winners(row, noise)[top]
            assert math.exp(log_missed(aggregator, np.array([row]))[0]) >= missed - 1e-12


def test_the_sum_over_questions() -> None:
    """Fails when a question is left out, or δ is converted once for each question."""
    plan = Plan(GNMax(40.0), 100, 250, 3)
    found = data_dependent(plan, Votes([[240, 6, 4]] * 100, teachers=250), 1e-5)
    each = float(question_cost(plan, np.array([[240, 6, 4]]), found.order)[0])
    classic = rdp_to_epsilon_classic([found.order], [100 * each], 1e-5)
    assert 0.5 * classic < found.epsilon <= classic
    split = data_dependent(plan, Votes([[84, 83, 83]] * 100, teachers=250), 1e-5)
    assert split.epsilon == plan.guarantee(1e-5).epsilon.upper  # nothing is gained where nobody agrees


def test_an_unlikely_answer_costs_little() -> None:
    """Fails when a question that will not be answered is priced as if it were: test and label together."""
    counts = np.array([[60, 50, 40]])
    often, seldom = (Plan(Confident(t, 20.0, 4.0), 1, 150, 3) for t in (0, 150))
    assert question_cost(seldom, counts, 5.0)[0] < 0.01 * question_cost(often, counts, 5.0)[0]


def test_units_of_several_teachers_are_refused() -> None:
    """Fails when a bound for one vote is printed for a unit that moves two."""
    plan = Plan(GNMax(4.0), 1, 10, 2, unit=Unit(neighbours=Neighbours.REPLACE))
    with pytest.raises(NotProven, match="one teacher alone"):
        data_dependent(plan, Votes([[9, 1]], teachers=10), 1e-5)


def private() -> Any:
    """Typed as anything, so that the refusals below are those of the code and not of a type checker."""
    plan = Plan(GNMax(40.0), 1, 250, 2)
    return data_dependent(plan, Votes([[250, 0]], teachers=250), 1e-5)


def test_no_budget_and_no_guarantee_takes_it(tmp_path: Path) -> None:
    """Fails when a data-dependent ε can be charged, promised or made an event of."""
    found = private()
    assert isinstance(private(), DataDependent)
    with Ledger(tmp_path / "budget.db") as ledger:
        with pytest.raises(InvalidInput):
            ledger.create("clinic", epsilon=found, delta=1e-5)
        ledger.create("clinic", epsilon=1.0, delta=1e-5)
        with pytest.raises(InvalidInput):
            ledger.reserve("clinic", found)
    for make in (
        lambda: Interval(0.0, found),
        lambda: Guarantee(found, 1e-5, Unit(), "pld"),
        lambda: Pure(found),
        lambda: Approximate(found, 1e-5),
    ):
        with pytest.raises(InvalidInput):
            make()
    with pytest.raises(TypeError):
        float(found)


def test_it_does_not_leave_by_itself() -> None:
    """Fails when a data-dependent ε can be printed, pickled, copied, changed or written as JSON."""
    found = private()
    shown = f"{found} {found!r} {found!s}"
    assert "not publishable, one-sided, for this data set only" in shown
    assert not any(character.isdigit() for character in shown)
    for leave in (pickle.dumps, copy.copy, copy.deepcopy, json.dumps, lambda value: value.to_json()):
        with pytest.raises(TypeError):
            leave(found)
    with pytest.raises(AttributeError):
        found.epsilon = 0.0


def test_no_card_is_written_with_it() -> None:
    """Fails when the codec behind ledgers, releases and cards finds a JSON form for it."""
    with pytest.raises(InvalidInput, match="DataDependent has no JSON form"):
        encode(private())


def test_neither_a_release_nor_a_page_takes_it() -> None:
    """Fails when a data-dependent ε could leave because somebody wrapped it in what may be shared."""
    release = Release.of(1.0, Pure(1.0), unit=Unit(), source="votes", randomness=Randomness.SECURE)
    with pytest.raises(InvalidInput, match="must not leave"):
        release.map(lambda _: private())
    with pytest.raises(InvalidInput, match="not public"):
        Public(private())
