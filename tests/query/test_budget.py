"""Every sub-release adds up to the declared ε, and a mistake in the split is found."""

from __future__ import annotations

import pytest

from privet import accounting
from privet.core.errors import InvalidInput
from privet.data import Schema
from privet.query import QueryPlan, plan
from privet.query.methods import BudgetShare, NoiseKind, QuestionMethod
from tests.query.tables import BY_USER, QUESTIONS, SCHEMA

PRIVATE = ("count by town", "mean(age) by town, ward", "top(town, 2)", "median(age) by town")


def adds_up(made: QueryPlan) -> None:
    """The parts, priced one by one and all together, cost the declared ε: no more, and (without δ) no less."""
    whole = accounting.epsilon(made.event, made.delta, unit=made.unit).epsilon.upper
    assert whole <= made.epsilon
    parts = [event for method in made.methods for event in method.events]
    assert parts == list(made.event.events)
    if made.delta == 0:
        alone = [accounting.epsilon(event, 0.0, unit=made.unit).epsilon.upper for event in parts]
        assert made.epsilon * 0.999 <= sum(alone) <= made.epsilon


@pytest.mark.parametrize("schema", [SCHEMA, BY_USER], ids=["example", "user"])
@pytest.mark.parametrize("text", QUESTIONS)
def test_a_question_alone_costs_what_was_declared(text: str, schema: Schema) -> None:
    """Fails when a question costs more than its ε, or wastes a part of it."""
    for epsilon in (0.01, 0.5, 20.0):
        adds_up(plan(text, schema, epsilon=epsilon))


@pytest.mark.parametrize("schema", [SCHEMA, BY_USER], ids=["example", "user"])
def test_many_questions_share_it(schema: Schema) -> None:
    """Fails when weights do not divide ε, or the parts do not add up to it."""
    weighed = [f"{text} weight {1 + place % 3}" for place, text in enumerate(QUESTIONS)]
    made = plan(weighed, schema, epsilon=1.0)
    adds_up(made)
    costs = [
        sum(accounting.epsilon(event, 0.0, unit=made.unit).epsilon.upper for event in method.events)
        for method in made.methods
    ]
    whole = sum(question.weight for question in made.questions)
    for question, cost in zip(made.questions, costs, strict=True):
        assert cost == pytest.approx(question.weight / whole, rel=1e-3)


@pytest.mark.parametrize("schema", [SCHEMA, BY_USER], ids=["example", "user"])
@pytest.mark.parametrize("texts", [PRIVATE, (*PRIVATE[:2], *QUESTIONS[:6])], ids=["private", "mixed"])
def test_private_groups_stay_within_delta(texts: tuple[str, ...], schema: Schema) -> None:
    """Fails when finding private groups costs more than (ε, δ) with everything else."""
    adds_up(plan(texts, schema, epsilon=1.0, delta=1e-6))


def test_a_delta_is_used() -> None:
    """Fails when many questions with a δ get noise as large as without it."""
    pure, mixed = (plan(QUESTIONS, SCHEMA, epsilon=1.0, delta=delta) for delta in (0.0, 1e-6))
    adds_up(mixed)
    assert mixed.noise is NoiseKind.GAUSSIAN
    assert mixed.methods[0].deviation < 0.95 * pure.methods[0].deviation
    assert plan("count", SCHEMA, epsilon=1.0, delta=1e-6).noise is NoiseKind.LAPLACE


def test_private_groups_need_a_delta() -> None:
    """Fails when groups could be found without one."""
    with pytest.raises(
        InvalidInput, match="delta is 0, and the schema has no values for the groups of 'count by town'"
    ):
        plan("count by town", SCHEMA, epsilon=1.0)


def _twice(self: BudgetShare, fraction: float) -> BudgetShare:
    return BudgetShare(self.noise, self.amount * fraction * 2, self.delta)


def _half(self: BudgetShare, fraction: float) -> BudgetShare:
    return BudgetShare(self.noise, self.amount * fraction / 2, self.delta)


def test_too_much_is_refused_where_it_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a plan whose parts cost twice their share, or whose noise is halved, can be made at all."""
    monkeypatch.setattr(BudgetShare, "part", _twice)
    with pytest.raises(InvalidInput, match=r"epsilon is 1\.0, and the parts cost"):
        plan("top(ward, 1)", SCHEMA, epsilon=1.0)
    monkeypatch.undo()
    usual = BudgetShare.additive
    monkeypatch.setattr(
        BudgetShare, "additive", lambda self, reach: usual(BudgetShare(self.noise, 2 * self.amount), reach)
    )
    with pytest.raises(InvalidInput, match=r"epsilon is 1\.0, and the parts cost"):
        plan("count", SCHEMA, epsilon=1.0)


def test_an_epsilon_that_is_halved_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the check above is blind to a part that spends half of what it may."""
    monkeypatch.setattr(BudgetShare, "part", _half)
    with pytest.raises(AssertionError):
        adds_up(plan("top(ward, 1)", SCHEMA, epsilon=1.0))


def test_what_is_drawn_is_what_was_planned() -> None:
    """Fails when a release's event differs from the plan's, which is what the ledger was charged."""
    from privet.core.random import SeededRng
    from tests.query.tables import clinic

    for schema in (SCHEMA, BY_USER):
        for texts, delta in ((QUESTIONS, 0.0), (PRIVATE, 1e-6), (QUESTIONS, 1e-6)):
            made = plan(texts, schema, epsilon=1.0, delta=delta)
            release = made.answer(clinic(300), rng=SeededRng(1))
            assert [draw.event for draw in release.draws] == list(made.event.events)
            assert release.guarantee == made.guarantee
            assert release.unit == made.unit


@pytest.mark.parametrize("schema", [SCHEMA, BY_USER], ids=["example", "user"])
def test_groups_that_are_found_do_not_change_the_event(schema: Schema) -> None:
    """Fails when the event of Gaussian noise on private groups grows with the groups that were found: it was charged
    for what a unit can move, before anyone knew how many there are."""
    from privet.core.random import SeededRng
    from tests.query.tables import clinic

    texts = [f"mean(age) by town where bmi > {least}" for least in range(11, 41)]
    made = plan(texts, schema, epsilon=4.0, delta=1e-6)
    assert made.noise is NoiseKind.GAUSSIAN
    release = made.answer(clinic(9000), rng=SeededRng(1))
    assert {len(answer.rows) for answer in release.value} == {3}
    assert [draw.event for draw in release.draws] == list(made.event.events)
    assert made.event.events[1].dimension == 2 * (schema.most_rows_per_user or 1)  # type: ignore[attr-defined]


def test_the_least_error_is_chosen_for_a_mean() -> None:
    """Fails when a mean needs as much noise as two releases with half of ε each."""
    method: QuestionMethod = plan("mean(age)", SCHEMA, epsilon=1.0).methods[0]
    assert method.additive.expected_error < 1.02  # 2.0 with ε/2 for the sum and ε/2 for the count
    assert plan("variance(age)", SCHEMA, epsilon=1.0).methods[0].additive.expected_error < 1.02
