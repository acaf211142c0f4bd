"""The questionnaire as one HTML page that needs nothing else, and in which the answers are randomized."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from string import Template
from typing import Any

from privet.core import InvalidInput
from privet.local.duchi import Duchi
from privet.local.hadamard import HadamardResponse
from privet.local.hashing import LocalHashing
from privet.local.mean import MeanMechanism
from privet.local.multiple_questions import Part
from privet.local.piecewise import Piecewise
from privet.local.questionnaire import VERSION, BudgetSharing, Questionnaire, SurveyQuestion
from privet.local.randomized_response import GeneralizedRandomizedResponse

__all__ = ["asset", "content_policy", "law_of", "questionnaire_page"]


def questionnaire_page(questionnaire: Questionnaire, *, send: bool = False) -> str:
    """Return a page that asks, randomizes with the cryptographic generator of the browser, and shows the report.

    With `send`, the report can be posted to where the page came from, once its sender has seen it and says so; without
    it, the page's own content-security policy forbids it every request. The true answers never leave it either way.

    Args:
        questionnaire: The questionnaire.
        send: Whether the page may post the report to where it came from.
    """
    spec = {
        "privet": VERSION,
        "digest": questionnaire.digest,
        "budget": questionnaire.budget.value,
        "send": send,
        "questions": [
            {"name": question.name, "law": law_of(questionnaire.parts[question.name])}
            for question in questionnaire.questions
        ],
    }
    script = asset("page.js")
    return Template(asset("page.html")).substitute(
        policy=content_policy(script, connects=send),
        title=html.escape(questionnaire.title),
        style=asset("page.css"),
        price=html.escape(_price(questionnaire)),
        questions="\n".join(map(_fieldset, questionnaire.questions)),
        send='<p><button type="button" id="send">Send this line</button></p>\n' if send else "",
        survey=json.dumps(spec, allow_nan=False).replace("<", "\\u003c"),
        script=script,
    )


def law_of(part: Part) -> dict[str, Any]:
    """Return what the page needs to know about a randomizer; thresholds are texts, as they have 64 bits.

    Args:
        part: The oracle or mechanism.

    Raises:
        InvalidInput: The page cannot draw from it.
    """
    match part:
        case GeneralizedRandomizedResponse():
            return {"law": "response", "domain": part.domain, "limit": str(part.limit)}
        case HadamardResponse():
            return {"law": "hadamard", "outputs": part.outputs, "limit": str(part.limit)}
        case LocalHashing():
            sizes = {"bins": part.bins, "digits": part.digits, "hashes": part.hashes}
            return {"law": "hash", **sizes, "limit": str(part.response.limit)}
        case Duchi():
            return {"law": "duchi", **_grid(part), "start": str(part.start), "slope": str(part.slope)}
        case Piecewise():
            return {"law": "piecewise", **_grid(part), "width": part.width, "limit": str(part.limit)}
    raise InvalidInput("part", f"is a {type(part).__name__}, which the page cannot draw")


def _grid(part: MeanMechanism) -> dict[str, Any]:
    return {"low": part.low, "high": part.high, "steps": part.steps}


def _fieldset(question: SurveyQuestion) -> str:
    name, text = html.escape(question.name), html.escape(question.text)
    if question.is_number:
        bounds = f'min="{question.low}" max="{question.high}"'
        inside = f'<label>A number from {question.low:g} to {question.high:g}: <input type="number" name="{name}" '
        inside += f'{bounds} step="any" required></label>'
    else:
        inside = "".join(
            f'<label><input type="radio" name="{name}" value="{number}" required> {html.escape(option)}</label>'
            for number, option in enumerate(question.options)
        )
    return f"<fieldset><legend>{text}</legend>{inside}</fieldset>"


def _price(questionnaire: Questionnaire) -> str:
    one = questionnaire.budget is BudgetSharing.SAMPLE and len(questionnaire.questions) > 1
    drawn = " One of the questions is drawn at random, and only that one is reported." if one else ""
    return (
        f"ε = {questionnaire.epsilon:g}: whatever anyone sees of your report, the odds of any guess about your answers "
        f"move by a factor of at most e^ε.{drawn}"
    )


def asset(name: str) -> str:
    """Return a template, script or style sheet of this room."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def content_policy(script: str, *, connects: bool) -> str:
    """Return the content-security policy of a page: its one script runs, and may send requests to its origin, or none.

    Args:
        script: The text of the page's script.
        connects: Whether the page may send requests to where it came from.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        f"connect-src '{'self' if connects else 'none'}'; base-uri 'none'; form-action 'none'"
    )
