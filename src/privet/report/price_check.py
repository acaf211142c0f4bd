"""Price a card again: it must not claim a smaller ε than its own events cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from privet.accounting import Meaning, upper
from privet.core import Event, InvalidInput, NotProven, Release, Trial, Unit
from privet.report.account import price_run
from privet.report.card import RunCard, leaves
from privet.report.training_card import TrainingCard
from privet.report.training_records import PATE, Growth
from privet.report.words import ACCOUNTANTS, up

__all__ = ["require_priced"]

_WHOLE = "this run"
"""The name of a run's own trials, if other trials are of parts of it."""
_ROUNDING = 1e-3
"""By what fraction a claim may lie below the price computed here: machines and versions round differently."""
_ADVICE = "the card was changed, or made by a newer version: ask for it again, or upgrade privet"


@dataclass(frozen=True)
class _Claim:
    """The claim that an event costs no more than this ε."""

    where: str
    epsilon: float
    event: Event
    delta: float
    unit: Unit


def require_priced(card: TrainingCard) -> None:
    """Check that a card does not claim a smaller ε, or weaker attackers, than its own events allow.

    The whole is priced again by every accountant, and so are its lines, the guarantees of releases, the end of ε's
    growth and the trials. Two things have no event on the card and stay unchecked: ε before the last epoch, and the ε
    of a student after fewer queries than were charged. Takes from a tenth of a second to a few.

    Args:
        card: The card.

    Raises:
        InvalidInput: The card claims too little.
    """

    @cache
    def priced(event: Event, delta: float, unit: Unit) -> float:
        return upper(event, delta, unit=unit)

    try:
        _require_whole(card.privacy)
        for claim in _claims(card):
            _require(claim.where, claim.epsilon, priced(claim.event, claim.delta, claim.unit))
    except NotProven as refusal:
        raise InvalidInput("card", f"has an event that no theorem covers: {refusal}", _ADVICE) from None


def _require(where: str, claimed: float, least: float) -> None:
    if not _reaches(claimed, least):
        problem = f"claims ε ≤ {up(claimed)} for {where}, and its events cost {up(least)}"
        raise InvalidInput("card", problem, _ADVICE)


def _reaches(claimed: float, least: float) -> bool:
    return claimed >= least * (1 - _ROUNDING)


def _require_whole(said: RunCard) -> None:
    """The guarantee, every accountant's, and what they mean."""
    stated = said.guarantee.value
    again = price_run(said.event.value, stated.delta, unit=stated.unit)
    _require("the whole", stated.epsilon.upper, again.guarantee.value.epsilon.upper)
    proven = {rung.accountant: rung.guarantee for rung in again.ladder.value}
    for rung in said.ladder.value:
        if rung.guarantee is None:
            continue
        if (rung.guarantee.delta, rung.guarantee.unit) != (stated.delta, stated.unit):
            raise InvalidInput("card", "has accountants that answer for another δ or unit than its guarantee", _ADVICE)
        least = proven[rung.accountant]
        name = f"the whole by {ACCOUNTANTS[rung.accountant]}"
        _require(name, rung.guarantee.epsilon.upper, math.inf if least is None else least.epsilon.upper)
    _require_meaning(said.meaning.value, again.meaning.value)


def _require_meaning(said: Meaning, found: Meaning) -> None:
    rates = {each.false_positive_rate: each.true_positive_rate for each in found.attacks}
    beliefs = {each.prior: each for each in found.beliefs}
    holds = set(rates) == {each.false_positive_rate for each in said.attacks}
    holds = holds and set(beliefs) == {each.prior for each in said.beliefs}
    holds = holds and all(_reaches(each.true_positive_rate, rates[each.false_positive_rate]) for each in said.attacks)
    for each in said.beliefs if holds else ():
        least = beliefs[each.prior]
        holds = holds and _reaches(each.posterior, least.posterior) and _reaches(each.exceeding, least.exceeding)
    if not holds:
        raise InvalidInput("card", "says of attackers less than its events let them do", _ADVICE)


def _claims(card: TrainingCard) -> Iterator[_Claim]:
    stated, whole = card.privacy.guarantee.value, card.privacy.event.value
    for line in card.bill.value:
        priced = line.guarantee
        yield _Claim(f"{line.what!r}", priced.epsilon.upper, line.event, priced.delta, stated.unit)
    if card.growth is not None:
        yield from _growth(card.growth.value, whole, stated.unit)
    for name, leaf in leaves(card):
        if not isinstance(leaf, Release):
            continue
        if leaf.guarantee is not None:
            promise = leaf.guarantee
            yield _Claim(f"a release in {name}", promise.epsilon.upper, leaf.event, promise.delta, leaf.unit)
        if isinstance(leaf.value, Trial) and _is_whole(leaf.value):
            trial = leaf.value
            yield _Claim(f"{trial.run!r} in {name}", trial.epsilon, leaf.event, trial.delta, leaf.unit)


def _growth(growth: Growth, whole: Event, unit: Unit) -> Iterator[_Claim]:
    for delta, row in zip(growth.deltas, growth.by_delta, strict=True):
        if row:
            yield _Claim(f"all {growth.by}", row[-1], whole, delta, unit)


def _is_whole(trial: Trial) -> bool:
    return trial.method != PATE or trial.teachers is not None or trial.run == _WHOLE
