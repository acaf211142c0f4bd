"""The event is what was drawn; every question is charged; the price is that of the votes' distance."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from privet.accounting import price, renyi
from privet.accounting.canonical import canonical
from privet.core.errors import BudgetExceeded, InvalidInput
from privet.core.event import Composed, DiscreteGaussian, DiscreteLaplace, Leaf
from privet.core.random import SeededRng
from privet.core.unit import Neighbours, Unit, Whose
from privet.ledger import Ledger
from privet.pate import Aggregator, Confident, GNMax, Interactive, LNMax, Plan, Votes, least_noise, most_questions
from tests.pate.reference import ORDERS, divergence, gaussian, laplace, neighbours, passed, rows_of, winners

TRIALS = 20_000
ALARM = 1e-7
"""The false-alarm rate of each statistical test."""


def runs(plan: Plan) -> Counter[Leaf]:
    """How often each leaf of a plan's event is run."""
    found: Counter[Leaf] = Counter()
    for part in canonical(plan.event).parts:
        found[part.leaf] += part.count
    return found


def sigma_of(plan: Plan, count: int) -> float:
    """The Gaussian noise that the event has `count` times."""
    [leaf] = [leaf for leaf, times in runs(plan).items() if times == count]
    assert isinstance(leaf, DiscreteGaussian)
    return leaf.sigma


def agrees(hits: int, chance: float) -> bool:
    return bool(binomtest(hits, TRIALS, chance).pvalue > ALARM)


@pytest.mark.parametrize("row", [[12, 8], [9, 7, 4], [20, 0]])
def test_labels_have_the_law_of_the_event(row: list[int]) -> None:
    """Fails when the noise drawn is not the noise charged: halved, doubled, on one count only, or of another kind."""
    votes = Votes([row] * TRIALS, teachers=20)
    for aggregator in (GNMax(6.0), LNMax(5.0)):
        plan = Plan(aggregator, TRIALS, 20, len(row))
        [(leaf, count)] = runs(plan).items()
        assert count == 2 * TRIALS
        noise = laplace(leaf.scale) if isinstance(leaf, DiscreteLaplace) else gaussian(sigma_of(plan, 2 * TRIALS))
        labels = Counter(plan.release(votes, rng=SeededRng(3)).value)
        for label, chance in enumerate(winners(row, noise)):
            assert agrees(labels[label], float(chance))


def test_the_threshold_is_tested_with_the_noise_of_the_event() -> None:
    """Fails when the test's noise is halved or left out, or when a question that failed it is answered."""
    plan = Plan(Confident(14, 5.0, 3.0), TRIALS, 20, 2)
    first, second = sigma_of(plan, TRIALS), sigma_of(plan, 2 * TRIALS)
    found = plan.release(Votes([[12, 8]] * TRIALS, teachers=20), rng=SeededRng(4)).value
    chance, _ = passed(12, 14, gaussian(first))
    assert agrees(sum(label is not None for label in found), chance)
    assert agrees(sum(label == 0 for label in found), chance * float(winners([12, 8], gaussian(second))[0]))


def test_every_question_is_charged_answered_or_not() -> None:
    """Fails when the test is forgotten in the event, or a question without an answer is not in it."""
    plan = Plan(Confident(200, 150.0, 40.0), questions=640, teachers=250, labels=10, answers=286)
    assert runs(plan) == {DiscreteGaussian(150.0, 1): 640, DiscreteGaussian(40.0, 1): 2 * 286}
    split = Votes([[25] * 10] * 640, teachers=250)
    silent = replace(plan, aggregator=Confident(5000, 150.0, 40.0)).release(split, rng=SeededRng(1))
    assert set(silent.value) == {None}
    assert silent.event == plan.event
    student = np.full((640, 10), 0.1)
    again = replace(plan, aggregator=Interactive(200, 150.0, 40.0, student))
    assert runs(again) == runs(plan)
    assert runs(replace(plan, aggregator=GNMax(40.0), answers=None)) == {DiscreteGaussian(40.0, 1): 2 * 640}


