"""What a report may be under a plan: the price is of one kind of report, so that nothing else is sent."""

from __future__ import annotations

import json

from privet.core import InvalidInput
from privet.local.reports import json_object, without_id
from privet.local.shuffling.plan import MixPlan

__all__ = ["canonical_report", "id_of", "is_canonical_report"]


def canonical_report(plan: MixPlan, report: bytes) -> bytes:
    """Return the report as it is sent; what the plan does not price is not sent.

    Under a plan with a survey, it is a report of that survey, without its id. Under one with categories, it is
    `{"answer": k}` with one of them. Both are written in one way only, so that nothing but answers tells them apart.
    Under any other plan it is the sender's business, but no report of a survey, whose ε the plan does not know.

    Args:
        plan: The public plan of the batch.
        report: The report.

    Raises:
        InvalidInput: The plan does not price this report.
    """
    read = json_object(report)
    if plan.survey is not None:
        body = without_id(plan.survey, report)
        if body is None:
            problem = f"is none of the plan's survey {plan.survey.title!r} ({plan.survey.digest})"
            raise InvalidInput("report", problem, "send lines that were made with that questionnaire alone")
        return body
    if "survey" in read or "answers" in read:
        problem = "is one of a survey, and the plan names none, so that it does not know its ε"
        raise InvalidInput("report", problem, 'write survey = "FILE.toml" into the plan, and the ε of that survey')
    if not plan.categories:
        return report
    value = read["answer"] if set(read) == {"answer"} else None
    if type(value) is not int or not 0 <= value < plan.categories:
        problem = f"is not one of the plan's {plan.categories} categories"
        raise InvalidInput("report", problem, f'send {{"answer": k}} with k from 0 to {plan.categories - 1}')
    return json.dumps({"answer": value}).encode()


def id_of(report: bytes) -> str | None:
    """Return the id of a report that has one: it tells whether the report was sent before.

    It is read and not looked for among the bytes: one report may be written in many ways, with its words in another
    order or other spaces between them, and is one person's in all of them.

    Args:
        report: The report.

    >>> id_of(b'{"id": "7f", "answer": 1}') == id_of(b'{"answer":1,"id":"\\\\u0037f"}')
    True
    """
    name = json_object(report).get("id")
    return name if isinstance(name, str) else None


def is_canonical_report(plan: MixPlan, report: bytes) -> bool:
    """Return whether a report that has arrived is one that the plan prices, in its only spelling.

    Args:
        plan: The public plan of the batch.
        report: The report.
    """
    try:
        return canonical_report(plan, report) == report
    except InvalidInput:
        return False
