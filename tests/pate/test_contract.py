"""What every aggregator of the table owes: an event before votes, no more answers than charged, a price that holds."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from privet.core.random import SeededRng
from privet.core.unit import Neighbours, Unit
from privet.pate import AGGREGATORS, Aggregator, Plan, Votes, data_dependent

TEACHERS, LABELS, TRIALS, NOISE = 12, 3, 4000, 2.0
ROWS = ([12, 0, 0], [8, 4, 0], [4, 4, 4], [6, 5, 1])
every = pytest.mark.parametrize("name", AGGREGATORS)


def planned(name: str, queries: int, answers: int | None = None, unit: Unit | None = None) -> Plan:
    aggregator: Aggregator = AGGREGATORS[name](NOISE, (queries, LABELS), TEACHERS)
    return Plan(aggregator, queries, TEACHERS, LABELS, answers, unit or Unit())


@every
def test_event_is_known_before_the_votes(name: str) -> None:
    """Fails when what is charged depends on the votes, or is not what the release says was done."""
    plan = planned(name, 5)
    releases = [plan.release(Votes([row] * 5, teachers=TEACHERS), rng=SeededRng(1)) for row in ROWS]
    assert {release.event for release in releases} == {plan.event}
    assert all(set(release.value) <= {None, *range(LABELS)} for release in releases)


@every
def test_no_more_answers_than_charged(name: str) -> None:
    """Fails when more labels are drawn from votes than the event has."""
    plan = planned(name, 40, answers=7)
    labels = plan.release(Votes([[12, 0, 0]] * 40, teachers=TEACHERS), rng=SeededRng(2)).value
    assert sum(label is not None for label in labels) <= 7


@every
def test_units_that_change_two_teachers_pay_more(name: str) -> None:
    """Fails when a replaced record, which changes two teachers, is priced as one."""
    one, two = (planned(name, 20, unit=unit).guarantee(1e-5) for unit in (Unit(), Unit(neighbours=Neighbours.REPLACE)))
    assert two.epsilon.upper > 1.5 * one.epsilon.upper


@every
def test_support_moves_by_one_vote_at_most(name: str) -> None:
    """Fails when one teacher moves what a threshold is compared with by more than 1, which is what is charged."""
    aggregator = planned(name, 1).aggregator
    for row in ROWS:
        before = aggregator.support(np.array([row]))
        for source in range(LABELS):
            for target in range(LABELS):
                moved = np.array([row])
                moved[0, source] -= 1
                moved[0, target] += 1
                if moved.min() >= 0:
                    assert abs(aggregator.support(moved) - before).max() <= 1


@every
def test_chance_to_overtake_falls_with_the_gap(name: str) -> None:
    """Fails when a label that is further behind is thought to win more often, or a chance is above 1."""
    chances = planned(name, 1).aggregator.log_ahead(np.arange(TEACHERS + 1))
    assert (np.diff(chances) < 0).all()
    assert chances[0] <= 0


@every
def test_outcomes_on_neighboring_votes_stay_within_the_guarantee(name: str) -> None:
    """Fails when noise is missing: with TRIALS queries each, sets of outcomes are compared at the plan's own (ε, δ).

    By chance it fails about once in a million: six standard deviations of a frequency.
    """
    plan = planned(name, TRIALS)
    once = planned(name, 1).guarantee(1e-3)
    slack = 6 * math.sqrt(0.25 / TRIALS)
    for row, other in (([8, 4, 0], [7, 5, 0]), ([6, 5, 1], [5, 6, 1]), ([12, 0, 0], [11, 1, 0])):
        mine, theirs = (
            Counter(plan.release(Votes([votes] * TRIALS, teachers=TEACHERS), rng=SeededRng(seed)).value)
            for seed, votes in enumerate((row, other))
        )
        bound = math.exp(once.epsilon.upper)
        worst = sum(max(0.0, (mine[label] - bound * theirs[label]) / TRIALS) for label in {*mine, *theirs})
        assert worst <= once.delta + slack * (1 + bound)


@every
def test_data_dependent_price_never_exceeds_the_guarantee(name: str) -> None:
    """Fails when clear votes cost more than votes of any kind."""
    plan = planned(name, 4)
    clear = data_dependent(plan, Votes([[12, 0, 0]] * 4, teachers=TEACHERS), 1e-5)
    assert 0 < clear.epsilon <= plan.guarantee(1e-5).epsilon.upper
