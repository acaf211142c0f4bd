"""What will be asked of the teachers and what it costs, from public numbers alone."""

from __future__ import annotations

from dataclasses import dataclass

from privet.accounting import price
from privet.core.errors import InvalidInput
from privet.core.event import Composed, Event
from privet.core.guarantee import Guarantee
from privet.core.unit import Unit
from privet.pate import Aggregator, Confident, GNMax, Plan, SmoothCeiling, least_noise, most_questions
from privet.report import Choice
from privet.runs.pate.inputs import PateInputs
from privet.runs.pate.request import PateRequest, StudentName
from privet.runs.plan import choose_delta
from privet.runs.scoring import PrivateScoring, expected_interval

__all__ = ["PatePlan", "plan_pate"]

_EPSILON = 1.0
_NOISE = 0.2
"""Noise on a count, in parts of the teachers, that labels on which most agree survive."""
_TEST_NOISE = 3.75
"""Noise of the test, in that of a vote (Papernot et al. 2018, of MNIST)."""
_LEAST, _MOST = 5, 100
"""Questions for each class."""
_COUNTS_NOISE = 0.95
"""The same for a student that weighs noisy counts: it takes many, with much noise."""
_RULE = "a rule from public experience"


@dataclass(frozen=True)
class PatePlan:
    """Every line of it, and the plan."""

    unit: Unit
    delta: float
    why: str
    """Why δ is what it is."""
    plan: Plan
    ceiling: SmoothCeiling | None
    scoring: PrivateScoring | None
    choices: tuple[Choice, ...]
    unscored: str = ""
    """Why there is no score."""
    first: int = 0
    """Nothing is drawn before the plan is made."""

    @property
    def lines(self) -> tuple[tuple[str, Event], ...]:
        """What is paid for, in words, and its event."""
        found: list[tuple[str, Event]] = [("the teachers' answers", self.plan.event)]
        if self.ceiling is not None:
            found.append(("what they cost these data, sanitised", self.ceiling.event))
        if self.scoring is not None:
            found.append(("the student's score on held-out rows", self.scoring.event))
        return tuple(found)

    @property
    def event(self) -> Event:
        """All of it."""
        events = tuple(event for _, event in self.lines)
        return events[0] if len(events) == 1 else Composed(events)

    @property
    def guarantee(self) -> Guarantee:
        """What all of it costs, whatever the votes are."""
        return price.epsilon(self.event, self.delta, unit=self.unit)


def plan_pate(wanted: PateRequest, inputs: PateInputs, teachers: int) -> PatePlan:
    """The plan and its price; `teachers` is a public number."""
    if teachers < 2:
        raise InvalidInput("teachers", "is 1: a vote of one hides nothing", "ask 2 or more, and better hundreds")
    if inputs.rows is not None and inputs.private is not None and inputs.rows < teachers:
        problem = f"is {teachers}, and there are {inputs.rows} rows"
        raise InvalidInput("teachers", problem, "a teacher needs rows of its own: take fewer teachers")
    if wanted.threshold is not None and wanted.threshold > teachers:
        problem = f"is {wanted.threshold}, and there are {teachers} teachers"
        raise InvalidInput("threshold", problem, "ask for fewer of them to agree")
    delta, why = choose_delta(wanted.delta, inputs.rows)
    unit, pool = inputs.unit, len(inputs.public)
    weighed = wanted.taught(pictures=inputs.shape is not None) is StudentName.WEIGHED
    if wanted.questions is not None and wanted.questions > pool:
        problem = f"is {wanted.questions}, and there are {pool} public rows"
        raise InvalidInput("questions", problem, "ask fewer")
    target = _EPSILON if wanted.epsilon is None else wanted.epsilon
    scoring = _scoring(wanted, inputs, target)
    small = Plan(_built(wanted, 1.0), 1, teachers, len(inputs.classes), unit=unit)
    beside = [] if scoring is None else [scoring.event]
    if wanted.sanitise:
        # Its event does not depend on the plan that it is about.
        beside.append(SmoothCeiling(small, delta).event)
    plan, choices = _planned(wanted, small, pool, target, delta, tuple(beside), weighed=weighed)
    if scoring is not None:
        choices.append(expected_interval(scoring, inputs.rows, wanted.hold_out))
    ceiling = SmoothCeiling(plan, delta) if wanted.sanitise else None
    bill = PatePlan(unit, delta, why, plan, ceiling, scoring, tuple(choices), _unscored(wanted, inputs, scoring))
    all_given = wanted.epsilon is None and wanted.questions is not None and wanted.noise is not None
    if not all_given and bill.guarantee.epsilon.upper > target:
        found = bill.guarantee.epsilon.upper
        problem = f"is {target:g}, and the questions with this noise cost {found:.4g}"
        raise InvalidInput("epsilon", problem, "leave one of --epsilon, --questions and --noise out")
    return bill


