"""What will be asked of the teachers and what it costs, from public facts alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from privet.accounting import price
from privet.core import Composed, Event, InvalidInput
from privet.pate import Aggregator, Confident, GNMax, Plan, SmoothCeiling, least_noise, most_questions
from privet.report import Choice
from privet.runs.facts import PublicFacts
from privet.runs.methods.protocol import MethodBudget, MethodPlan
from privet.runs.pate.options import NAME, PateOptions, StudentName, pate_options
from privet.runs.plan import ASKED, RULE
from privet.runs.request import TrainRequest

__all__ = ["ceiling_of", "first_questions", "plan_pate", "voting_plan"]

_NOISE = 0.2
"""Noise on a count, in parts of the teachers, that labels on which most agree survive."""
_TEST_NOISE = 3.75
"""Noise of the test, in that of a vote (Papernot et al. 2018, of MNIST)."""
_LEAST, _MOST = 5, 100
"""Questions for each class."""
_COUNTS_NOISE = 0.95
"""The same for a student that weighs noisy counts: it takes many, with much noise."""


def plan_pate(request: TrainRequest, facts: PublicFacts, share: MethodBudget) -> MethodPlan:
    """Return the plan of PATE: the number of queries, and the noise.

    Args:
        request: The request of the run.
        facts: Public facts: the number of public rows, of classes, and of teachers elsewhere.
        share: Budget of the answers, together with the score.

    Raises:
        InvalidInput: The request cannot be met, or costs more than ε.
    """
    options = pate_options(request)
    teachers = options.teachers if facts.voting_teachers is None else facts.voting_teachers
    _require_askable(options, facts, teachers)
    small = Plan(_aggregator(options, 1.0), 1, teachers, len(facts.classes), unit=share.unit)
    beside = [] if share.score is None else [share.score]
    if options.sanitise:
        # Its event does not depend on the plan that it is about.
        beside.append(SmoothCeiling(small, share.delta).event)
    voting, choices = _planned(options, facts, small, share, tuple(beside))
    ceiling = SmoothCeiling(voting, share.delta) if options.sanitise else None
    further = () if ceiling is None else (("what they cost these data, sanitised", ceiling.event),)
    events = (voting.event, *(event for _, event in further), *([] if share.score is None else [share.score]))
    cost = price.epsilon(events[0] if len(events) == 1 else Composed(events), share.delta, unit=share.unit)
    if not options.any_cost and cost.epsilon.upper > share.epsilon:
        problem = f"is {share.epsilon:g}, and the questions with this noise cost {cost.epsilon.upper:.4g}"
        raise InvalidInput("epsilon", problem, "leave one of --epsilon, --questions and --noise out")
    if reason := _unscored_reason(request, facts):
        choices.append(Choice("score", "none", reason))
    settings = _settings(voting, share.delta if options.sanitise else None)
    settings["student"] = options.student_for(facts).value
    return MethodPlan(
        NAME, voting.event, share.unit, "the teachers' answers", tuple(choices), settings, further=further
    )


def _settings(voting: Plan, ceiling_delta: float | None) -> dict[str, Any]:
    """The plan as plain data; `voting_plan` and `ceiling_of` are the inverse."""
    own = voting.aggregator
    return {
        "sigma": own.sigma if isinstance(own, (GNMax, Confident)) else 0.0,
        "threshold": [own.threshold, own.threshold_sigma] if isinstance(own, Confident) else None,
        "questions": voting.questions,
        "answers": voting.most,
        "teachers": voting.teachers,
        "labels": voting.labels,
        "ceiling_delta": ceiling_delta,
    }


def voting_plan(plan: MethodPlan) -> Plan:
    """Return the plan of the vote.

    Args:
        plan: Plan of PATE, which may have been stored.

    Raises:
        InvalidInput: The settings of the plan do not have the cost that it states.
    """
    settings = plan.settings
    sigma, test = settings["sigma"], settings["threshold"]
    aggregator: Aggregator = GNMax(sigma) if test is None else Confident(test[0], test[1], sigma)
    names = ("questions", "teachers", "labels", "answers")
    voting = Plan(aggregator, unit=plan.unit, **{name: settings[name] for name in names})
    if voting.event != plan.event:
        raise InvalidInput("plan", "has another event than its settings", "train anew, which costs anew")
    return voting


def ceiling_of(plan: MethodPlan) -> SmoothCeiling | None:
    """Return the mechanism that releases the data-dependent cost of the answers, if the plan has one.

    Args:
        plan: Plan of PATE, which may have been stored.

    Raises:
        InvalidInput: The settings of the plan do not have the cost that it states.
    """
    delta = plan.settings["ceiling_delta"]
    ceiling = None if delta is None else SmoothCeiling(voting_plan(plan), delta)
    if tuple(event for _, event in plan.further) != (() if ceiling is None else (ceiling.event,)):
        raise InvalidInput("plan", "has another event than its settings", "train anew, which costs anew")
    return ceiling


def first_questions(voting: Plan, questions: int) -> Plan:
    """Return the plan of the first queries alone.

    Args:
        voting: Plan of the vote.
        questions: Number of queries.
    """
    return replace(voting, questions=questions, answers=min(voting.most, questions))


def _require_askable(options: PateOptions, facts: PublicFacts, teachers: int) -> None:
    if teachers < 2:
        raise InvalidInput("teachers", "is 1: a vote of one hides nothing", "ask 2 or more, and better hundreds")
    if facts.rows is not None and facts.voting_teachers is None and facts.rows < teachers:
        problem = f"is {teachers}, and there are {facts.rows} rows"
        raise InvalidInput("teachers", problem, "a teacher needs rows of its own: take fewer teachers")
    if options.threshold is not None and options.threshold > teachers:
        problem = f"is {options.threshold}, and there are {teachers} teachers"
        raise InvalidInput("threshold", problem, "ask for fewer of them to agree")
    if options.questions is not None and options.questions > facts.public_rows:
        problem = f"is {options.questions}, and there are {facts.public_rows} public rows"
        raise InvalidInput("questions", problem, "ask fewer")


def _aggregator(options: PateOptions, noise: float) -> Aggregator:
    if options.threshold is None:
        return GNMax(noise)
    own = options.threshold_noise
    return Confident(options.threshold, _TEST_NOISE * noise if own is None else own, noise)


def _planned(
    options: PateOptions, facts: PublicFacts, small: Plan, share: MethodBudget, beside: tuple[Event, ...]
) -> tuple[Plan, list[Choice]]:
    teachers, labels, pool = small.teachers, small.labels, facts.public_rows
    is_weighed = options.student_for(facts) is StudentName.WEIGHED
    limits: dict[str, Any] = {"epsilon": share.epsilon, "delta": share.delta, "beside": beside}
    limits |= {"teachers": teachers, "labels": labels, "unit": small.unit}
    questions, noise = options.questions, options.noise
    rule = (_COUNTS_NOISE if is_weighed else _NOISE) * teachers
    why_questions, why_noise = ASKED, ASKED
    if questions is None:
        # At least some for each class, if need be with more noise; no more than a student has use for.
        least, most = min(pool, _LEAST * labels), pool if is_weighed else min(pool, _MOST * labels)
        try:
            aggregator = _aggregator(options, rule if noise is None else noise)
            affordable = most_questions(aggregator, limit=most, **limits).questions
        except InvalidInput:
            if noise is not None:
                raise
            affordable = 0
        questions = affordable if noise is not None else max(least, affordable)
        why_questions = "as many as ε pays for" if questions == affordable < most else RULE
    answers = None if options.answers is None else min(options.answers, questions)
    if noise is None:
        aggregators = lambda sigma: _aggregator(options, sigma)  # noqa: E731
        voting = least_noise(aggregators, questions=questions, answers=answers, **limits)
        why_noise = "the least that keeps ε"
    else:
        voting = Plan(_aggregator(options, noise), questions, teachers, labels, answers, small.unit)
    return voting, _choices(options, facts, voting, why_questions, why_noise)


def _choices(options: PateOptions, facts: PublicFacts, plan: Plan, why_questions: str, why_noise: str) -> list[Choice]:
    sigma = plan.aggregator.sigma if isinstance(plan.aggregator, (GNMax, Confident)) else 0.0
    apart = "by a keyed hash of the user's id" if plan.unit.whose.value == "user" else "by a keyed hash of the row"
    where = f"rows go to one each, {apart}" if facts.voting_teachers is None else "from the silos"
    choices = [
        Choice("teachers", f"{plan.teachers:,}", where),
        Choice("questions", f"{plan.questions:,} of {facts.public_rows:,} public rows", why_questions),
        Choice("noise on a count of votes", f"discrete Gaussian, σ = {sigma:.4g}", why_noise),
    ]
    if isinstance(plan.aggregator, Confident):
        test = plan.aggregator
        noise = f"discrete Gaussian, σ = {test.threshold_sigma:.4g}"
        choices += [
            Choice("threshold", f"{test.threshold:,} teachers for one label", ASKED),
            Choice("noise of the threshold's test", noise, RULE if options.threshold_noise is None else ASKED),
            Choice("answers, at most", f"{plan.most:,}", ASKED if options.answers == plan.most else "all questions"),
        ]
    return choices


def _unscored_reason(request: TrainRequest, facts: PublicFacts) -> str:
    """Why there will be no score; empty where there will be one."""
    if facts.has_test_rows:
        return ""
    if facts.voting_teachers is not None:
        return "there are no rows here to try it on: give --test"
    if not request.score_share:
        return ASKED
    return (
        ""
        if facts.can_hold_out
        else "how many rows a person has is not bounded: give --test, or most_rows_per_user in a schema"
    )
