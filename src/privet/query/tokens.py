"""The words of a question, each with its place, and errors that point at one of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from privet.core import InvalidInput

__all__ = ["KEYWORDS", "MalformedQuestion", "Token", "TokenKind", "error_at", "suggestion", "tokenize"]

_LONGEST = 2000
KEYWORDS = frozenset({"where", "by", "weight", "and", "or", "not", "in", "is"})
"""Words that are no names; in quotes they are."""


class TokenKind(Enum):
    """What a word is."""

    NAME = "a name"
    NUMBER = "a number"
    TEXT = "a text"
    SIGN = "a sign"
    END = "the end"


_PATTERN = re.compile(
    r"""(?P<blank>\s+)
    |(?P<NUMBER>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    |(?P<TEXT>"[^"]*"|'[^']*'|`[^`]*`)
    |(?P<NAME>[^\W\d][\w.\-]*)
    |(?P<SIGN><=|>=|!=|<>|==|[=<>(),*])""",
    re.VERBOSE,
)


class MalformedQuestion(InvalidInput):
    """A question that cannot be understood; says which word, where it stands, and what would do in its place.

    `position` counts characters from 1, and `word` is empty at the end of the question.
    """

    def __init__(self, text: str, start: int, end: int, problem: str, advice: str) -> None:
        self.position, self.word, self.expected = start + 1, text[start:end], advice
        marked = f"{text[:start]}»{text[start:end]}«{text[end:]}"
        super().__init__("question", f"{marked!r}, character {self.position}: {problem}", advice)


@dataclass(frozen=True)
class Token:
    """A word, its meaning without quotes, and where it stands."""

    kind: TokenKind
    text: str
    start: int
    end: int


def error_at(question: str, word: Token, problem: str, advice: str) -> MalformedQuestion:
    """The error that points at a word."""
    return MalformedQuestion(question, word.start, word.end, problem, advice)


def tokenize(question: str) -> list[Token]:
    """The words of a question, and its end.

    >>> [word.text for word in tokenize("mean(age) where ward = 'north'")]
    ['mean', '(', 'age', ')', 'where', 'ward', '=', 'north', '']
    """
    if not isinstance(question, str) or len(question) > _LONGEST:
        raise InvalidInput("question", f"is no text of at most {_LONGEST} characters", "write it as a text")
    tokens, position = [], 0
    while position < len(question):
        match = _PATTERN.match(question, position)
        if match is None:
            raise _unknown(question, position)
        if match.lastgroup is not None and match.lastgroup != "blank":
            text, kind = match.group(), TokenKind[match.lastgroup]
            tokens.append(Token(kind, text[1:-1] if kind is TokenKind.TEXT else text, position, match.end()))
        position = match.end()
    return [*tokens, Token(TokenKind.END, "", len(question), len(question))]


def _unknown(question: str, position: int) -> MalformedQuestion:
    if question[position] in "\"'`":
        problem = "a quote that is never closed"
        return MalformedQuestion(question, position, len(question), problem, f"end it with {question[position]}")
    end = position + 1
    while end < len(question) and (question[end].isalnum() or question[end] in "._-"):
        end += 1
    advice = "write names and values with other signs in quotes, such as 'St. Mary' or \"18-25\""
    return MalformedQuestion(question, position, end, "this is neither a name nor a number", advice)


def suggestion(word: str, known: Sequence[str]) -> str:
    """Advice: the known word that is most like this one, and some of the others."""
    import difflib

    plain = [name.casefold() for name in known]  # `male` is Male, and not Female, which has more letters of it
    like = [known[plain.index(name)] for name in difflib.get_close_matches(word.casefold(), plain, 1, 0.6)]
    listed = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
    return f"did you mean {like[0]}? there is {listed}" if like else f"use one of: {listed}"
