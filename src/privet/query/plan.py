"""A plan: questions that share a budget. Its event is known before any row is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from privet import accounting
from privet.accounting import price
from privet.core import Composed, Guarantee, InvalidInput, Release, Unit, checked
from privet.core.random import Rng
from privet.data import Schema
from privet.mechanisms import SOURCE
from privet.query.answer_builder import answer_of
from privet.query.answers import Answer
from privet.query.consistency import agreed
from privet.query.methods import BudgetShare, NoiseKind, QuestionMethod, ReleasedValues
from privet.query.parser import parse
from privet.query.question_spec import QuestionSpec
from privet.query.questions import CountMeasure, HistogramMeasure, Question
from privet.query.schema_check import require_answerable
from privet.query.table_source import Data, TableSource
from privet.query.tally import Totals, tally_rows

__all__ = ["QueryPlan", "QuestionLike", "columns_read", "join_all", "parse_questions", "plan", "require_enough"]

T = TypeVar("T")
QuestionLike: TypeAlias = str | Question
"""A question as a text of the query language, or as a record."""
_BELOW = 1 - 2.0**-40
"""So that parts of ε which are rounded up one by one still add up to less than ε."""
_NO_NOISE = 1e-9
"""With an ε of thousands, noise is so small that its mean error is 0 in floating point."""
_LEAST_EPSILON, _LEAST_DELTA = 1e-6, 1e-300
"""Of one question, and of all. For less ε the noise is larger than can be drawn or counted, and hides everything."""
_MOST, _CLOSE = 8.0, 1.002
"""How much more than the simplest proof allows is looked for, where a δ lets parts compose better; and how closely."""


@dataclass(frozen=True)
class QueryPlan:
    """Questions, a schema and a budget; `plan` makes it. Nothing in it depends on a row.

    Each question gets its weight's part of the budget. Without δ all noise is Laplace noise and the ε of all parts add
    up to the ε of the plan. With δ, Gaussian noise is taken where that makes the errors smaller, and the accountant
    finds the least noise for (ε, δ) together.
    """

    questions: tuple[Question, ...]
    schema: Schema
    epsilon: float
    delta: float
    noise: NoiseKind
    amount: float
    """The ε, or the ρ, that the parts add up to."""
    confidence: float = 0.95

    def __post_init__(self) -> None:
        self.schema.require_sources(self.columns)
        if self.guarantee.epsilon.upper > self.epsilon:  # what was declared is what is done, or nothing is
            problem = f"is {self.epsilon}, and the parts cost {self.guarantee.epsilon.upper}"
            raise InvalidInput("epsilon", problem, "make the plan with privet.query.plan")

    @cached_property
    def methods(self) -> tuple[QuestionMethod, ...]:
        """Each question with its part of the budget."""
        return _methods(
            [QuestionSpec(question, self.schema) for question in self.questions], self.noise, self.amount, self.delta
        )

    @property
    def unit(self) -> Unit:
        """Whose data is protected: one row, or one user of the schema."""
        return self.methods[0].spec.unit

    @cached_property
    def event(self) -> Composed:
        """Everything that will be done: charge it first."""
        return _composed(self.methods)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What that costs."""
        guarantee = accounting.epsilon(self.event, self.delta, unit=self.unit)
        return replace(guarantee, assumptions=(*guarantee.assumptions, *self.schema.assumptions_for(self.columns)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read, the user's among them."""
        return columns_read(self.questions, self.schema)

    def open(self, data: Data) -> TableSource:
        """Open a table, of which only the header is read.

        Args:
            data: The table: a file, or a frame.

        Raises:
            InvalidInput: The table cannot be read, or lacks a column.
        """
        return TableSource.of(data, self.schema, self.columns)

    def tally(self, table: TableSource) -> list[Totals]:
        """Return the sums of every question, in one pass over the rows; they are private, and nothing is drawn.

        Args:
            table: The table, from `open`.

        Raises:
            InvalidInput: The table is damaged.
        """
        return tally_rows([method.spec for method in self.methods], table)

    def draw(self, totals: Sequence[Totals], *, rng: Rng, name: str = SOURCE) -> Release[tuple[Answer, ...]]:
        """Return the answers, from sums that `tally` made.

        Args:
            totals: The sums, from `tally`.
            rng: The randomness of the noise.
            name: The name of the data, for the ledger.

        Guarantee: (ε, δ) of the plan for its unit, add/remove: one row, or all rows of one user. The event is what is
        done. Assumes that the schema, the header and the types of columns are public. No row raises, and none changes
        how many answers there are (but for private groups, which are paid for) or what is drawn.
        """
        pairs = zip(self.methods, totals, strict=True)
        values = join_all([method.release(total, rng=rng, source=name) for method, total in pairs])
        return replace(values.map(self._answers), guarantee=self.guarantee)

    def answer(self, data: Data, *, rng: Rng, name: str = SOURCE) -> Release[tuple[Answer, ...]]:
        """Answer in one call (`open`, `tally`, `draw`), without a ledger, or after it was charged.

        Args:
            data: The table: a file, or a frame.
            rng: The randomness of the noise.
            name: The name of the data, for the ledger.

        Raises:
            InvalidInput: The table cannot be read, or lacks a column.

        Guarantee: that of `draw`.
        """
        return self.draw(self.tally(self.open(data)), rng=rng, name=name)

    def _answers(self, drawn: tuple[ReleasedValues, ...]) -> tuple[Answer, ...]:
        counts = self._agreed(drawn)
        pairs = zip(self.methods, drawn, counts, strict=True)
        return tuple(answer_of(method, values, mine, self.confidence) for method, values, mine in pairs)

    def _agreed(self, drawn: Sequence[ReleasedValues]) -> list[list[float] | None]:
        """The counts of questions about the same rows, made to agree."""
        counts: list[list[float] | None] = [None] * len(drawn)
        same: dict[str, list[int]] = {}
        for index, method in enumerate(self.methods):
            spec = method.spec
            if isinstance(spec.question.measure, (CountMeasure, HistogramMeasure)) and not spec.private:
                same.setdefault(str(spec.question.where), []).append(index)
        for indices in same.values():
            if len(indices) == 1 and len(drawn[indices[0]].values) == 1:
                continue  # one number agrees with itself
            lists: list[npt.NDArray[np.float64]] = [drawn[index].values[:, 0] for index in indices]
            errors = [self.methods[index].additive.expected_error for index in indices]
            for index, values in zip(
                indices, agreed(lists, [max(error, _NO_NOISE) ** 2 for error in errors]), strict=True
            ):
                counts[index] = values.tolist()
        return counts


def plan(
    questions: Sequence[QuestionLike] | QuestionLike,
    schema: Schema,
    *,
    epsilon: float,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> QueryPlan:
    """Return the plan for some questions within (ε, δ). Reads no row and charges nothing.

    A question that is there more than once is one question, with all its weights.

    Args:
        questions: The questions, as texts or records.
        schema: What is public about the table.
        epsilon: The ε of all answers together.
        delta: The δ of all answers together.
        confidence: The confidence of each interval.

    Raises:
        InvalidInput: A question is malformed, or ε or δ is out of range.

    >>> from privet.data import Category, Number
    >>> age = Number("age", 0, 100, source="domain limit")
    >>> clinic = Schema((age, Category("ward", ("north", "south"), source="codebook")))
    >>> made = plan(["count", "mean(age) by ward"], clinic, epsilon=0.5)
    >>> round(made.guarantee.epsilon.upper, 3)
    0.5
    """
    checked.positive("epsilon", epsilon)
    checked.share("delta", delta)
    checked.confidence("confidence", confidence)
    if 0 < delta < _LEAST_DELTA:
        raise InvalidInput("delta", f"is {delta}, which is too small to count with", "give one such as 1e-9, or 0")
    read = parse_questions(questions, schema)
    require_enough(read, epsilon)
    specs = [QuestionSpec(question, schema) for question in read]
    private = next((spec for spec in specs if spec.private), None)
    if private is not None and delta == 0:
        problem = f"is 0, and the schema has no values for the groups of {str(private.question)!r}: they must be found"
        raise InvalidInput("delta", problem, "give one such as 1e-6, or list the values in the schema")
    noise, amount = (NoiseKind.LAPLACE, epsilon * _BELOW) if delta == 0 else _best(specs, epsilon, delta)
    return QueryPlan(read, schema, epsilon, delta, noise, amount, confidence)


def parse_questions(questions: Sequence[QuestionLike] | QuestionLike, schema: Schema) -> tuple[Question, ...]:
    """Return the questions as records, each once: a question that is repeated adds its weight to the first.

    Args:
        questions: The questions, as texts or records.
        schema: What is public about the table.

    Raises:
        InvalidInput: There is no question, or one is malformed.

    >>> from privet.data import Number
    >>> people = Schema((Number("age", 0, 100),))
    >>> [(str(each), each.weight) for each in parse_questions(["count", "count ( * ) weight 2"], people)]
    [('count', 3.0)]
    """
    listed = [questions] if isinstance(questions, (str, Question)) else list(questions)
    if not listed:
        raise InvalidInput("questions", "are none", "ask something, such as: count")
    distinct: dict[str, Question] = {}
    for item in listed:
        question = item if isinstance(item, Question) else parse(item, schema)
        require_answerable(question, schema)
        first = distinct.get(str(question))
        distinct[str(question)] = question if first is None else replace(first, weight=first.weight + question.weight)
    return tuple(distinct.values())


def require_enough(questions: Sequence[Question], epsilon: float) -> None:
    """Refuse an ε, or a weight, that leaves a question next to nothing.

    Args:
        questions: The questions, as texts or records.
        epsilon: The ε of all answers together.

    Raises:
        InvalidInput: The ε of a question is too small.
    """
    whole = sum(question.weight for question in questions)
    for question in questions:
        part = epsilon * (question.weight / whole)
        if epsilon < _LEAST_EPSILON:
            problem = f"is {epsilon}, for which noise would be larger than can be drawn"
            raise InvalidInput("epsilon", problem, f"give {_LEAST_EPSILON:g} or more")
        if part < _LEAST_EPSILON:
            problem = f"is {question.weight:g} for {str(question)!r}, which leaves it ε = {part:.2g} of {epsilon:g}"
            raise InvalidInput("weight", problem, f"give it more, so that ε is {_LEAST_EPSILON:g} at least")


def columns_read(questions: Sequence[Question], schema: Schema) -> tuple[str, ...]:
    """Return every column that these questions read, the user's among them.

    Args:
        questions: The questions, as texts or records.
        schema: What is public about the table.
    """
    user = () if schema.user is None else (schema.user,)
    return tuple(dict.fromkeys((*(name for question in questions for name in question.columns), *user)))


def _methods(
    specs: Sequence[QuestionSpec], noise: NoiseKind, amount: float, delta: float
) -> tuple[QuestionMethod, ...]:
    """The questions, each with its weight's part of the amount; half of δ is for private groups, if there are any."""
    whole = sum(spec.question.weight for spec in specs)
    for_groups = delta / 2 / max(sum(spec.private for spec in specs), 1)
    return tuple(
        QuestionMethod(
            spec,
            BudgetShare(noise, amount * (spec.question.weight / whole), for_groups if spec.private else 0.0),
        )
        for spec in specs
    )


def _composed(methods: Sequence[QuestionMethod]) -> Composed:
    return Composed(tuple(event for method in methods for event in method.events))


def _rho(epsilon: float, delta: float) -> float:
    """The ρ whose ρ + 2√(ρ ln 1/δ) is ε (Bun & Steinke 2016, Prop. 1.3)."""
    tail = math.log(1 / delta)
    # ε/(√(t + ε) + √t) is √(t + ε) - √t without the loss of digits that a small ε would bring.
    return (epsilon / (math.sqrt(tail + epsilon) + math.sqrt(tail))) ** 2 * _BELOW


def _best(specs: Sequence[QuestionSpec], epsilon: float, delta: float) -> tuple[NoiseKind, float]:
    """The kind of noise that makes the smaller errors, and as much of the amount as the accountant allows."""

    def fits(noise: NoiseKind, amount: float) -> bool:
        # By closed forms: loss distributions of many parts take seconds, and save little.
        return price.quick(_composed(_methods(specs, noise, amount, delta)), delta, unit=specs[0].unit) <= epsilon

    def largest(noise: NoiseKind) -> float:
        """From an amount that is proven to fit, by halves; so an amount is only ever too small by a thousandth."""
        low = epsilon * _BELOW if noise is NoiseKind.LAPLACE else _rho(epsilon, delta / 2)
        high = low * _MOST
        while high / low > _CLOSE:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if fits(noise, middle) else (low, middle)
        return low

    def error(noise: NoiseKind) -> float:
        methods = _methods(specs, noise, amounts[noise], delta)
        return sum(math.log(max(method.deviation, _NO_NOISE)) * method.spec.question.weight for method in methods)

    amounts = {noise: largest(noise) for noise in NoiseKind}
    best = min(NoiseKind, key=error)
    return best, amounts[best]


def join_all(releases: Sequence[Release[T]]) -> Release[tuple[T, ...]]:
    """Return one release of all values.

    Guarantee: that of the releases together; joining them is post-processing.
    """
    every: Release[tuple[T, ...]] = releases[0].map(lambda value: (value,))
    for one in releases[1:]:
        every = Release.join(every, one).map(lambda pair: (*pair[0], pair[1]))
    return every
