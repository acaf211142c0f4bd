"""A questionnaire: its questions, one ε for all of them, and how each answer is randomized."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from privet.core import Event, InvalidInput, checked
from privet.local.multiple_questions import Part, SampledQuestions, SplitQuestions, split_epsilon
from privet.local.table import best_mean, best_oracle
from privet.mechanisms import usable

__all__ = [
    "VERSION",
    "BudgetSharing",
    "Questionnaire",
    "SurveyQuestion",
    "read_questionnaire",
    "read_toml",
    "require_keys",
    "tables_of",
]

T = TypeVar("T")
VERSION = 1
_MOST_QUESTIONS, _MOST_OPTIONS, _LONGEST = 50, 1000, 500
_NAME = re.compile(r"[A-Za-z][\w-]{0,39}")
_TOP = ("privet", "title", "epsilon", "budget", "question")
_KINDS = {"yes-no": (), "choice": ("options",), "number": ("low", "high")}


class BudgetSharing(Enum):
    """How one ε is shared by several questions."""

    SPLIT = "split"
    """Everybody answers all questions, each under a part of ε."""
    SAMPLE = "sample"
    """Everybody answers one question, drawn at random, under the whole of ε."""


@dataclass(frozen=True)
class SurveyQuestion:
    """One question: with options to choose from, or with the bounds of a number."""

    name: str
    text: str
    options: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    weight: float = 1.0
    """How much of a split ε it gets, compared with the others."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InvalidInput("name", f"is {self.name!r}", "use letters, digits and hyphens, such as commute")
        if len(checked.text("text", self.text)) > _LONGEST:
            raise InvalidInput("text", f"is longer than {_LONGEST} letters", "ask it in fewer words")
        checked.positive("weight", self.weight)
        object.__setattr__(self, "options", checked.texts("options", self.options))
        if self.options and not 2 <= len(set(self.options)) == len(self.options) <= _MOST_OPTIONS:
            problem = f"are {len(self.options)}, or some are the same"
            raise InvalidInput("options", problem, f"give 2 to {_MOST_OPTIONS} different ones")
        if not self.options and not checked.finite("low", self.low) < checked.finite("high", self.high):
            raise InvalidInput("high", f"is {self.high}, and low is {self.low}", "give two bounds, the lower one first")

    @property
    def is_number(self) -> bool:
        """Whether a number is asked for."""
        return not self.options

    def part(self, epsilon: float) -> Part:
        """Return the best way to report an answer under this ε.

        Args:
            epsilon: The ε of the answer.
        """
        if self.is_number:
            return best_mean(epsilon, self.low, self.high)
        return best_oracle(len(self.options), epsilon)


@dataclass(frozen=True)
class Questionnaire:
    """What everybody is asked, under one ε for all answers of one person.

    >>> smoking = Questionnaire("Smoking", 1.0, (SurveyQuestion("smoker", "Do you smoke?", ("no", "yes")),))
    >>> smoking.parts["smoker"].event
    RandomizedResponse(epsilon=1.0, categories=2)
    """

    title: str
    epsilon: float
    questions: tuple[SurveyQuestion, ...]
    budget: BudgetSharing = BudgetSharing.SPLIT

    def __post_init__(self) -> None:
        checked.text("title", self.title)
        object.__setattr__(self, "epsilon", usable(self.epsilon))
        object.__setattr__(self, "questions", tuple(self.questions))
        object.__setattr__(self, "budget", checked.member("budget", self.budget, BudgetSharing))
        names = [question.name for question in self.questions]
        if not 1 <= len(names) <= _MOST_QUESTIONS:
            raise InvalidInput("question", f"is there {len(names)} times", f"ask 1 to {_MOST_QUESTIONS} questions")
        if len(set(names)) < len(names):
            raise InvalidInput("name", "is the same for two questions", "give each its own")

    @cached_property
    def parts(self) -> dict[str, Part]:
        """How each question is answered, by name."""
        if self.budget is BudgetSharing.SAMPLE:
            shares: tuple[float, ...] = (self.epsilon,) * len(self.questions)
        else:
            shares = split_epsilon(self.epsilon, [question.weight for question in self.questions])
        return {question.name: question.part(share) for question, share in zip(self.questions, shares, strict=True)}

    @property
    def joint(self) -> SplitQuestions | SampledQuestions:
        """All questions together."""
        kind = SampledQuestions if self.budget is BudgetSharing.SAMPLE else SplitQuestions
        return kind(tuple(self.parts.values()))

    @property
    def event(self) -> Event:
        """What one person's whole report does to their answers."""
        return self.joint.event

    @property
    def digest(self) -> str:
        """A short name that changes with every word and number of the questionnaire."""
        head = [self.title, self.epsilon, self.budget.value, VERSION]
        questions = [[q.name, q.text, q.options, q.low, q.high, q.weight] for q in self.questions]
        return hashlib.sha256(json.dumps([head, questions]).encode()).hexdigest()[:16]


