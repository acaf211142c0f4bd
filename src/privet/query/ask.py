"""Asking with a ledger: what was answered before is free, and what is new is charged first."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from privet.core import Guarantee, InvalidInput, Release, checked
from privet.core.random import Rng
from privet.data import Schema
from privet.ledger import Charge, Fingerprint, Ledger
from privet.mechanisms import SOURCE
from privet.query.answer_store import AnswerKey, AnswerStore, OpenStore
from privet.query.answers import Answer
from privet.query.plan import QueryPlan, QuestionLike, columns_read, join_all, parse_questions, plan, require_enough
from privet.query.questions import Question
from privet.query.table_source import Data, TableSource

__all__ = ["Account", "Reply", "ask"]

_PURPOSE = 1000


@dataclass(frozen=True)
class Account:
    """Who pays, and where answers are kept."""

    ledger: Ledger
    budget: str
    """The name of the data set's budget."""
    stored: AnswerStore | None = None
    """Where answers are kept; without it, nothing is ever free."""


@dataclass(frozen=True)
class Reply:
    """The answers, which of them were free, and what the others cost."""

    release: Release[tuple[Answer, ...]]
    """In the order of the questions; what was asked twice is there once."""
    free: tuple[bool, ...]
    charged: Guarantee | None
    """The price of what was drawn now; None where nothing was."""
    head: str | None
    """The end of the ledger's chain after the charge."""


def ask(
    data: Data,
    questions: Sequence[QuestionLike] | QuestionLike,
    schema: Schema,
    *,
    account: Account | None,
    epsilon: float,
    delta: float = 0.0,
    rng: Rng,
    confidence: float = 0.95,
    fresh: bool = False,
) -> Reply:
    """Answer some questions, each once and in their order, and charge a budget for those that are new.

    Questions that were answered before, about the same data, are answered again as they were, and cost nothing. The
    others get their weights' part of (ε, δ), as if all had been new, and are charged to the ledger before any row is
    read. Where two processes ask the same at the same time, one of them draws and pays, and the other waits for it and
    gets the answer for nothing.

    Args:
        data: The table: a file, or a frame.
        questions: The questions, as texts or records.
        schema: What is public about the table.
        account: Who pays; None charges nobody, and then nothing adds up what is asked.
        epsilon: The ε of all answers together.
        delta: The δ of all answers together.
        rng: The randomness of the noise.
        confidence: The confidence of each interval.
        fresh: Whether to draw, and pay, again for what was answered before.

    Returns:
        The answers, which of them were free, and what the others cost.

    Raises:
        InvalidInput: A malformed question, an unknown column, or a file that cannot be read. Nothing is charged.
        BudgetExceeded: The budget refuses the charge.

    Guarantee: that of `QueryPlan.draw` for what is new, and of their own draws for what was stored; the ledger's budget
    covers both. An unknown column, a malformed question, a refused charge or a file that cannot be read: an error, and
    no charge. Assumes that everything else that is released from the data is charged to the same budget.
    """
    if account is None:
        uncharged = plan(questions, schema, epsilon=epsilon, delta=delta, confidence=confidence)
        name = Path(data).name if isinstance(data, (str, os.PathLike)) else SOURCE
        release = uncharged.answer(data, rng=rng, name=name)
        return Reply(release, (False,) * len(release.value), uncharged.guarantee, None)
    checked.positive("epsilon", epsilon)
    checked.share("delta", delta)
    checked.confidence("confidence", confidence)
    listed = parse_questions(questions, schema)
    schema.require_sources(columns_read(listed, schema))
    table = TableSource.of(data, schema, columns_read(listed, schema))
    stamp, fingerprint = table.stamp(), table.fingerprint()

    def key(question: Question) -> AnswerKey:
        return AnswerKey(question, schema, account.budget, fingerprint)

    def known_to(store: AnswerStore | OpenStore | None) -> dict[str, Release[Answer]]:
        if fresh or store is None:
            return {}
        stored = ((str(question), store.find(key(question), account.ledger)) for question in listed)
        return {question: answer.release() for question, answer in stored if answer is not None}

    # Before a plan is made: what was answered needs no δ.
    known = known_to(account.stored)
    if len(known) == len(listed):
        return _reply(listed, known, known, confidence)
    with nullcontext() if account.stored is None else account.stored.held() as store:
        known = known_to(store)  # again: another process may have asked the same meanwhile
        new = [question for question in listed if str(question) not in known]
        if not new:
            return _reply(listed, known, known, confidence)
        require_enough(listed, epsilon)
        part = sum(item.weight for item in new) / sum(item.weight for item in listed)
        made = plan(new, schema, epsilon=epsilon * part, delta=delta * part, confidence=confidence)
        charge = _reserved(account, made, fingerprint)
        with ExitStack() as undo:
            undo.callback(charge.abort)
            totals = made.tally(table)
            if table.stamp() != stamp:  # an answer must be kept under the fingerprint of its own data
                raise InvalidInput("data", "changed while they were read", "ask again when nobody writes them")
            undo.pop_all()  # up to here nothing was drawn
        charge.draw()
        answers = made.draw(totals, rng=rng, name=account.budget)
        drawn = {str(question): answers.map(_at(index)) for index, question in enumerate(new)}
        if store is not None:
            for question in new:
                store.keep(key(question), drawn[str(question)], charge.id)
    head = charge.commit()
    return _reply(listed, known, known | drawn, confidence, made.guarantee, head)


def _reply(
    listed: Sequence[Question],
    known: Mapping[str, Release[Answer]],
    releases: Mapping[str, Release[Answer]],
    confidence: float,
    charged: Guarantee | None = None,
    head: str | None = None,
) -> Reply:
    with_note = _said_of(confidence)
    release = _joined([releases[str(question)].map(with_note) for question in listed])
    return Reply(release, tuple(str(question) in known for question in listed), charged, head)


def _reserved(account: Account, made: QueryPlan, data: Fingerprint) -> Charge:
    purpose = "; ".join(map(str, made.questions))
    if len(purpose) > _PURPOSE or not purpose.isprintable():
        purpose = f"{len(made.questions)} questions"
    bound = account.ledger.budget(account.budget).version > 0
    return account.ledger.reserve(
        account.budget, made.event, unit=made.unit, purpose=purpose, fingerprint=data if bound else None
    )


def _at(index: int) -> Callable[[tuple[Answer, ...]], Answer]:
    return lambda answers: answers[index]


def _said_of(confidence: float) -> Callable[[Answer], Answer]:
    """What is kept is the answer and not its sums, of which another interval could be made."""

    def said(answer: Answer) -> Answer:
        if answer.confidence == confidence:
            return answer
        stored, requested = (f"{100 * level:g} %" for level in (answer.confidence, confidence))
        note = (
            f"it was stored with {stored} confidence, which is shown; {requested} needs a fresh draw, which is paid for"
        )
        return replace(answer, notes=(*answer.notes, note))

    return said


def _joined(releases: Sequence[Release[Answer]]) -> Release[tuple[Answer, ...]]:
    """All together; their price, where all of them are of one plan."""
    same = all(one.draws == releases[0].draws for one in releases)
    return replace(join_all(releases), guarantee=releases[0].guarantee if same else None)
