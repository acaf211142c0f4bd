"""What will be asked of the teachers, fixed from public numbers before any vote is seen; and the asking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from privet.accounting import calibrate, largest_count, price
from privet.core import Composed, Event, Guarantee, InvalidInput, Release, Repeated, Unit, checked
from privet.core.random import Rng
from privet.mechanisms import SOURCE
from privet.pate.aggregator import NO_ANSWER, Aggregator, NoisyArgmax
from privet.pate.votes import Votes, moved_teachers

__all__ = ["Counted", "Labels", "Plan", "least_noise", "matching", "most_questions"]

Labels: TypeAlias = tuple[int | None, ...]
"""A label for each question, or None for no answer."""
Counted: TypeAlias = tuple[tuple[int, ...], ...]
"""A noisy count for each question and label; it may be below 0."""
_MOST = 10**7


@dataclass(frozen=True)
class Plan:
    """An aggregator, how many questions it is asked, and how many of them it answers at most.

    >>> from privet.pate import Confident
    >>> ask = Plan(Confident(200, 150.0, 40.0), questions=640, teachers=250, labels=10, answers=286)
    >>> print(ask.guarantee(1e-5))
    (ε ≤ 2.543, δ = 1e-05) for one example, add/remove, central [pld]
    """

    aggregator: Aggregator
    questions: int
    teachers: int
    labels: int
    answers: int | None = None
    """Labels drawn from votes, at most: once there are so many, the rest gets none. Unless given, all questions."""
    unit: Unit = Unit()
    """Whose data is protected; for users whose records are all in one shard, a user of one record."""

    def __post_init__(self) -> None:
        checked.count("questions", self.questions)
        checked.count("teachers", self.teachers, 2)
        checked.count("labels", self.labels, 2)
        if self.answers is None:
            object.__setattr__(self, "answers", self.questions)
        if checked.count("answers", self.most, 0) > self.questions:
            raise InvalidInput("answers", f"is {self.answers}, above the {self.questions} questions", "ask more")
        if not isinstance(self.unit, Unit):
            raise InvalidInput("unit", f"is a {type(self.unit).__name__}, where a Unit is wanted")
        moved_teachers(self.unit)

    @property
    def most(self) -> int:
        """`answers`, filled in."""
        return self.questions if self.answers is None else self.answers

    @cached_property
    def event(self) -> Event:
        """Every test, passed or not, and as many noisy votes as there may be: what a ledger charges, beforehand."""
        votes = Repeated(self.aggregator.vote(self.unit, self.labels), self.most)
        test = self.aggregator.test
        return votes if test is None else Composed((Repeated(test.event(self.unit), self.questions), votes))

    def guarantee(self, delta: float) -> Guarantee:
        """Return the privacy cost of all queries, whatever the votes are.

        Args:
            delta: The δ at which ε is stated.
        """
        return price.epsilon(self.event, delta, unit=self.unit)

    def release(self, votes: Votes, *, rng: Rng, source: str = SOURCE) -> Release[Labels]:
        """Return the labels.

        Args:
            votes: The private votes.
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.

        Raises:
            InvalidInput: The votes are not those of the plan.

        Guarantee: that of `event`, for `unit`, whatever the votes are. *Why.* A unit changes `moved_teachers(unit)`
        teachers, provided that a record's shard depends on its own id alone and a teacher on its shard and on
        randomness that nobody's data touch. A label is post-processing of noisy counts of which the unit moves two by
        1, and a test of a noisy number that it moves by 1. Which questions get a label depends on the tests; that is
        adaptive composition, and as the numbers of both are bounded beforehand it costs at most all of them together
        (`docs/pate.md`). Assumes that questions, and a student's predictions, are public or come from releases. The
        plan is charged in full, also where fewer questions are answered.
        """
        matching(self, votes)
        drawn = self.aggregator.labels_of(votes.counts, self.most, rng)
        labels = tuple(None if label == NO_ANSWER else int(label) for label in drawn)
        return Release.of(labels, self.event, unit=self.unit, source=source, randomness=rng.kind)

    def counts(self, votes: Votes, *, rng: Rng, source: str = SOURCE) -> Release[Counted]:
        """Return the noisy counts of every query, of which a label is the arg-max, at the same privacy cost.

        Args:
            votes: The private votes.
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.

        Raises:
            InvalidInput: The votes are not those of the plan, or the aggregator leaves queries without an answer.

        Guarantee: that of `event`, for `unit`, whatever the votes are: that event is the price of the noisy counts, of
        which `release` keeps the arg-max alone. No data-dependent price holds for them. Every question is answered, so
        that an aggregator with a test is refused, and a plan with fewer answers than questions is, too.
        """
        matching(self, votes)
        if not isinstance(self.aggregator, NoisyArgmax) or self.most < self.questions:
            raise InvalidInput("aggregator", "leaves questions without an answer", "use GNMax or LNMax for all of them")
        noisy = self.aggregator.noisy(votes.counts, rng)
        counted = tuple(tuple(map(int, row)) for row in noisy)
        return Release.of(counted, self.event, unit=self.unit, source=source, randomness=rng.kind)


def matching(plan: Plan, votes: Votes) -> None:
    """Refuse votes that are not what the plan asks for; what is compared is public.

    Args:
        plan: The plan of the queries.
        votes: The private votes.

    Raises:
        InvalidInput: The votes are not those of the plan.
    """
    if not isinstance(votes, Votes):
        raise InvalidInput("votes", f"is a {type(votes).__name__}", "count them with Votes(counts, teachers=...)")
    for name in ("questions", "teachers", "labels"):
        if getattr(votes, name) != getattr(plan, name):
            problem = f"have {getattr(votes, name)} {name}, and the plan has {getattr(plan, name)}"
            raise InvalidInput("votes", problem, "plan for what is asked")


def most_questions(
    aggregator: Aggregator,
    *,
    epsilon: float,
    delta: float,
    teachers: int,
    labels: int,
    answered: float = 1.0,
    unit: Unit | None = None,
    limit: int = _MOST,
    beside: tuple[Event, ...] = (),
) -> Plan:
    """Return the plan with the most queries that costs at most (ε, δ).

    What is `beside` it, such as a score, is paid from the same (ε, δ).

    Args:
        aggregator: The aggregator.
        epsilon: The ε that must not be exceeded.
        delta: The δ at which ε is stated.
        teachers: The number of teachers.
        labels: The number of labels.
        answered: The share of queries that may be answered.
        unit: Whose data is protected; one example, added or removed, by default.
        limit: The largest number of queries that is tried.
        beside: Events, such as that of a private score, that are charged to the same (ε, δ).

    Raises:
        InvalidInput: (ε, δ) does not allow a single query.

    >>> from privet.pate import GNMax
    >>> most_questions(GNMax(100.0), epsilon=1.0, delta=1e-5, teachers=250, labels=10).questions
    359
    """
    target, share = checked.positive("epsilon", epsilon), checked.probability("answered", answered)
    one = Plan(aggregator, 1, teachers, labels, 1, unit or Unit())

    def planned(questions: int) -> Plan:
        return replace(one, questions=questions, answers=max(1, int(share * questions)))

    def whole(questions: int) -> Event:
        return _with(planned(questions).event, beside)

    def fits(questions: int) -> bool:
        return price.upper(whole(questions), delta, unit=one.unit) <= target

    count = largest_count(fits, limit)
    while count > 0 and price.epsilon(whole(count), delta, unit=one.unit).epsilon.upper > target:
        count -= 1
    if count == 0:
        raise InvalidInput("epsilon", f"= {target} does not pay for one question", "use more noise, or allow more")
    return planned(count)


def least_noise(
    build: Callable[[float], Aggregator],
    *,
    epsilon: float,
    delta: float,
    questions: int,
    teachers: int,
    labels: int,
    answers: int | None = None,
    unit: Unit | None = None,
    beside: tuple[Event, ...] = (),
) -> Plan:
    """Return the plan with the least noise, to 0.1 %, that costs at most (ε, δ).

    What is `beside` it, such as a score, is paid from the same (ε, δ).

    Args:
        build: From the noise to an aggregator; a larger number must be more noise.
        epsilon: The ε that must not be exceeded.
        delta: The δ at which ε is stated.
        questions: The number of queries.
        teachers: The number of teachers.
        labels: The number of labels.
        answers: How many of them are answered at most; all, by default.
        unit: Whose data is protected; one example, added or removed, by default.
        beside: Events, such as that of a private score, that are charged to the same (ε, δ).

    Raises:
        InvalidInput: No noise in the range that is searched reaches (ε, δ).

    >>> from privet.pate import GNMax
    >>> plan = least_noise(GNMax, epsilon=1.0, delta=1e-5, questions=100, teachers=250, labels=10)
    >>> 52 < plan.aggregator.sigma < 53
    True
    """

    def planned(noise: float) -> Plan:
        return Plan(build(noise), questions, teachers, labels, answers, unit or Unit())

    def whole(noise: float) -> Event:
        return _with(planned(noise).event, beside)

    return planned(calibrate.least(whole, epsilon=epsilon, delta=delta, unit=unit))


def _with(event: Event, beside: tuple[Event, ...]) -> Event:
    return Composed((event, *beside)) if beside else event
