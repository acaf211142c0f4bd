"""A schema learned from private rows, within a stated budget, for data that nobody has described.

Which columns there are is public: the header says so. Everything else is asked of the rows through mechanisms: how many
rows there are, whether a column holds numbers, how large these are, and which values and classes enough rows have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

from privet import accounting
from privet.core import Composed, InvalidInput, Release, Unit, Whose, checked
from privet.core.random import Rng
from privet.data.identifiers import names_a_person
from privet.data.noisy_counts import NoisyCounts, column_of
from privet.data.schema import Schema
from privet.data.schema_questions import ColumnKind, Questions
from privet.data.source import Source
from privet.mechanisms import SOURCE, DiscreteGaussianMechanism, Keys, ThresholdedCounts

__all__ = ["Learning", "learn", "learning"]

_EMPTY_PASSES = 1e-3
"""The chance that noise alone passes for a size that some number has, in one column."""


@dataclass(frozen=True)
class Learning:
    """A plan to learn a schema: its event is known before any row is read, so that a ledger can be charged first."""

    questions: Questions
    target: str | None
    epsilon: float
    delta: float
    separator: str
    noise_multiplier: float = field(init=False)
    """Noise on every count, in multiples of how far one unit moves it: the least that costs (ε, δ) in all."""

    def __post_init__(self) -> None:
        checked.positive("epsilon", self.epsilon)
        if self.questions.valued and checked.share("delta", self.delta) == 0:
            raise InvalidInput("delta", "is 0, and values that one row alone has cannot be hidden for sure", "use 1e-6")
        checked.positive("delta", checked.share("delta", self.delta))
        least = accounting.least(self._event, epsilon=self.epsilon, delta=self.delta, unit=self.unit)
        object.__setattr__(self, "noise_multiplier", least)

    @property
    def unit(self) -> Unit:
        """Whose data is protected: one row, or one user."""
        return self.questions.unit

    @property
    def event(self) -> Composed:
        """The event of all mechanisms together."""
        return self._event(self.noise_multiplier)

    def _event(self, noise_multiplier: float) -> Composed:
        return Composed(tuple(mechanism.event for mechanism in self._mechanisms(noise_multiplier)))

    def _mechanisms(self, noise_multiplier: float) -> list[DiscreteGaussianMechanism | ThresholdedCounts]:
        """One for each answer: noise on the rows and on the sizes, and values with noisy counts over a threshold."""

        def noise(of: Any) -> DiscreteGaussianMechanism:
            return DiscreteGaussianMechanism(noise_multiplier * float(of.reach.l2), of)

        asked, found = self.questions, [noise(self.questions.count)]
        every: list[DiscreteGaussianMechanism | ThresholdedCounts] = [*found, *[noise(asked.sizes)] * len(asked.sized)]
        if asked.valued:
            # Half of δ for the thresholds of all columns; the accountant finds the noise for what they leave.
            share = self.delta / 2 / len(asked.valued)
            keys = noise(asked.values)
            shown = ThresholdedCounts(keys, _threshold(keys, asked.values, share), asked.values)
            every += [shown] * len(asked.valued)
        return every

    def release(self, source: Source, *, rng: Rng, name: str = SOURCE) -> Release[Schema]:
        """Release a schema from one pass over the rows.

        Args:
            source: The file. Its header must be the one that the plan was made for.
            rng: The randomness of the noise.
            name: The name of the data, for the ledger.

        Returns:
            The schema, with its guarantee.

        Guarantee: (ε, δ) for `unit`, neighbors add or remove: all of its rows, `most_rows_per_user` at most, where
        users are protected; the event is the composition of one discrete Gaussian (Canonne, Kamath & Steinke 2020) for
        each count and one threshold (Wilson et al. 2020, Thm 2) for each column of values, and the schema is made of
        what these released and of the header. Assumes that header, names, kinds and separators are public. A record
        is a line, always: no row raises, changes another or changes what is asked; without rows the answers are noise.

        Raises:
            InvalidInput: The source is read with line ends in cells, or the file is damaged.
        """
        _require_lines(source)
        answers = self.questions.asked(source)
        drawn: Release[tuple[Any, ...]] | None = None
        for mechanism, answer in zip(self._mechanisms(self.noise_multiplier), answers, strict=True):
            one: Release[Any] = mechanism.release(answer, rng=rng, source=name)
            drawn = one.map(lambda value: (value,)) if drawn is None else Release.join(drawn, one).map(_flat)
        if drawn is None:  # the rows are always asked for
            raise InvalidInput("questions", "are none")
        guarantee = accounting.epsilon(self.event, self.delta, unit=self.unit)
        return replace(drawn.map(self._schema), guarantee=guarantee)

    def _schema(self, values: tuple[Any, ...]) -> Schema:
        asked = self.questions
        sizes = dict(zip(asked.sized, values[1 : 1 + len(asked.sized)], strict=True))
        kept = dict(zip(asked.valued, values[1 + len(asked.sized) :], strict=True))
        noise = DiscreteGaussianMechanism(self.noise_multiplier * float(asked.sizes.reach.l2 or 1.0), asked.sizes)
        reached = noise.interval(1 - 2 * _EMPTY_PASSES / asked.sizes.reach.dimension)
        found = NoisyCounts(max(int(values[0]), 1), sizes, kept, reached)
        columns = tuple(column_of(name, kind, name == self.target, found) for name, kind in asked.kinds)
        limit = asked.rows if asked.user is not None else None
        return Schema(columns, self.target, found.rows, asked.user, limit, asked.missing, self.separator)


def learning(
    source: Source,
    target: str | None,
    *,
    epsilon: float,
    delta: float,
    kinds: Mapping[str, ColumnKind] | None = None,
    user: str | None = None,
    most_rows_per_user: int | None = None,
    missing: Sequence[str] = ("", "?", "NA"),
) -> Learning:
    """Return a plan to learn a schema; only the header of the file is read.

    Columns whose names look like identifiers are excluded, unless `kinds` says otherwise. The kind of a column that
    `kinds` leaves open is decided by a noisy vote of the rows, which increases the noise of all answers.

    Args:
        source: The file.
        target: The column to predict; None if there is none.
        epsilon: The ε of the whole schema.
        delta: The δ of the whole schema.
        kinds: The kinds of columns that are publicly known, by column name.
        user: The column that says whose a row is; with it, users are protected instead of rows.
        most_rows_per_user: How many rows of one user are read at most; required with `user`.
        missing: Cells that count as missing.

    Raises:
        InvalidInput: A named column is not in the file, the source is read with line ends in cells, only one of `user`
            and `most_rows_per_user` is given, the target is an identifier, no column is left to learn from, or ε or δ
            is out of range.
    """
    known = dict(kinds or {})
    public = [*known, *(name for name in (target, user) if name is not None)]
    source.require(public, "named by you")
    _require_lines(source)
    if (user is None) != (most_rows_per_user is None):
        raise InvalidInput("most_rows_per_user", "goes with user", "give both, or neither")
    if target is not None and (target == user or known.get(target) is ColumnKind.IDENTIFIER):
        raise InvalidInput("target", f"is {target!r}, an identifier", "predict a number or a category")
    listed = []
    for name in source.header:
        guess = ColumnKind.IDENTIFIER if names_a_person(name) and name != target else ColumnKind.UNKNOWN
        listed.append((name, ColumnKind.IDENTIFIER if name == user else known.get(name, guess)))
    if not any(kind is not ColumnKind.IDENTIFIER and name != target for name, kind in listed):
        problem = f"{source.path.name!r} has no column to learn from"
        raise InvalidInput("file", problem, "say by kinds which columns are numbers or categories")
    unit = Unit() if user is None else Unit(whose=Whose.USER)
    words = tuple(word.strip() for word in missing)
    questions = Questions(tuple(listed), unit, most_rows_per_user or 1, user, words)
    return Learning(questions, target, epsilon, delta, "," if source.csv is None else source.csv.separator)


def learn(
    path: str | PathLike[str],
    target: str | None,
    *,
    epsilon: float,
    delta: float,
    rng: Rng,
    kinds: Mapping[str, ColumnKind] | None = None,
    user: str | None = None,
    most_rows_per_user: int | None = None,
    missing: Sequence[str] = ("", "?", "NA"),
    separator: str | None = None,
    name: str = SOURCE,
) -> Release[Schema]:
    """Release a schema learned from private rows: `learning` and `Learning.release` in one call, without a ledger.

    Args:
        path: A CSV (also gzipped) or Parquet file.
        target: The column to predict; None if there is none.
        epsilon: The ε of the whole schema.
        delta: The δ of the whole schema.
        rng: The randomness of the noise.
        kinds: The kinds of columns that are publicly known, by column name.
        user: The column that says whose a row is; with it, users are protected instead of rows.
        most_rows_per_user: How many rows of one user are read at most; required with `user`.
        missing: Cells that count as missing.
        separator: What separates the cells of a CSV file; by default, the candidate that is most frequent in the
            header.
        name: The name of the data, for the ledger.

    Returns:
        The schema, with its guarantee.

    Guarantee: that of `Learning.release`.

    Raises:
        InvalidInput: The file cannot be read, or an argument is refused by `learning`.
        MissingExtra: Polars is not installed.
    """
    source = Source.of(path, separator)
    plan = learning(
        source,
        target,
        epsilon=epsilon,
        delta=delta,
        kinds=kinds,
        user=user,
        most_rows_per_user=most_rows_per_user,
        missing=missing,
    )
    return plan.release(source, rng=rng, name=name)


def _require_lines(source: Source) -> None:
    """No schema says yet that the file is well-formed."""
    if source.csv is not None and source.csv.lines_in_cells:
        problem = "is read with line ends in cells, by which one record can change others"
        raise InvalidInput("source", problem, "use Source.of(path), or state a schema with lines_in_cells = true")


def _flat(pair: tuple[tuple[Any, ...], Any]) -> tuple[Any, ...]:
    return (*pair[0], pair[1])


def _threshold(noise: DiscreteGaussianMechanism, keys: Keys, delta: float) -> int:
    """The least threshold that shows a lonely value with a chance of at most δ."""
    low, high = 1, 2
    while ThresholdedCounts(noise, high, keys).delta > delta:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if ThresholdedCounts(noise, middle, keys).delta <= delta else (middle, high)
    return high
