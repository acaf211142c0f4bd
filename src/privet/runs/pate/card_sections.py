"""What the card of a PATE run says beside what every card says, and the file of its answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privet.accounting import canonical, renyi, upper
from privet.core import Composed, Event, InvalidInput, Release, Typed
from privet.pate import Plan, Votes, data_dependent, question_cost
from privet.report import Consensus, Finding, Internal, Public, Score, Trial, load, nearby_deltas, trials_of
from privet.runs.methods.protocol import CardSections
from privet.runs.pate.options import TITLE, PateOptions, pate_options
from privet.runs.pate.plan import first_questions, voting_plan
from privet.runs.pate.student import Answers, stored_answers, stored_ceiling, train_student
from privet.runs.pate.teachers import stored_votes
from privet.runs.row_sets import TEST
from privet.runs.scoring import score_exactly

if TYPE_CHECKING:
    from privet.runs.pipeline import RunResult

__all__ = ["answers_csv", "card_sections", "other_trials"]

_BINS = 10
_PARTS = (0.25, 0.5)
"""Of the questions: a student that had asked so many, which costs nothing beyond all of them."""
_COST = "what the answers cost these data (one-sided)"


def card_sections(result: RunResult) -> CardSections:
    """Return the sections of PATE; each value is typed by its origin.

    Args:
        result: Result of the run.

    Raises:
        InvalidInput: The run has no directory.
    """
    session, plan = result.session, result.main_plan
    if session.directory is None:
        raise InvalidInput("run", "has no directory")
    voting, answers = voting_plan(plan), stored_answers(session)
    votes, _ = stored_votes(plan, session.directory)
    return CardSections(
        conditions=_conditions(result),
        notes=_notes(answers.value),
        compared=tuple(_trials(result, voting, _partial_scores(result, voting, answers))),
        stored=other_trials(pate_options(result.request)),
        teachers=Public(voting.teachers),
        consensus=Internal(_consensus(voting, votes, result.plan.delta, answers.value)),
        findings=_findings(result, voting, votes, answers.value),
    )


def other_trials(options: PateOptions) -> tuple[Typed[Trial], ...]:
    """Return the trials of other runs, to be shown next to this one's.

    Args:
        options: Options of PATE.

    Raises:
        InvalidInput: One of them is not a run.
    """
    return tuple(trial for folder in options.beside for trial in trials_of(Path(folder).name, load(Path(folder))))


def answers_csv(result: RunResult) -> str:
    """Return the released answers: the row in the public file, the label, and noisy counts if they were drawn.

    Args:
        result: Result of the run.
    """
    answers, names = stored_answers(result.session).value, result.inputs.facts.classes
    noisy: tuple[tuple[int, ...], ...] = answers.counts or ((),) * len(answers.rows)
    head = ",".join(["row", "answer", *([] if answers.counts is None else map(_quoted, names))])
    lines = [
        ",".join([str(row), "" if label is None else _quoted(names[label]), *map(str, counts)])
        for row, label, counts in zip(answers.rows, answers.labels, noisy, strict=True)
    ]
    return "\n".join([head, *lines]) + "\n"


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if set(text) & set(',"\n\r') else text


def _conditions(result: RunResult) -> tuple[str, ...]:
    facts = result.inputs.facts
    conditions = [
        "Whoever runs the aggregator sees every teacher's votes, and is trusted with them.",
        "The public rows need no protection.",
    ]
    if facts.voting_teachers is not None:
        checked = (
            ", which was checked by keyed hashes of users' ids."
            if facts.are_silos_disjoint
            else ". This was not checked."
        )
        conditions.append(f"Nobody's records are in two silos{checked}")
        conditions.append("Every silo voted honestly, with teachers of its own rows alone.")
    return tuple(conditions)


def _notes(answers: Answers) -> tuple[str, ...]:
    known = sum(label is not None for label in answers.labels)
    counts = [] if answers.counts is None else ["Noisy counts of votes were released for every question."]
    return (*counts, f"Of {len(answers.rows):,} questions {known:,} were answered; all of them are paid for.")


def _partial_scores(result: RunResult, voting: Plan, answers: Release[Answers]) -> list[tuple[int, Release[Score]]]:
    """Scores on public rows of students that had asked so many questions, and of the one that asked all."""
    main, session, scores = result.trained[0], result.session, []
    test = None if session.row_sets is None else session.row_sets.test
    if test is None:
        return []
    test = replace(test, x=session.features(test.x))
    for questions in dict.fromkeys(max(round(part * voting.questions), 1) for part in _PARTS):
        student = train_student(result.main_plan, session, answers.value.first(questions))
        if student is None or questions == voting.questions:
            continue
        each = score_exactly(student, test, voting.labels, TEST)
        scores += [(questions, answers.map(lambda _, score=score: score)) for score in each]  # type: ignore[misc]
    return [*scores, *((voting.questions, score) for score in main.public)]


def _trials(result: RunResult, voting: Plan, scores: list[tuple[int, Release[Score]]]) -> list[Release[Trial]]:
    """Students that had asked so many questions, at the cost of these for several δ."""
    plan, trials = result.plan, []
    others = tuple(event for _, event in plan.lines[1:])

    def after(questions: int) -> Event:
        event = first_questions(voting, questions).event
        return Composed((event, *others)) if others else event

    for questions, score in scores:
        is_whole = questions == voting.questions
        for delta in nearby_deltas(plan.delta):
            own = is_whole and delta == plan.delta
            cost = result.guarantee.epsilon.upper if own else upper(after(questions), delta, unit=plan.unit)
            name = "this run" if is_whole else f"its first {questions:,} questions"
            trials.append(score.map(_trial(name, cost, delta, voting.teachers if own else None)))
    return trials


def _trial(name: str, epsilon: float, delta: float, teachers: int | None) -> Callable[[Score], Trial]:
    return lambda score: Trial(name, TITLE, epsilon, delta, score, teachers)


def _consensus(voting: Plan, votes: Votes, delta: float, answers: Answers) -> Consensus:
    """How far teachers agreed: from the votes, and so internal."""
    order = data_dependent(voting, votes, delta).order
    costs, shares = question_cost(voting, votes.counts, order), votes.counts.max(axis=1) / voting.teachers
    bins = np.minimum((shares * _BINS).astype(int), _BINS - 1)
    has_costs = answers.counts is None  # no such cost holds for counts
    return Consensus(
        tuple(map(float, np.linspace(0, 1, _BINS + 1))),
        tuple(int((bins == place).sum()) for place in range(_BINS)),
        tuple(
            float(costs[bins == place].mean()) if (bins == place).any() and has_costs else None
            for place in range(_BINS)
        ),
        order,
        renyi.total(canonical(first_questions(voting, 1).event).parts, voting.unit, (order,)).values[0],
    )


def _findings(result: RunResult, voting: Plan, votes: Votes, answers: Answers) -> tuple[Typed[Finding], ...]:
    if answers.counts is not None:
        return ()
    delta, limit = result.plan.delta, stored_ceiling(result.session)
    findings: list[Typed[Finding]] = [Internal(Finding(_COST, data_dependent(voting, votes, delta).epsilon, delta))]
    if limit is not None:
        what = f"{_COST}, sanitised"
        findings.append(limit.map(lambda drawn: Finding(what, drawn["epsilon"], delta, drawn["failure"])))
    return tuple(findings)
