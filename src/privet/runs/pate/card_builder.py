"""From a finished run of teachers and a student to its card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from privet.accounting import renyi
from privet.accounting.canonical import canonical
from privet.accounting.price import upper
from privet.core.disclosure import Typed
from privet.core.event import Composed, Event
from privet.core.guarantee import digits_up
from privet.core.randomness import Randomness
from privet.core.release import Release
from privet.core.unit import Whose
from privet.pate import Plan, data_dependent
from privet.pate.data_dependent import question_cost
from privet.report import (
    Charged,
    Choice,
    Consensus,
    Finding,
    Growth,
    Internal,
    Public,
    Score,
    TrainingCard,
    Trial,
    growth_of,
    price_lines,
)
from privet.report.training_price import nearby_deltas
from privet.report.training_records import PATE
from privet.runs.card_builder import large_delta_remark, versions
from privet.runs.pate.pipeline import PateResult
from privet.runs.pate.plan import PatePlan

__all__ = ["build_pate_card", "pate_choices"]

_BINS = 10
_CENTRE = "Whoever runs the aggregator sees every teacher's votes, and is trusted with them."


def build_pate_card(done: PateResult) -> TrainingCard:
    """The card; everything on it says where it comes from."""
    bill, inputs = done.bill, done.inputs
    privacy, lines = price_lines(
        bill.lines,
        bill.delta,
        unit=bill.unit,
        population=inputs.rows,
        rests_on=() if inputs.schema is None else inputs.schema.assumptions,
        conditions=_conditions(done),
        notes=_notes(done),
    )
    scores: list[Typed[Score]] = [score for questions, score in done.public if questions == bill.plan.questions]
    if done.paid is not None:
        scores.append(done.paid)
    schema = None if inputs.schema is None else Public(inputs.schema.to_toml())
    return TrainingCard(
        command=Public(done.command),
        made=Public(datetime.now(UTC).isoformat(timespec="seconds")),
        data=Public(inputs.name),
        model=Public(_model(done)),
        method=Public(PATE),
        choices=Public(pate_choices(bill)),
        privacy=privacy,
        bill=lines,
        growth=Public(_growth(done)),
        randomness=Public(Randomness.SECURE if done.wanted.seed is None else Randomness.SEEDED),
        versions=Public(versions()),
        ledger=None if done.budget is None else Public(Charged(*done.budget)),
        rows=None if inputs.rows is None else Public(inputs.rows),
        schema=schema,
        scores=tuple(scores),
        compared=tuple(_trials(done)),
        stored=done.stored,
        teachers=Public(bill.plan.teachers),
        consensus=Internal(_consensus(done)),
        findings=_findings(done),
        internal_remarks=()
        if inputs.rows is not None or done.units is None
        else large_delta_remark(bill.delta, done.units),
    )


def _model(done: PateResult) -> str:
    if done.described.family == "kernel":
        return f"kernel ridge regression, {done.described.support:,} public rows"
    return f"linear, {sum(each.numel() for each in done.student.head.buffers()):,} numbers"


def pate_choices(bill: PatePlan) -> tuple[Choice, ...]:
    """What was chosen, and why; all of it public."""
    found = [Choice("δ", digits_up(bill.delta), bill.why), *bill.choices]
    if bill.scoring is not None:
        found.append(Choice("ε for the score", f"{bill.scoring.epsilon:g}", "a part of ε"))
    if bill.unscored:
        found.append(Choice("score", "none", bill.unscored))
    return tuple(found)


def _conditions(done: PateResult) -> tuple[str, ...]:
    found = [_CENTRE, "The public rows need no protection."]
    if done.inputs.drafted:
        found.append("The schema was read from the public rows.")
    elif done.inputs.schema is not None:
        found.append("Which columns there are, their kinds and the number of rows are known without the private rows.")
    if done.inputs.unit.whose is Whose.USER:
        found.append("Every row has the id of the person it is about.")
    elif done.inputs.schema is not None:
        found.append("One row is about one person, and one person is in one row.")
    if done.wanted.votes:
        found.append(
            "Nobody's records are in two silos, which was checked by keyed hashes of users' ids."
            if done.apart
            else "Nobody's records are in two silos. This was not checked."
        )
        found.append("Every silo voted honestly, with teachers of its own rows alone.")
    if done.inputs.test is not None:
        found.append("The test rows are public.")
    return tuple(found)


def _notes(done: PateResult) -> tuple[str, ...]:
    answers = done.answers.value
    known = sum(label is not None for label in answers.labels)
    found = [] if answers.counts is None else ["Noisy counts of votes were released for every question."]
    found += [f"Of {len(answers.rows):,} questions {known:,} were answered; all of them are paid for."]
    if len(done.bill.lines) > 1:
        found.append("The lines of the bill are composed: together they cost less than their sum.")
    return tuple(found)


def _after(bill: PatePlan, questions: int) -> Event:
    """So many questions, and all that was paid for beside them."""
    plan = _first(bill.plan, questions)
    others = tuple(event for _, event in bill.lines[1:])
    return Composed((plan.event, *others)) if others else plan.event


def _first(plan: Plan, questions: int) -> Plan:
    return replace(plan, questions=questions, answers=min(plan.most, questions))


def _growth(done: PateResult) -> Growth:
    bill = done.bill
    return growth_of(lambda count: _after(bill, count), bill.plan.questions, done.guarantee, "questions")


def _trials(done: PateResult) -> list[Release[Trial]]:
    """A student that had asked so many questions, at the price of these for several δ."""
    bill, found = done.bill, []
    for questions, score in done.public:
        whole = questions == bill.plan.questions
        for delta in nearby_deltas(bill.delta):
            own = whole and delta == bill.delta
            cost = done.guarantee.epsilon.upper if own else upper(_after(bill, questions), delta, unit=bill.unit)
            name = "this run" if whole else f"its first {questions:,} questions"
            found.append(score.map(_trial(name, cost, delta, bill.plan.teachers if own else None)))
    return found


def _trial(name: str, epsilon: float, delta: float, teachers: int | None) -> Callable[[Score], Trial]:
    return lambda score: Trial(name, PATE, epsilon, delta, score, teachers)


def _consensus(done: PateResult) -> Consensus:
    """How far teachers agreed: from the votes, and so internal."""
    plan, votes = done.bill.plan, done.votes
    weighed = done.answers.value.counts is not None  # no such price holds for counts
    order = _order(done)
    costs, shares = question_cost(plan, votes.counts, order), votes.counts.max(axis=1) / plan.teachers
    edges = np.linspace(0, 1, _BINS + 1)
    places = np.minimum((shares * _BINS).astype(int), _BINS - 1)
    return Consensus(
        tuple(map(float, edges)),
        tuple(int((places == place).sum()) for place in range(_BINS)),
        tuple(
            float(costs[places == place].mean()) if (places == place).any() and not weighed else None
            for place in range(_BINS)
        ),
        order,
        renyi.total(canonical(_first(plan, 1).event).parts, plan.unit, (order,)).values[0],
    )


def _order(done: PateResult) -> float:
    return data_dependent(done.bill.plan, done.votes, done.bill.delta).order


def _findings(done: PateResult) -> tuple[Typed[Finding], ...]:
    bill = done.bill
    if done.answers.value.counts is not None:
        return ()
    seen = data_dependent(bill.plan, done.votes, bill.delta)
    what = "what the answers cost these data (one-sided)"
    found: list[Typed[Finding]] = [Internal(Finding(what, seen.epsilon, bill.delta))]
    if done.limit is not None:
        found.append(
            done.limit.map(lambda said: Finding(f"{what}, sanitised", said["epsilon"], bill.delta, said["failure"]))
        )
    return tuple(found)
