"""Two tables to be linked, as files: the columns that are asked for, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from privet.core.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl

    from privet.attacks.linkage import Linkage
    from privet.data.source import Source

__all__ = ["Linking", "columns_of", "renamed", "told"]

_TYPED = {"known": "with", "person": "id"}
"""What an argument of the library is called here."""


class Linking:
    """Two tables in files, of which only the headers were read."""

    def __init__(self, published: Path, known: Path) -> None:
        self.published, self.known = _opened("published", published), _opened("with", known)

    def common(self, but: Sequence[str | None]) -> tuple[str, ...]:
        """Columns that both have."""
        return tuple(name for name in self.published.header if name in self.known.header and name not in but)

    def tables(self, on: Sequence[str], sensitive: str | None, person: str | None) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The published columns and the known ones."""
        own = [name for name in (person,) if name is not None]
        secret = [name for name in (sensitive,) if name is not None]
        return _read("published", self.published, [*on, *own, *secret]), _read("with", self.known, [*on, *own])


def columns_of(text: str | None, between: Linking, but: Sequence[str | None]) -> tuple[str, ...]:
    """The columns to link by, with commas; where none are given, the refusal says which could be."""
    names = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    if names:
        return names
    common = between.common(but)
    if not common:
        raise InvalidInput(
            "on", "is missing, and the two tables have no column in common", "call the same things alike"
        )
    raise InvalidInput("on", "is missing", f"both tables have: {','.join(common)}; name those that say who it is")


@contextmanager
def renamed() -> Iterator[None]:
    """Errors name what was typed."""
    try:
        yield
    except InvalidInput as error:
        if error.argument not in _TYPED:
            raise
        raise InvalidInput(_TYPED[error.argument], error.problem, error.advice) from None


def told(found: Linkage) -> list[str]:
    """What follows from it, in sentences."""
    said = []
    if found.claimed:
        said.append(
            f"Of {found.claimed:,} of {found.people:,} people it is said which row is theirs; take columns away, "
            "coarsen them, or release answers with noise instead (privet query)."
        )
    if found.learned is not None and found.learned.unmatched:
        said.append(
            f"Of {found.learned.unmatched:,} people {found.learned.column!r} is known although no row is known to be "
            "theirs: groups of rows that are alike do not hide what all of them share."
        )
    return said or ["Nobody was told from it by these columns. That proves nothing of other tables and columns."]


def _opened(argument: str, path: Path) -> Source:
    from privet.data.source import Source

    if not path.is_file():
        what = "a folder" if path.is_dir() else "no file"
        raise InvalidInput(argument, f"is {str(path)!r}, which is {what}", "name a CSV or Parquet file")
    try:
        return Source.of(path)
    except InvalidInput as error:
        raise InvalidInput(argument, error.problem, error.advice) from None


def _read(argument: str, source: Source, names: Sequence[str]) -> pl.DataFrame:
    import polars as pl

    try:
        source.require(names, "asked for")
        batches = list(source.batches(list(dict.fromkeys(names))))
    except InvalidInput as error:
        raise InvalidInput(argument, error.problem, error.advice) from None
    if not sum(map(len, batches)):
        raise InvalidInput(argument, f"is {str(source.path)!r}, which has no rows", "give a table with some")
    return pl.concat(batches)
