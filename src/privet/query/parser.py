"""A little language of questions.

count | sum(x) | mean(x) | variance(x) | histogram(x[, cells]) | median(x) | quantile(x, share) | min(x) | max(x)
| top(x, k) | covariance(x, y)
[where CONDITION] [by COLUMN, COLUMN …] [weight NUMBER]

CONDITION: x = 1, x != 1, x < 1, x <= 1, x > 1, x >= 1, x in (1, 2), x is [not] missing; not, and, or, ( )
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from privet.core import InvalidInput
from privet.data import Schema
from privet.query import questions as asked
from privet.query.conditions import All, AnyOf, CellComparison, Condition, IsMissing, Not, OneOf, Op
from privet.query.questions import Measure, Question
from privet.query.schema_check import SchemaMismatch, require_answerable
from privet.query.tokens import KEYWORDS, MalformedQuestion, Token, TokenKind, error_at, suggestion, tokenize

__all__ = ["parse"]

T = TypeVar("T")
_CLAUSES = ("where", "by", "weight")
_OPS = {op.value: op for op in Op} | {"==": Op.EQUAL, "<>": Op.UNEQUAL}
_MEASURES = (
    "count",
    "sum",
    "mean",
    "variance",
    "histogram",
    "median",
    "quantile",
    "min",
    "max",
    "top",
    "covariance",
)
_SIMPLE: dict[str, Callable[[str], Measure]] = {
    "sum": asked.SumMeasure,
    "mean": asked.MeanMeasure,
    "variance": asked.VarianceMeasure,
    "histogram": asked.HistogramMeasure,
    "median": asked.QuantileMeasure,
    "min": asked.MinimumMeasure,
    "max": asked.MaximumMeasure,
}
_OTHER_WORDS = {
    "avg": "mean",
    "average": "mean",
    "var": "variance",
    "minimum": "min",
    "maximum": "max",
    "cov": "covariance",
}


def parse(text: str, schema: Schema) -> Question:
    """Return the question that a text asks of tables with this schema. Nothing of any table is read.

    What cannot be understood, and what the schema does not have, is a `MalformedQuestion` that points at the word.

    Args:
        text: The question, such as `mean(age) by ward`.
        schema: The schema of the table.

    Raises:
        MalformedQuestion: The text cannot be understood, or the schema cannot answer it; the error points at the word.

    >>> from privet.data import Category, Number
    >>> clinic = Schema((Number("age", 0, 100), Category("ward", ("north", "south"))))
    >>> parse("mean(age) by ward", clinic)
    Question(measure=MeanMeasure(column='age'), where=None, by=('ward',), weight=1.0)
    >>> parse("mean(agee) by ward", clinic)
    Traceback (most recent call last):
    privet.query.tokens.MalformedQuestion: question 'mean(»agee«) by ward', character 6: the schema has no column
    'agee'; did you mean age? there is age, ward
    """
    reading = _Reading(text, tokenize(text))
    try:
        question = reading.question()
    except MalformedQuestion:
        raise
    except InvalidInput as error:  # a number that the record refuses
        raise error_at(text, reading.before, f"{error.argument} {error.problem}", error.advice) from None
    try:
        require_answerable(question, schema)
    except SchemaMismatch as error:
        raise error_at(text, reading.meant(error), error.problem, error.advice) from None
    return question


@dataclass
class _Reading:
    text: str
    words: list[Token]
    place: int = 0
    parts: list[tuple[object, int, int]] = field(default_factory=list)
    """The measure, every comparison and the groups, each with the words that it was read from."""

    @property
    def now(self) -> Token:
        return self.words[self.place]

    @property
    def before(self) -> Token:
        return self.words[max(self.place - 1, 0)]

    def meant(self, error: SchemaMismatch) -> Token:
        """The word that an error is about, within its part of the question."""
        spans = (self.words[start:end] for part, start, end in self.parts if part is error.part)
        words = [word for word in next(spans, self.words) if word.kind is not TokenKind.SIGN]
        matching = [word for word in words if word.text == error.word] or words
        return matching[-1 if error.last else 0]

    def question(self) -> Question:
        measure = self._measure()
        self.parts.append((measure, 0, self.place))
        where: Condition | None = None
        by: tuple[str, ...] = ()
        weight = 1.0
        seen: set[str] = set()
        while self.now.kind is not TokenKind.END:
            clause = self._lower()
            if clause not in _CLAUSES:
                raise self._expected("where, by, weight or the end")
            if clause in seen:
                raise error_at(self.text, self.now, f"a second {clause}", "write each part once")
            seen.add(clause)
            self.place += 1
            if clause == "where":
                where = self._any()
            elif clause == "by":
                start = self.place
                by = self._listed(self._column)
                self.parts.append((by, start, self.place))
            else:
                weight = self._number("a weight, such as 2")
        return Question(measure, where, by, weight)

    def _measure(self) -> Measure:
        word, name = self.now, self._lower()
        if word.kind is not TokenKind.NAME or name not in _MEASURES:
            advice = f"write {_OTHER_WORDS[name]}" if name in _OTHER_WORDS else suggestion(name, _MEASURES)
            problem = "the question is empty" if word.kind is TokenKind.END else "this cannot be asked for"
            raise error_at(self.text, word, problem, advice)
        self.place += 1
        if name == "count":
            if self._take("("):
                self._take("*")
                self._need(")", "`)`: count takes no column; write count where x is not missing")
            return asked.CountMeasure()
        self._need("(", f"`(` and a column, as in {name}(age)")
        column = self._column()
        measure = self._rest(name, column)
        self._need(")", "`)`")
        return measure

    def _rest(self, name: str, column: str) -> Measure:
        if name == "covariance":
            self._need(",", "`,` and a second column")
            return asked.CovarianceMeasure(column, self._column())
        if name == "quantile":
            self._need(",", "`,` and a share, as in quantile(age, 0.25)")
            return asked.QuantileMeasure(column, self._number("a share between 0 and 1"))
        if name == "top":
            self._need(",", "`,` and how many, as in top(ward, 3)")
            return asked.TopKMeasure(column, self._whole("how many"))
        if name == "histogram" and self._take(","):
            return asked.HistogramMeasure(column, self._whole("how many cells"))
        return _SIMPLE[name](column)

    def _any(self) -> Condition:
        return self._joined(AnyOf, self._all)

    def _all(self) -> Condition:
        return self._joined(All, self._one)

    def _joined(self, kind: type[All | AnyOf], read: Callable[[], Condition]) -> Condition:
        parts = [read()]
        while self._keyword(kind.word):
            parts.append(read())
        return parts[0] if len(parts) == 1 else kind(tuple(parts))

    def _listed(self, read: Callable[[], T]) -> tuple[T, ...]:
        """One or more, with commas between them."""
        items = [read()]
        while self._take(","):
            items.append(read())
        return tuple(items)

    def _one(self) -> Condition:
        nested, inside = 0, self.place
        while self._keyword("not"):
            nested += 1
        if self._take("("):
            condition = self._any()
            self._need(")", "`)`")
        else:
            condition = self._comparison()
        if nested > 1:
            raise error_at(self.text, self.words[inside], "not, more than once", "one is enough, or none")
        return Not(condition) if nested else condition

    def _comparison(self) -> Condition:
        start, column = self.place, self._column()
        condition, negated = self._compared(column)
        self.parts.append((condition, start, self.place))
        return Not(condition) if negated else condition

    def _compared(self, column: str) -> tuple[Condition, bool]:
        """What follows a column, and whether it is denied."""
        if self._keyword("is"):
            negated = self._keyword("not")
            if not self._keyword("missing"):
                raise self._expected("missing, as in: is not missing")
            return IsMissing(column), negated
        negated = self._keyword("not")
        if self._keyword("in"):
            self._need("(", "`(` and values, as in: in (1, 2)")
            values = self._listed(self._value)
            self._need(")", "`,` or `)`")
            return OneOf(column, values), negated
        op = _OPS.get(self.now.text) if self.now.kind is TokenKind.SIGN and not negated else None
        if op is None:
            raise self._expected("in" if negated else "=, !=, <, <=, >, >=, in or is")
        self.place += 1
        return CellComparison(column, op, self._value()), False

    def _column(self) -> str:
        return self._text("the name of a column", TokenKind.NAME, TokenKind.TEXT)

    def _value(self) -> str:
        # As it was written: whether it is a number or the name of a category is the column's business.
        return self._text("a number or a text", TokenKind.NAME, TokenKind.TEXT, TokenKind.NUMBER)

    def _number(self, what: str) -> float:
        return float(self._text(what, TokenKind.NUMBER))

    def _text(self, what: str, *kinds: TokenKind) -> str:
        if self.now.kind not in kinds or self._lower() in KEYWORDS:
            raise self._expected(what)
        self.place += 1
        return self.before.text

    def _whole(self, what: str) -> int:
        number = self._number(what)
        if number != int(number) or number < 1:
            raise error_at(self.text, self.before, "this is no whole number above 0", f"say {what}, such as 5")
        return int(number)

    def _lower(self) -> str:
        return self.now.text.lower() if self.now.kind is TokenKind.NAME else ""

    def _keyword(self, word: str) -> bool:
        if self._lower() != word:
            return False
        self.place += 1
        return True

    def _take(self, sign: str) -> bool:
        if self.now.kind is not TokenKind.SIGN or self.now.text != sign:
            return False
        self.place += 1
        return True

    def _need(self, sign: str, what: str) -> None:
        if not self._take(sign):
            raise self._expected(what)

    def _expected(self, what: str) -> MalformedQuestion:
        problem = "the question ends here" if self.now.kind is TokenKind.END else "this is not what should stand here"
        return error_at(self.text, self.now, problem, f"expected {what}")