def test_no_more_answers_than_were_charged() -> None:
    """Fails when questions that pass the test are answered beyond the number that the event has."""
    sure = Votes([[250, 0]] * 50, teachers=250)
    for aggregator in (Confident(100, 1.0, 1.0), GNMax(1.0), LNMax(1.0)):
        found = Plan(aggregator, 50, 250, 2, answers=7).release(sure, rng=SeededRng(2)).value
        assert found == (0,) * 7 + (None,) * 43


def test_the_student_answers_where_teachers_agree_with_it() -> None:
    """Fails when Interactive asks where the student is right, or takes an unsure student's label (Algorithm 2)."""
    student = np.array([[0.95, 0.05], [0.95, 0.05], [0.6, 0.4]])
    votes = Votes([[95, 5], [0, 100], [62, 38]], teachers=100)
    plan = Plan(Interactive(40, 0.5, 0.5, student, confidence=0.9), 3, 100, 2)
    assert plan.release(votes, rng=SeededRng(1)).value == (0, 1, None)
    with pytest.raises(InvalidInput, match="student has the shape"):
        Plan(Interactive(40, 0.5, 0.5, student[:2]), 3, 100, 2).release(votes, rng=SeededRng(1))
    for bad in ([[0.5, 0.6]], [[math.nan, 1.0]], [0.5, 0.5]):
        with pytest.raises(InvalidInput, match="student"):
            Interactive(40, 0.5, 0.5, np.array(bad))


@pytest.mark.parametrize("aggregator", [GNMax(1.5), LNMax(1.2), Confident(3, 1.5, 1.0)], ids=repr)
def test_no_votes_cost_more_than_the_event(aggregator: Aggregator) -> None:
    """Fails when the event understates how far one teacher moves the counts: every row and neighbour of 4 votes."""
    plan = Plan(aggregator, 1, 4, 3)
    curve = renyi.total(canonical(plan.event).parts, plan.unit, ORDERS).values
    for row in rows_of(4, 3):
        for other in neighbours(row):
            p, q = (outcomes(aggregator, each) for each in (row, other))
            for order, most in zip(ORDERS, curve, strict=True):
                assert divergence(p, q, order) <= most * (1 + 1e-9)


def outcomes(aggregator: Aggregator, row: list[int]) -> np.ndarray:
    """The law of what one question releases; no answer comes last."""
    if isinstance(aggregator, LNMax):
        return winners(row, laplace(aggregator.scale))
    if isinstance(aggregator, GNMax):
        return winners(row, gaussian(aggregator.sigma))
    assert isinstance(aggregator, Confident)
    answered, not_answered = passed(max(row), aggregator.threshold, gaussian(aggregator.threshold_sigma))
    return np.append(answered * winners(row, gaussian(aggregator.sigma)), not_answered)


PAPER = [
    (Confident(200, 150.0, 40.0), 640, 286, 1e-5, 3.17),
    (Confident(300, 200.0, 40.0), 8500, 3098, 1e-6, 12.7),
    (Confident(300, 200.0, 40.0), 1500, 524, 1e-5, 4.34),
    (Confident(1000, 500.0, 100.0), 12000, 10762, 1e-8, 10.1),
]


@pytest.mark.parametrize(("aggregator", "asked", "answered", "delta", "published"), PAPER)
def test_the_papers_settings(aggregator: Aggregator, asked: int, answered: int, delta: float, published: float) -> None:
    """Fails when the event's Rényi curve is not a·(asked/2σ₁² + answered/σ₂²), or loss distributions do not help."""
    plan = Plan(aggregator, asked, 250, 10, answered)
    slope = renyi.total(canonical(plan.event).parts, plan.unit, (2.0,)).values[0] / 2
    classic = slope + 2 * math.sqrt(slope * math.log(1 / delta))
    assert classic == pytest.approx(published, rel=5e-3)
    quick = price.quick(plan.event, delta)
    assert quick < classic
    if asked < 1000:
        assert plan.guarantee(delta).epsilon.upper < quick


