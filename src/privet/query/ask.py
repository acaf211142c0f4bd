"""Asking with a ledger: what was answered before is free, and what is new is charged first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from privet.core.errors import InvalidInput
from privet.core.guarantee import Guarantee
from privet.core.random import Rng
from privet.core.release import Release
from privet.data.schema import Schema
from privet.ledger import Charge, Fingerprint, Ledger
from privet.query.answers import Answer
from privet.query.feed import Data
from privet.query.plan import Asked, Plan, plan
from privet.query.questions import Question
from privet.query.stored import Kept, Stored

__all__ = ["Account", "Reply", "ask"]

_PURPOSE = 1000


@dataclass(frozen=True)
class Account:
    """Who pays, and where answers are kept."""

    ledger: Ledger
    budget: str
    """The name of the data set's budget."""
    stored: Stored | None = None
    """Where answers are kept; without it, nothing is ever free."""


@dataclass(frozen=True)
class Reply:
    """The answers, which of them were free, and what the others cost."""

    release: Release[tuple[Answer, ...]]
    """In the order of the questions."""
    free: tuple[bool, ...]
    charged: Guarantee | None
    """The price of what was drawn now; None where nothing was."""
    head: str | None
    """The end of the ledger's chain after the charge."""


def ask(
    data: Data,
    questions: Sequence[Asked] | Asked,
    schema: Schema,
    *,
    account: Account,
    epsilon: float,
    delta: float = 0.0,
    rng: Rng,
    confidence: float = 0.95,
    fresh: bool = False,
) -> Reply:
    """The answers to some questions, in their order.

    Questions that were answered before, about the same data, are answered again as they were, and cost nothing. The
    others get their weights' part of (ε, δ), as if all had been new, and are charged to the ledger before any row is
    read. `fresh` draws and pays again.

    Guarantee: that of `Plan.draw` for what is new, and of their own draws for what was stored; the ledger's budget
    covers both. An unknown column, a malformed question, a refused charge or a file that cannot be read: an error, and
    no charge. Assumes that everything else that is released from the data is charged to the same budget.
    """
    whole = plan(questions, schema, epsilon=epsilon, delta=delta, confidence=confidence)
    feed = whole.feed(data)
    stamp, fingerprint = feed.stamp(), feed.fingerprint()
    asked = {str(question): question for question in whole.questions}
    known = {} if fresh else _known(asked, schema, account, fingerprint)
    if account.stored is not None:
        account.stored.ready()
    new = [question for text, question in asked.items() if text not in known]
    found = {text: kept.release().map(_said_of(confidence)) for text, kept in known.items()}
    if not new:
        return Reply(
            _joined([found[str(question)] for question in whole.questions]), (True,) * len(whole.questions), None, None
        )
    made = whole
    if len(new) < len(whole.questions):
        part = sum(each.weight for each in new) / sum(each.weight for each in asked.values())
        made = plan(new, schema, epsilon=epsilon * part, delta=delta * part, confidence=confidence)
    charge = _reserved(account, made, fingerprint)
    with ExitStack() as undo:
        undo.callback(charge.abort)
        totals = made.tally(feed)
        if feed.stamp() != stamp:  # an answer must be kept under the fingerprint of its own data
            raise InvalidInput("data", "changed while they were read", "ask again when nobody writes them")
        undo.pop_all()  # up to here nothing was drawn
    charge.draw()
    answers = made.draw(totals, rng=rng, name=account.budget)
    for place, question in enumerate(new):
        found[str(question)] = answers.map(_at(place))
        if account.stored is not None:
            account.stored.keep(question, schema, account.budget, fingerprint, found[str(question)], charge.id)
    head = charge.commit()
    free = tuple(str(question) in known for question in whole.questions)
    return Reply(_joined([found[str(question)] for question in whole.questions]), free, made.guarantee, head)


def _known(asked: Mapping[str, Question], schema: Schema, account: Account, data: Fingerprint) -> dict[str, Kept]:
    found = {}
    for text, question in asked.items() if account.stored is not None else ():
        kept = account.stored.find(question, schema, account.budget, data, account.ledger) if account.stored else None
        if kept is not None:
            found[text] = kept
    return found


def _reserved(account: Account, made: Plan, data: Fingerprint) -> Charge:
    purpose = "; ".join(map(str, made.questions))
    if len(purpose) > _PURPOSE or not purpose.isprintable():
        purpose = f"{len(made.questions)} questions"
    bound = account.ledger.budget(account.budget).version > 0
    return account.ledger.reserve(
        account.budget, made.event, unit=made.unit, purpose=purpose, fingerprint=data if bound else None
    )


def _at(place: int) -> Callable[[tuple[Answer, ...]], Answer]:
    return lambda answers: answers[place]


def _said_of(confidence: float) -> Callable[[Answer], Answer]:
    """What is kept is the answer and not its sums, of which another interval could be made."""

    def said(answer: Answer) -> Answer:
        if answer.confidence == confidence:
            return answer
        stored, wanted = (f"{100 * each:g} %" for each in (answer.confidence, confidence))
        note = f"it was stored with {stored} confidence, which is shown; {wanted} needs a fresh draw, which is paid for"
        return replace(answer, notes=(*answer.notes, note))

    return said


def _joined(releases: Sequence[Release[Answer]]) -> Release[tuple[Answer, ...]]:
    """All together; their price, where all of them are of one plan."""
    every: Release[tuple[Answer, ...]] = releases[0].map(_alone)
    for one in releases[1:]:
        every = Release.join(every, one).map(_flat)
    same = all(one.draws == releases[0].draws for one in releases)
    return replace(every, guarantee=releases[0].guarantee if same else None)


def _alone(answer: Answer) -> tuple[Answer, ...]:
    return (answer,)


def _flat(pair: tuple[tuple[Answer, ...], Answer]) -> tuple[Answer, ...]:
    return (*pair[0], pair[1])
