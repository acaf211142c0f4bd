"""Estimates of a survey as rows: of a mean, or of the share of each answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from privet.core import InvalidInput, encode
from privet.local.mean import Mean
from privet.local.questionnaire import VERSION, Questionnaire, SurveyQuestion
from privet.local.reports import Collection
from privet.local.shares import Shares

__all__ = ["AnswerEstimate", "answer_estimates", "estimates_document", "require_reports"]


@dataclass(frozen=True)
class AnswerEstimate:
    """The estimate of a mean, or of the share of one answer, with its interval."""

    answer: str
    estimate: float
    low: float
    high: float
    consistent: float
    """The estimate, moved into the range of possible values."""


def answer_estimates(
    question: SurveyQuestion, estimate: Shares | Mean | None, confidence: float
) -> list[AnswerEstimate]:
    """Return the estimates of one question.

    Args:
        question: The question.
        estimate: What `Collection.estimate` says about it; None if nobody answered it.
        confidence: The confidence of each interval.
    """
    if estimate is None:
        return []
    if isinstance(estimate, Mean):
        interval = estimate.interval(confidence)
        return [AnswerEstimate("mean", estimate.estimate, *interval, estimate.consistent())]
    columns = (estimate.estimate, *estimate.interval(confidence), estimate.consistent())
    rows = zip(question.options, *(column.tolist() for column in columns), strict=True)
    return [AnswerEstimate(*row) for row in rows]


def require_reports(collection: Collection, questionnaire_file: str) -> None:
    """Refuse a collection without any report of its questionnaire.

    Args:
        collection: The reports.
        questionnaire_file: The name of the questionnaire's file, for the error.

    Raises:
        InvalidInput: All reports were refused, or belong to another questionnaire.
    """
    if collection.reports:
        return
    if collection.others:
        problem = f"are of another questionnaire than {questionnaire_file!r}, or of it before it was changed"
        raise InvalidInput("reports", f"{problem} ({collection.others:,} of them)", "name the one they were made with")
    raise InvalidInput("reports", f"hold none of this questionnaire ({collection.refused:,} refused)", "collect some")


def estimates_document(collection: Collection, confidence: float) -> dict[str, Any]:
    """Return all estimates of a survey as JSON data.

    Args:
        collection: The reports.
        confidence: The confidence of each interval.
    """
    questionnaire: Questionnaire = collection.questionnaire
    estimates, questions = collection.estimate(), []
    for question in questionnaire.questions:
        estimate = estimates[question.name]
        entry = {
            "name": question.name,
            "text": question.text,
            "reports": estimate.reports if estimate is not None else 0,
        }
        bounds = {"low": question.low, "high": question.high} if question.is_number else {}
        answers = [asdict(value) for value in answer_estimates(question, estimate, confidence)]
        questions.append(entry | bounds | {"answers": answers})
    return {
        "privet": VERSION,
        "command": "survey estimate",
        "title": questionnaire.title,
        "survey": questionnaire.digest,
        "epsilon": questionnaire.epsilon,
        "event": encode(questionnaire.event),
        "unit": encode(questionnaire.joint.unit),
        "confidence": confidence,
        "reports": collection.reports,
        "duplicates": collection.duplicates,
        "refused": collection.refused,
        "questions": questions,
    }
