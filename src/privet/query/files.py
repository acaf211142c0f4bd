"""The files around a query: the table, its schema, and the file of stored answers beside a ledger."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from privet.core import InvalidInput, MissingExtra
from privet.data import Schema, load_schema, require_vouched, schema_file_of
from privet.query.plan import QuestionLike, columns_read, parse_questions

__all__ = ["answers_file", "load_query_schema"]


def load_query_schema(
    data: Path, questions: Sequence[QuestionLike] | QuestionLike, schema: Path | None = None
) -> Schema:
    """Load the schema of a table, and check that somebody vouches for every column that the questions read.

    Args:
        data: The table. It must exist; no row is read.
        questions: The questions.
        schema: The schema's file; `clinic.schema.toml` beside `clinic.csv`, by default.

    Raises:
        InvalidInput: A file cannot be read, a question does not fit the schema, or nobody vouches for a column.
        MissingExtra: Polars, which reads tables, is not installed.
    """
    if find_spec("polars") is None:
        raise MissingExtra("polars", "data")
    if data.is_dir():
        raise InvalidInput("data", f"{str(data)!r} is a folder", "name a CSV or Parquet file in it")
    if not data.is_file():
        raise InvalidInput("data", f"{str(data)!r} cannot be read: no such file", "name a CSV or Parquet file")
    path = schema if schema is not None else schema_file_of(data)
    loaded = load_schema(path)
    require_vouched(loaded, path, columns_read(parse_questions(questions, loaded), loaded))
    return loaded


def answers_file(ledger: str, stored: Path | None = None) -> Path | None:
    """Return the file that answers are stored in.

    Args:
        ledger: The file or URL of the ledger.
        stored: The file, if it is given; beside the ledger's file, by default.

    Returns:
        The file; None for a ledger on a server, which has no file beside it.

    Raises:
        InvalidInput: It is the ledger's own file.

    >>> str(answers_file("clinic.db"))
    'clinic.db.answers'
    """
    path = ledger.removeprefix("sqlite:///")
    if stored is None:
        return None if "://" in path else Path(f"{path}.answers")
    if stored.resolve() == Path(path).resolve():
        raise InvalidInput("stored", f"is {str(stored)!r}, which is the ledger", "keep answers in a file of their own")
    return stored