def _built(wanted: PateRequest, noise: float) -> Aggregator:
    if wanted.threshold is None:
        return GNMax(noise)
    own = wanted.threshold_noise
    return Confident(wanted.threshold, _TEST_NOISE * noise if own is None else own, noise)


def _planned(
    wanted: PateRequest,
    small: Plan,
    pool: int,
    target: float,
    delta: float,
    beside: tuple[Event, ...],
    *,
    weighed: bool,
) -> tuple[Plan, list[Choice]]:
    teachers, labels, unit = small.teachers, small.labels, small.unit
    asked, noise = wanted.questions, wanted.noise
    rule = (_COUNTS_NOISE if weighed else _NOISE) * teachers
    why_questions, why_noise = "asked for", "asked for"
    if asked is None:
        # At least some for each class, if need be with more noise; no more than a student has use for.
        least, most = min(pool, _LEAST * labels), pool if weighed else min(pool, _MOST * labels)
        try:
            found = most_questions(
                _built(wanted, rule if noise is None else noise),
                epsilon=target,
                delta=delta,
                teachers=teachers,
                labels=labels,
                unit=unit,
                limit=most,
                beside=beside,
            ).questions
        except InvalidInput:
            if noise is not None:
                raise
            found = 0
        asked = found if noise is not None else max(least, found)
        why_questions = "as many as ε pays for" if asked == found < most else _RULE
    answers = None if wanted.answers is None else min(wanted.answers, asked)
    if noise is None:
        plan = least_noise(
            lambda each: _built(wanted, each),
            epsilon=target,
            delta=delta,
            questions=asked,
            answers=answers,
            teachers=teachers,
            labels=labels,
            unit=unit,
            beside=beside,
        )
        why_noise = "the least that keeps ε"
    else:
        plan = Plan(_built(wanted, noise), asked, teachers, labels, answers, unit)
    return plan, _told(wanted, plan, pool, why_questions, why_noise)


def _told(wanted: PateRequest, plan: Plan, pool: int, why_questions: str, why_noise: str) -> list[Choice]:
    sigma = plan.aggregator.sigma if isinstance(plan.aggregator, (GNMax, Confident)) else 0.0
    apart = "by a keyed hash of the user's id" if plan.unit.whose.value == "user" else "by a keyed hash of the row"
    found = [
        Choice("teachers", f"{plan.teachers:,}", f"rows go to one each, {apart}" if wanted.data else "from the silos"),
        Choice("questions", f"{plan.questions:,} of {pool:,} public rows", why_questions),
        Choice("noise on a count of votes", f"discrete Gaussian, σ = {sigma:.4g}", why_noise),
    ]
    if isinstance(plan.aggregator, Confident):
        test = plan.aggregator
        found += [
            Choice("threshold", f"{test.threshold:,} teachers for one label", "asked for"),
            Choice(
                "noise of the threshold's test",
                f"discrete Gaussian, σ = {test.threshold_sigma:.4g}",
                _RULE if wanted.threshold_noise is None else "asked for",
            ),
            Choice(
                "answers, at most", f"{plan.most:,}", "asked for" if wanted.answers == plan.most else "all questions"
            ),
        ]
    return found


def _unscored(wanted: PateRequest, inputs: PateInputs, scoring: PrivateScoring | None) -> str:
    if inputs.test is not None or scoring is not None:
        return ""
    if inputs.private is None:
        return "there are no rows here to try it on: give --test"
    if not wanted.score_share:
        return "asked for"
    return "how many rows a person has is not bounded: give --test, or most_rows_per_user in a schema"


def _scoring(wanted: PateRequest, inputs: PateInputs, target: float) -> PrivateScoring | None:
    """A score on private rows, where there are no public ones with labels and a unit's rows are bounded."""
    if inputs.private is None or inputs.test is not None or not wanted.score_share or inputs.rows_per_user is None:
        return None
    return PrivateScoring(target * wanted.score_share, inputs.unit, inputs.rows_per_user, len(inputs.classes))
