"""Design a survey: a questionnaire to start from, and how precise its estimates will be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from privet.core import InvalidInput, checked, write_atomically
from privet.local.mean import MeanMechanism
from privet.local.oracle import PureOracle
from privet.local.questionnaire import BudgetSharing, Questionnaire

__all__ = ["QuestionDesign", "design_survey", "draft_questionnaire"]

_NORMAL_95 = 1.96
_DRAFT = """\
privet = 1
title = "Commuting"
epsilon = 2.0
# "split": everybody answers all questions, each under a part of epsilon.
# "sample": everybody answers one of them, drawn at random, under all of it.
budget = "split"

[[question]]
name = "fare"
text = "Have you ever traveled without a ticket?"
kind = "yes-no"

[[question]]
name = "transport"
text = "How do you come to work?"
kind = "choice"
options = ["on foot", "bicycle", "bus or train", "car"]

[[question]]
name = "minutes"
text = "How many minutes does it take?"
kind = "number"
low = 0
high = 120
"""


def draft_questionnaire(path: Path) -> None:
    """Write an example of a questionnaire, to be edited.

    Args:
        path: The file to write.

    Raises:
        InvalidInput: The file exists or cannot be written.
    """
    if path.exists():
        raise InvalidInput("draft", f"would write over {str(path)!r}", "give another name")
    write_atomically(path, _DRAFT, "draft")


@dataclass(frozen=True)
class QuestionDesign:
    """How the answers to one question are randomized, and how precise its estimate will be."""

    question: str
    mechanism: str
    epsilon: float
    half_width: float
    """Half a 95 % interval: of a share near 0, or of a mean at worst. NaN if it is not known in advance."""
    is_number: bool
    """Whether a mean is estimated, and no share."""


def design_survey(questionnaire: Questionnaire, respondents: int) -> tuple[QuestionDesign, ...]:
    """Compute how precise the estimates of a survey will be. No report is needed.

    Args:
        questionnaire: The questionnaire.
        respondents: How many people are expected to answer.

    Returns:
        One record for each question.

    Raises:
        InvalidInput: `respondents` is not a positive number.
    """
    checked.count("respondents", respondents)
    shared_by = len(questionnaire.questions) if questionnaire.budget is BudgetSharing.SAMPLE else 1
    answers, share = max(1, respondents // shared_by), 1 / shared_by
    designs = []
    for question in questionnaire.questions:
        part = questionnaire.parts[question.name]
        is_number = isinstance(part, MeanMechanism)
        if isinstance(part, MeanMechanism):
            worst = part.worst_variance + 1 - share  # numbers vary too, where not everybody is asked
            deviation = (part.high - part.low) / 2 * (worst / answers) ** 0.5
        else:
            deviation = (part.variance(0.0) / answers) ** 0.5 if isinstance(part, PureOracle) else float("nan")
        designs.append(
            QuestionDesign(question.name, type(part).__name__, part.epsilon, _NORMAL_95 * deviation, is_number)
        )
    return tuple(designs)