def read_questionnaire(path: Path) -> Questionnaire:
    """Read a questionnaire from its TOML file.

    Args:
        path: The file.

    Raises:
        InvalidInput: The file cannot be read, or is not a questionnaire.
    """
    return read_toml(path, "questionnaire", _parsed)


def read_toml(path: Path, what: str, parse: Callable[[Mapping[str, Any]], T]) -> T:
    """Read a TOML file of this version.

    Args:
        path: The file.
        what: What the file should be, for errors.
        parse: From the file's top table to the result.

    Raises:
        InvalidInput: The file cannot be read, is not TOML or of another version, or `parse` refuses it.
    """
    try:
        top = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or "unreadable").lower() if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput("file", f"{str(path)!r} cannot be read: {reason}", f"name the {what}'s file") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput("file", f"{str(path)!r} is not TOML: {error}", "look at that line") from None
    try:
        if top.get("privet") != VERSION:
            raise InvalidInput("privet", f"is {top.get('privet')!r}", f"write privet = {VERSION} in the first line")
        return parse(top)
    except InvalidInput as error:
        raise InvalidInput("file", f"{str(path)!r}: {error.argument} {error.problem}", error.advice) from None


def tables_of(top: Mapping[str, Any], key: str, needed: tuple[str, ...], allowed: tuple[str, ...], where: str) -> Any:
    """Return the list of tables at `key`, once every key of `top` is allowed and those needed are there."""
    require_keys(top, allowed, where)
    for name in needed:
        if name not in top:
            raise InvalidInput(name, "is missing", f"add {f'[[{key}]]' if name == key else f'{name} = …'}")
    if not isinstance(top[key], list) or not all(isinstance(table, dict) for table in top[key]):
        raise InvalidInput(key, "is not a list of tables", f"write [[{key}]] above each")
    return top[key]


def require_keys(table: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    """Refuse a table with keys that are not among these."""
    for key in table:
        if key not in keys:
            raise InvalidInput(key, f"means nothing in {where}", f"use one of: {', '.join(keys)}")


def _parsed(top: Mapping[str, Any]) -> Questionnaire:
    tables = tables_of(top, "question", ("title", "epsilon", "question"), _TOP, "the file")
    return Questionnaire(
        top["title"], top["epsilon"], tuple(map(_question, tables)), top.get("budget", BudgetSharing.SPLIT)
    )


def _question(table: Mapping[str, Any]) -> SurveyQuestion:
    called, kind = f"question {table.get('name', '')!r}", table.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidInput(called, f"has the kind {kind!r}", f"use one of: {', '.join(_KINDS)}")
    require_keys(table, ("name", "text", "kind", "weight", *_KINDS[kind]), called)
    for key in ("name", "text", *_KINDS[kind]):
        if key not in table:
            raise InvalidInput(called, f"has no {key}", f"add a line: {key} = …")
    given = {key: value for key, value in table.items() if key != "kind"}
    if kind == "yes-no":
        given["options"] = ("no", "yes")
    elif kind == "choice" and not isinstance(given["options"], list):
        raise InvalidInput(called, "has options that are no list", 'write options = ["a", "b"]')
    try:
        return SurveyQuestion(**given)
    except InvalidInput as error:
        raise InvalidInput(called, f"is refused: {error.argument} {error.problem}", error.advice) from None