@pytest.mark.parametrize(("questions", "delta", "published"), [(100, 1e-5, 5.80), (1000, 1e-6, 26.6)])
def test_the_laplace_settings(questions: int, delta: float, published: float) -> None:
    """Fails when LNMax costs more than 4Tγ² + 2γ√(2T·log(1/δ)), or its pure ε is not 2γ a question."""
    plan, gamma = Plan(LNMax(20.0), questions, 250, 10), 1 / 20
    classic = 4 * questions * gamma**2 + 2 * gamma * math.sqrt(2 * questions * math.log(1 / delta))
    assert classic == pytest.approx(published, rel=2e-3)
    assert plan.guarantee(delta).epsilon.upper < classic
    assert plan.guarantee(0.0).epsilon.upper == pytest.approx(2 * gamma * questions)


@pytest.mark.parametrize("aggregator", [GNMax(40.0), LNMax(30.0), Confident(200, 150.0, 40.0)], ids=repr)
def test_units_that_change_several_teachers_pay_for_them(aggregator: Aggregator) -> None:
    """Fails when a replaced record or a user of two records is priced as one teacher."""
    one = Plan(aggregator, 20, 250, 10)
    alone = renyi.total(canonical(one.event).parts, one.unit, (2.0,)).values[0]
    for unit in (Unit(neighbours=Neighbours.REPLACE), Unit(whose=Whose.USER, records=2)):
        both = replace(one, unit=unit)
        found = renyi.total(canonical(both.event).parts, unit, (2.0,)).values[0]
        assert found > 3.5 * alone
        if not isinstance(aggregator, LNMax):
            assert found == pytest.approx(4 * alone, rel=1e-9)


def test_planning_never_exceeds_the_target_and_wastes_little() -> None:
    """Fails when a plan costs more than (ε, δ), or one more question (0.2 % less noise) would have fitted too."""
    plan = most_questions(Confident(200, 150.0, 40.0), epsilon=1.0, delta=1e-5, teachers=250, labels=10, answered=0.5)
    assert plan.guarantee(1e-5).epsilon.upper <= 1.0
    more = replace(plan, questions=plan.questions + 2, answers=plan.most + 1)
    assert more.guarantee(1e-5).epsilon.upper > 1.0
    quiet = least_noise(
        lambda noise: Confident(200, 3 * noise, noise),
        epsilon=1.0,
        delta=1e-5,
        questions=200,
        answers=100,
        teachers=250,
        labels=10,
    )
    assert quiet.guarantee(1e-5).epsilon.upper <= 1.0
    assert isinstance(quiet.aggregator, Confident)
    less = Confident(200, quiet.aggregator.threshold_sigma * 0.998, quiet.aggregator.sigma * 0.998)
    assert replace(quiet, aggregator=less).guarantee(1e-5).epsilon.upper > 1.0
    with pytest.raises(InvalidInput, match="does not pay for one question"):
        most_questions(GNMax(0.5), epsilon=0.1, delta=1e-5, teachers=250, labels=10)


def test_a_ledger_charges_the_plan(tmp_path: Path) -> None:
    """Fails when a plan's event is not what a budget admits, or a second plan fits where only one is paid for."""
    plan = least_noise(GNMax, epsilon=0.9, delta=5e-6, questions=20, teachers=50, labels=2)
    votes = Votes([[45, 5]] * 20, teachers=50)
    with Ledger(tmp_path / "budget.db") as ledger:
        ledger.create("clinic", epsilon=1.0, delta=1e-5, unit=plan.unit)
        with ledger.reserve("clinic", plan.event, unit=plan.unit).drawing():
            labels = plan.release(votes, rng=SeededRng(1), source="clinic")
        assert len(labels.value) == 20
        assert labels.tainted
        assert labels.source == ("clinic",)
        with pytest.raises(BudgetExceeded):
            ledger.reserve("clinic", plan.event, unit=plan.unit)


def test_votes_must_be_those_of_the_plan() -> None:
    """Fails when more questions are answered than were planned, or other counts are taken for votes."""
    plan = Plan(GNMax(1.0), 1, 4, 2)
    for votes in (Votes([[2, 2]] * 2, teachers=4), Votes([[2, 1]], teachers=3), Votes([[2, 1, 1]], teachers=4)):
        with pytest.raises(InvalidInput, match="and the plan has"):
            plan.release(votes, rng=SeededRng(1))
    with pytest.raises(InvalidInput, match="votes is a list"):
        plan.release([[2, 2]], rng=SeededRng(1))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="answers is 5, above the 1 questions"):
        replace(plan, answers=5)


