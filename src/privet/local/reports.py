"""Reports of a questionnaire: made from answers on one side, and read, counted and estimated on the other."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np

from privet.core import InvalidInput
from privet.core.random import Rng
from privet.local.mean import Mean
from privet.local.multiple_questions import State
from privet.local.questionnaire import VERSION, BudgetSharing, Questionnaire, SurveyQuestion
from privet.local.shares import Shares

__all__ = [
    "LONGEST_REPORT",
    "Collection",
    "ReportOutcome",
    "answer_of",
    "json_object",
    "report_on",
    "with_new_id",
    "without_id",
]

LONGEST_REPORT = 16_384
"""Bytes in a line; what is longer is no report."""
_AT_ONCE = 4096
_LARGEST = 2**31
_ID = re.compile(r"[0-9a-f]{32}")


class ReportOutcome(Enum):
    """What became of a report."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    REFUSED = "refused"


def answer_of(question: SurveyQuestion, text: str) -> float:
    """Return an answer as it was typed: the number of an option or its words, or a number within the bounds.

    Args:
        question: The question.
        text: What was typed.

    Raises:
        InvalidInput: This is no possible answer; the error does not repeat it.
    """
    typed = text.strip()
    if question.is_number:
        try:
            number = float(typed)
        except ValueError:
            number = float("nan")
        if not question.low <= number <= question.high:
            bounds = f"give a number from {question.low:g} to {question.high:g}"
            raise InvalidInput(question.name, "has an answer that is not within its bounds", bounds)
        return number
    words = [option.casefold() for option in question.options]
    if typed.casefold() in words:
        return words.index(typed.casefold())
    if typed.isascii() and typed.isdigit() and 1 <= int(typed[:6]) <= len(words):
        return int(typed[:6]) - 1
    raise InvalidInput(
        question.name, "has an answer that is none of its options", f"give 1 to {len(words)}, or its words"
    )


def report_on(questionnaire: Questionnaire, answers: Mapping[str, float], rng: Rng) -> dict[str, Any]:
    """Return one person's randomized report, a JSON object without any true answer in it.

    It is ε-DP for all answers of that person together, under local trust: split questions by composition, a sampled one
    because the question is drawn without looking at the answers.

    Args:
        questionnaire: The questionnaire.
        answers: The true answers, by the name of the question.
        rng: The randomness of the report.

    Raises:
        InvalidInput: A question is not answered, or an answer is not possible.
    """
    missing = [question.name for question in questionnaire.questions if question.name not in answers]
    if missing:
        raise InvalidInput("answers", f"lack {', '.join(missing)}", "answer every question")
    parts = list(questionnaire.parts.items())
    if questionnaire.budget is BudgetSharing.SAMPLE:
        parts = [parts[rng.below(len(parts))]]
    drawn = {name: int(part.randomize(np.array([answers[name]]), rng)[0]) for name, part in parts}
    return {"privet": VERSION, "survey": questionnaire.digest, "id": rng.bits(16).hex(), "answers": drawn}


def without_id(questionnaire: Questionnaire, line: str | bytes) -> bytes | None:
    """Return a report without its id, in its only spelling.

    Where reports are shuffled, an id would say whose report this is to whoever has seen it with its sender.

    Args:
        questionnaire: The questionnaire.
        line: The report.

    Returns:
        The report; None for what is no report of this questionnaire.
    """
    valid = _valid(questionnaire, line)
    if valid is None:
        return None
    body = {"privet": VERSION, "survey": questionnaire.digest, "answers": valid[1]}
    return json.dumps(body, sort_keys=True).encode()


def with_new_id(report: bytes, rng: Rng) -> bytes:
    """Return a report with a new random id, which links it to nobody.

    Args:
        report: A report without an id.
        rng: The randomness of the id.
    """
    return json.dumps(json.loads(report) | {"id": rng.bits(16).hex()}, sort_keys=True).encode()


class Collection:
    """Everything that was reported so far: a state for each question, and the ids that were seen.

    The states do not grow with the reports. The ids do, by a few bytes each; they are random and say nothing of anyone.
    """

    def __init__(self, questionnaire: Questionnaire) -> None:
        self.questionnaire = questionnaire
        self.reports = self.duplicates = self.refused = 0
        self.others = 0
        """How many of those refused say that they are of another questionnaire."""
        self._states: dict[str, State] = {name: part.empty() for name, part in questionnaire.parts.items()}
        self._waiting: dict[str, list[int]] = {name: [] for name in questionnaire.parts}
        self._seen: set[bytes] = set()

    def add(self, line: str | bytes) -> ReportOutcome:
        """Count a report; an invalid one is refused, and one that was counted before is not counted again.

        Args:
            line: The report.
        """
        valid = _valid(self.questionnaire, line)
        if valid is None or valid[0] is None:
            self.refused += 1
            self.others += _is_of_another(self.questionnaire, line)
            return ReportOutcome.REFUSED
        name, answers = valid[0], valid[1]
        if name in self._seen:
            self.duplicates += 1
            return ReportOutcome.DUPLICATE
        self._seen.add(name)
        for question, value in answers.items():
            self._waiting[question].append(value)
            if len(self._waiting[question]) >= _AT_ONCE:
                self._count(question)
        self.reports += 1
        return ReportOutcome.ACCEPTED

    def _count(self, question: str) -> State:
        state, waiting = self._states[question], self._waiting[question]
        if waiting:
            state = state.extended(waiting)
            self._states[question], self._waiting[question] = state, []
        return state

    def estimate(self) -> dict[str, Shares | Mean | None]:
        """Return the estimates of each question; None for a question without answers."""
        sampled = self.questionnaire.budget is BudgetSharing.SAMPLE
        share = 1 / len(self._states) if sampled else 1.0
        return {name: _estimated(self._count(name), share) for name in self._states}


def _estimated(state: State, share: float) -> Shares | Mean | None:
    """Among all respondents, of whom each was asked with the chance `share`."""
    if state.reports == 0:
        return None
    return state.estimated().drawn(share)


def json_object(line: str | bytes) -> dict[str, Any]:
    """Return the JSON object that a line is, or an empty one for anything else."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _valid(questionnaire: Questionnaire, line: str | bytes) -> tuple[bytes | None, dict[str, int]] | None:
    """The id, if there is one, and the answers; None for what no respondent can have sent."""
    read = json_object(line) if len(line) <= LONGEST_REPORT else {}
    if set(read) | {"id"} != {"privet", "survey", "id", "answers"}:
        return None
    name, answers = read.get("id"), read["answers"]
    if read["privet"] != VERSION or read["survey"] != questionnaire.digest or not isinstance(answers, dict):
        return None
    if "id" in read and not (isinstance(name, str) and _ID.fullmatch(name)):
        return None
    parts = questionnaire.parts
    expected = 1 if questionnaire.budget is BudgetSharing.SAMPLE else len(parts)
    if len(answers) != expected or not set(answers) <= set(parts):
        return None
    if not all(type(value) is int and 0 <= value < _LARGEST for value in answers.values()):
        return None
    try:
        for question, value in answers.items():
            parts[question].checked_reports([value])
    except InvalidInput:
        return None
    return None if name is None else bytes.fromhex(name), answers


def _is_of_another(questionnaire: Questionnaire, line: str | bytes) -> bool:
    survey = json_object(line).get("survey") if len(line) <= LONGEST_REPORT else None
    return isinstance(survey, str) and survey != questionnaire.digest
