"""The upper end of ε in figures, in the card of a PATE run, and in what follows from them."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from privet.core.disclosure import Public
from privet.core.event import Gaussian
from privet.core.guarantee import Evidence
from privet.core.random import SeededRng
from privet.core.release import Release
from privet.core.unit import Unit
from privet.pate import GNMax, Plan
from privet.report import Score
from privet.report.curves import _stated
from privet.report.figures.attack_results import adversaries
from privet.report.figures.drawing import Figure
from privet.report.figures.growth import growth
from privet.report.figures.profile import profile
from privet.report.figures.teachers import accuracy_by_teachers
from privet.report.verdict import Verdict, verdict_of
from privet.runs import card_builder
from privet.runs.methods.pate import PATE
from privet.runs.methods.protocol import MethodBudget, MethodPlan
from privet.runs.pate import card_sections
from privet.runs.pate.plan import _settings
from privet.runs.plan import RunPlan
from tests.report.test_upper_end import HIGH, LOW, LOW_UP, LOWER, UPPER, curves, run_card


def said(figure: Figure | None) -> str:
    """Everything that a figure says or draws."""
    assert figure is not None
    return json.dumps([figure.title, figure.alternative, figure.rows, figure.spec], ensure_ascii=False)


def numbers(part: Any) -> set[float]:
    """Every number that is drawn."""
    if isinstance(part, dict):
        return set().union(*map(numbers, part.values()))
    if isinstance(part, (list, tuple)):
        return set().union(*map(numbers, part))
    return {float(part)} if isinstance(part, (int, float)) else set()


def require_upper(figure: Figure | None) -> None:
    text = said(figure)
    assert f"ε ≤ {HIGH}" in text
    assert LOW not in text
    assert LOW_UP not in text
    assert figure is not None
    assert UPPER in numbers(figure.spec)
    assert LOWER not in numbers(figure.spec)


def test_upper_end_in_the_figure_of_growth() -> None:
    """Fails when the mark of this run, its label or the text beside the figure is at the lower end."""
    require_upper(growth(run_card(), curves()))


def test_upper_end_in_the_figure_of_the_profile() -> None:
    """Fails when the mark of the stated guarantee, or the text beside the figure, is at the lower end."""
    require_upper(profile(run_card(), curves()))


def test_upper_end_in_the_figure_of_adversaries() -> None:
    """Fails when the line of the guarantee is at the lower end, so that evidence that agrees lies above it."""
    between = Evidence(1.5, 1e-5, 0.95, "canaries", 100)
    figure = adversaries([Public(between)], run_card().guarantee.value)
    require_upper(figure)
    assert "None lies above the guarantee." in said(figure)
    assert verdict_of(between, run_card().guarantee.value) is Verdict.AGREES


def test_upper_end_limits_the_curves_of_a_card() -> None:
    """Fails when curves are cut at the lower end of the tightest accountant, or of the one that was asked."""
    tightest = run_card().ladder.value[0]
    assert _stated(run_card(), None) == UPPER
    assert _stated(run_card(), tightest.accountant) == UPPER


@pytest.fixture
def finished() -> Any:
    """What the card of a PATE run is made of, as far as prices go; its interval is as wide as no accountant's is."""
    voting = Plan(GNMax(20.0), questions=40, teachers=50, labels=3)
    method = MethodPlan(PATE.name, voting.event, Unit(), "the answers", settings=_settings(voting, None))
    plan = RunPlan(Unit(), 1e-5, "", MethodBudget(1.0, 1e-5, Unit()), (method,))
    score = Release.of(
        Score("accuracy", 0.9, "public rows"), Gaussian(4.0), unit=Unit(), source="rows", randomness=SeededRng(1).kind
    )
    scores = [(20, score), (40, score)]
    return SimpleNamespace(plan=plan, voting=voting, guarantee=run_card().guarantee.value, scores=scores)


def test_upper_end_of_a_pate_run_beside_its_score(finished: Any) -> None:
    """Fails when a student's score is set beside the lower end of ε, in the card or in the figure that compares."""
    trials = card_sections._trials(finished, finished.voting, finished.scores)
    own = [each.value for each in trials if each.value.run == "this run" and each.value.delta == 1e-5]
    assert [each.epsilon for each in own] == [UPPER]
    assert LOWER not in {each.value.epsilon for each in trials}
    others = [each.map(lambda trial: with_teachers(trial, 99)) for each in trials if each.value.teachers is not None]
    (figure,) = accuracy_by_teachers([*trials, *others])
    assert HIGH in said(figure)
    assert LOW not in said(figure)
    assert LOW_UP not in said(figure)


def with_teachers(trial: Any, teachers: int) -> Any:
    return replace(trial, run="another run", teachers=teachers)


def test_upper_end_of_a_pate_run_as_it_grows(finished: Any) -> None:
    """Fails when the curve of ε by questions ends at the lower end of the run's ε."""
    growth = card_builder._growth(finished, finished.guarantee)
    assert growth is not None
    found = growth.value
    (own,) = (row for delta, row in zip(found.deltas, found.by_delta, strict=True) if delta == 1e-5)
    assert own[-1] == UPPER
    assert LOWER not in numbers(found.by_delta)