@pytest.mark.parametrize("aggregator", [GNMax(3.0), LNMax(3.0)])
def test_counts_have_the_noise_of_the_event_on_every_label(aggregator: GNMax | LNMax) -> None:
    """Fails when a label's count is released with less noise than is priced, with none, or with that of another label:
    means and variances within 6 standard errors, and no correlation; a false alarm is one in 10⁸."""
    plan = Plan(aggregator, questions=TRIALS, teachers=9, labels=3)
    votes = Votes(np.tile([5, 3, 1], (TRIALS, 1)), teachers=9)
    release = plan.counts(votes, rng=SeededRng(3))
    assert release.event == plan.event
    noise = np.array(release.value) - [5, 3, 1]
    width = aggregator.sigma if isinstance(aggregator, GNMax) else aggregator.scale * 2**0.5
    assert np.abs(noise.mean(0)).max() < 6 * width / TRIALS**0.5
    # the fourth moment of Laplace noise is 6 σ⁴, that of Gaussian noise 3 σ⁴
    assert noise.var(0) == pytest.approx(width**2, rel=6 * (5 / TRIALS) ** 0.5, abs=0.2)
    together = np.corrcoef(noise.T) - np.eye(3)
    assert np.abs(together).max() < 6 / TRIALS**0.5


def test_counts_are_released_where_every_question_is_answered() -> None:
    """Fails when a test that was not passed, or an answer that was not charged, gives a count."""
    votes = Votes([[2, 1]] * 4, teachers=3)
    for plan in (Plan(Confident(2, 1.0, 1.0), 4, 3, 2), Plan(GNMax(1.0), 4, 3, 2, answers=2)):
        with pytest.raises(InvalidInput, match="leaves questions without an answer"):
            plan.counts(votes, rng=SeededRng(1))


def test_what_is_beside_a_plan_is_paid_from_the_same_epsilon() -> None:
    """Fails when a score beside the questions is left out of their planning: then all together would cost more."""
    beside = (DiscreteLaplace(4.0, 1),)
    most = most_questions(GNMax(100.0), epsilon=1.0, delta=1e-5, teachers=250, labels=10, beside=beside)
    alone = most_questions(GNMax(100.0), epsilon=1.0, delta=1e-5, teachers=250, labels=10)
    assert most.questions < alone.questions
    quiet = least_noise(GNMax, epsilon=1.0, delta=1e-5, questions=50, teachers=250, labels=10, beside=beside)
    for plan in (most, quiet):
        whole = price.epsilon(Composed((plan.event, *beside)), 1e-5).epsilon.upper
        assert 0.98 < whole <= 1.0


def test_where_the_test_fails_a_sure_student_speaks_and_no_vote_does() -> None:
    """Fails when the plurality itself is told, without noise, where the teachers are too few to be asked."""
    sure = np.array([[0.97, 0.03, 0.0]] * 40)
    against = Votes(np.array([[2, 15, 3]] * 40), teachers=20)
    one = Interactive(threshold=10_000, threshold_sigma=1.0, sigma=1.0, student=sure)
    answers = Plan(one, 40, 20, 3).release(against, rng=SeededRng(3), source="votes").value
    assert set(answers) == {0}


def test_one_vote_moves_the_excess_over_the_student_by_one() -> None:
    """Fails when what the student expects is taken as a part of the largest count, and not of all teachers, so that a
    vote moves the tested number by more than its noise is for."""
    every = [counts for counts in np.ndindex(9, 9, 9) if sum(counts) == 8]
    for student in ((0.7, 0.3, 0.0), (0.6, 0.3, 0.1), (0.34, 0.33, 0.33), (0.05, 0.05, 0.9)):
        one = Interactive(5, 1.0, 1.0, student=np.array([student] * len(every)))
        found = dict(zip(every, one.support(np.array(every)).tolist(), strict=True))
        for counts, excess in found.items():
            for taken, given in permutations(range(3), 2):
                moved = list(counts)
                moved[taken] -= 1
                moved[given] += 1
                if min(moved) >= 0:
                    assert abs(found[tuple(moved)] - excess) <= 1
