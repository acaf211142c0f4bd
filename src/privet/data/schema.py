"""A public schema: what may be known about a table at no privacy cost, and nothing that came from its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum

from privet.core import InvalidInput, checked
from privet.data.bounds_source import BoundsSource, assumptions_of
from privet.data.columns import Category, Column, Identifier, Number, states_bounds
from privet.data.toml import format_schema, parse_schema

__all__ = ["SEPARATORS", "Schema", "Task"]

SEPARATORS = (",", ";", "\t", "|")
"""Separators of cells that a CSV file may use."""

_WELL_FORMED = "a CSV file without malformed records (one could change how others are read: lines_in_cells)"


class Task(Enum):
    """The kind of model that is learned from a table."""

    CLASSIFICATION = "classification"
    REGRESSION = "regression"


@dataclass(frozen=True)
class Schema:
    """The columns of a table, their bounds and values, and what each column is for; TOML both ways.

    >>> schema = Schema((Number("age", 17, 90), Category("smokes", ("no", "yes"))), target="smokes")
    >>> schema.task.value, schema.classes, [column.name for column in schema.features]
    ('classification', ('no', 'yes'), ['age'])
    >>> Schema.from_toml(schema.to_toml()) == schema
    True
    """

    columns: tuple[Column, ...]
    target: str | None = None
    rows: int | None = None
    """The approximate number of rows, if it is public or was released."""
    user: str | None = None
    """The identifier that says whose a row is."""
    most_rows_per_user: int | None = None
    """How many rows of one user are read at most: the first ones."""
    missing: tuple[str, ...] = ("", "?", "NA")
    """Cells that count as missing."""
    separator: str = ","
    lines_in_cells: bool = False
    """Whether line ends in quoted cells of a CSV file are text; else a record is a line, always. See `assumptions`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "missing", _checked_missing(self.missing))
        if not all(isinstance(column, (Number, Category, Identifier)) for column in self.columns):
            raise InvalidInput("columns", "are not all of Number, Category or Identifier")
        names = [column.name for column in self.columns]
        for name in names:
            if names.count(name) > 1:
                raise InvalidInput("columns", f"have {name!r} twice", "describe every column once")
        for column in self.columns:
            _clash(column, self.missing)
        if self.target is not None and isinstance(self._named("target", self.target), Identifier):
            raise InvalidInput("target", f"is {self.target!r}, an identifier", "predict a number or a category")
        if self.user is not None and not isinstance(self._named("user", self.user), Identifier):
            raise InvalidInput("user", f"is {self.user!r}, which is no identifier", "make its kind identifier")
        if not self.features:
            raise InvalidInput(
                "columns", "have none to learn from", "describe a number or a category beside the target"
            )
        if self.rows is not None:
            checked.count("rows", self.rows)
        if self.most_rows_per_user is not None:
            checked.count("most_rows_per_user", self.most_rows_per_user)
            if self.user is None:
                raise InvalidInput("most_rows_per_user", "is given without user", "name the column of the user's id")
        if self.separator not in SEPARATORS:
            raise InvalidInput("separator", f"is {self.separator!r}", "use a comma, semicolon, tab or bar")
        if not isinstance(self.lines_in_cells, bool):
            raise InvalidInput("lines_in_cells", "is neither true nor false", "use true or false, without quotes")

    def _named(self, argument: str, name: str) -> Column:
        found = self.find(name)
        if found is None:
            raise InvalidInput(argument, f"is {name!r}, which is not among the columns", "check the spelling")
        return found

    def find(self, name: str) -> Column | None:
        """Return the column with a given name, or None if there is none.

        Args:
            name: The name of the column.
        """
        return next((column for column in self.columns if column.name == name), None)

    def require_described(self, argument: str, header: Iterable[str], table: str) -> None:
        """Require that the schema describes every column of a table. A column that it lacks might identify people.

        Args:
            argument: The argument that the error names.
            header: The names of the table's columns, which are public.
            table: The subject and verb of the error message, such as "'clinic.csv' has".

        Raises:
            InvalidInput: The schema does not describe one of the columns.
        """
        for name in header:
            if self.find(name) is None:
                problem = f"{table} a column {name!r}, which the schema lacks"
                raise InvalidInput(argument, problem, 'describe it there, with kind = "identifier" to leave it out')

    def sources(self, names: Iterable[str] | None = None) -> tuple[tuple[str, BoundsSource | None], ...]:
        """Return the source of each column that has bounds or values.

        An identifier has neither, and a category whose list of values is empty states nothing about the rows.

        Args:
            names: The columns to look at; None for all columns.

        Returns:
            Pairs of a column's name and its source, which is None where the schema states none.
        """
        wanted = None if names is None else set(names)
        return tuple(
            (column.name, BoundsSource.of(column.source))
            for column in self.columns
            if (wanted is None or column.name in wanted) and states_bounds(column)
        )

    def require_sources(self, names: Iterable[str] | None = None, *, file: str = "FILE") -> None:
        """Refuse columns whose bounds or values have no source: a draft reads them from the private rows.

        Args:
            names: The columns that are used; all of them by default.
            file: The schema's file, for the advice.

        Raises:
            InvalidInput: A column has no source; it is named.

        >>> Schema((Number("age", 17, 90, source="codebook"),)).require_sources()
        """
        unknown = [repr(name) for name, source in self.sources(names) if source is None]
        if unknown:
            problem = f"has no source for the bounds or values of {', '.join(unknown)}"
            example = f'source = {{ kind = "codebook", by = "your name", on = {datetime.now(UTC).date()} }}'
            advice = f"run: privet schema confirm {file} (it adds to each column a line such as: {example})"
            raise InvalidInput("schema", problem, advice)

    def without_sources(self) -> Schema:
        """Return what decides how rows are read, and nothing else: equal for schemas that read every row alike."""
        return self.with_sources({column.name: None for column in self.columns})

    def with_sources(self, sources: Mapping[str, BoundsSource | None]) -> Schema:
        """Return the schema with other sources for the named columns; identifiers have none.

        Args:
            sources: The source of each named column, or None for no source.
        """
        return replace(
            self,
            columns=tuple(
                replace(column, source=sources[column.name])
                if column.name in sources and not isinstance(column, Identifier)
                else column
                for column in self.columns
            ),
        )

    @property
    def features(self) -> tuple[Number | Category, ...]:
        """The columns that a model sees, in the order of `Table.x`."""
        return tuple(
            column for column in self.columns if not isinstance(column, Identifier) and column.name != self.target
        )

    @property
    def label(self) -> Number | Category | None:
        """The column of the target."""
        found = None if self.target is None else self.find(self.target)
        return None if isinstance(found, Identifier) else found

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What guarantees for the rows rest on beside the mechanism: that the bounds and values are not the rows' own,
        and that one row of the file cannot change how another is read.

        >>> Schema((Number("age", 17, 90, source="codebook"),)).assumptions
        ("the bounds or values of 'age' come from a codebook and not from the private rows \
(as stated; nobody is named)",)
        """
        return self.assumptions_for(None)

    def assumptions_for(self, names: Iterable[str] | None) -> tuple[str, ...]:
        """Return the assumptions of a computation that reads only the named columns.

        Args:
            names: The columns that are read; None for all columns.
        """
        return (*assumptions_of(self.sources(names)), *((_WELL_FORMED,) if self.lines_in_cells else ()))

    @property
    def task(self) -> Task:
        """Classification if the target is a category, regression if it is a number."""
        if self.label is None:
            raise InvalidInput("target", "is missing from the schema", "say which column is to be predicted")
        return Task.CLASSIFICATION if isinstance(self.label, Category) else Task.REGRESSION

    @property
    def classes(self) -> tuple[str, ...]:
        """The values of a target that is a category; none for a number."""
        return self.label.values if isinstance(self.label, Category) else ()

    def to_toml(self, comment: str = "") -> str:
        """Return the schema as TOML, which people can read and edit.

        Args:
            comment: Text that is written at the top as a comment.
        """
        return format_schema(self, comment)

    @staticmethod
    def from_toml(text: str) -> Schema:
        """Parse a schema from TOML.

        Args:
            text: The TOML text, as `to_toml` writes it.

        Raises:
            InvalidInput: The text is not a schema; the message names the line where that is known.
        """
        return parse_schema(text, Schema)


def _checked_missing(words: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise InvalidInput("missing", "is not a list of texts", 'write it as a list: ["?", ""]')
    return tuple(word.strip() for word in words)


def _clash(column: Column, missing: tuple[str, ...]) -> None:
    if isinstance(column, Category) and (both := sorted(set(column.values) & set(missing))):
        problem = f"of {column.name!r} have {both[0]!r}, which also counts as missing"
        raise InvalidInput("values", problem, "take it out of one of the two lists")
