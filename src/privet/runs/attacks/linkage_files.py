"""Two tables to be linked, as files: the columns that are asked for, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from privet.core import InvalidInput

if TYPE_CHECKING:
    import polars as pl

    from privet.attacks import Linkage
    from privet.data import Source
    from privet.report import Linked

__all__ = ["LinkageFiles", "columns_of", "files_of", "renamed", "told"]

_TYPED = {"known": "with", "person": "id", "run": "out"}
"""What an argument of the library is called here."""


class LinkageFiles:
    """Two tables in files, of which only the headers were read."""

    def __init__(self, published: Path, known: Path) -> None:
        self.published, self.known = _opened("published", published), _opened("with", known)
        self.silent: list[str] = []
        """What is to be said of rows that say nothing."""

    def common(self, but: Sequence[str | None]) -> tuple[str, ...]:
        """Columns that both have."""
        return tuple(name for name in self.published.header if name in self.known.header and name not in but)

    def tables(self, on: Sequence[str], sensitive: str | None, person: str | None) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The published columns and the known ones."""
        own = [name for name in (person,) if name is not None]
        secret = [name for name in (sensitive,) if name is not None]
        one = self._table("published", self.published, [*on, *own, *secret])
        return one, self._table("with", self.known, [*on, *own])

    def _table(self, argument: str, source: Source, names: Sequence[str]) -> pl.DataFrame:
        import polars as pl

        found = _read(argument, source, names)
        nothing = int(found.select(pl.all_horizontal(pl.all().is_null()).sum()).item())
        if nothing:
            told = f"{nothing:,} rows of {source.path.name!r} have none of the columns that were asked for"
            self.silent.append(f"{told}: blank, or lines with more or fewer cells than the header. They are left out.")
        return found

    def record(
        self, found: Linkage, *, scored: bool, confidence: float, inside: float | None, person: str | None
    ) -> Linked:
        """What was found, for the page, with the files that it is about."""
        from privet.report import Linked as Record

        paths = self.published.path, self.known.path
        return Record.of(
            found,
            *(path.name for path in paths),
            scored=scored,
            confidence=confidence,
            inside=inside,
            person=person,
            files=files_of(*paths),
        )


def columns_of(text: str | None, between: LinkageFiles, but: Sequence[str | None]) -> tuple[str, ...]:
    """The columns to link by, with commas; where none are given, the refusal says which could be."""
    names = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    typed = dict(zip(but, ("--sensitive", "--id"), strict=True))
    for name in names:
        if name in typed:
            raise InvalidInput("on", f"names {name!r}, which is also {typed[name]}", "it can be one of them alone")
    if names:
        return names
    common = between.common(but)
    if not common:
        raise InvalidInput(
            "on", "is missing, and the two tables have no column in common", "call the same things alike"
        )
    raise InvalidInput("on", "is missing", f"both tables have: {','.join(common)}; name those that say who it is")


def files_of(*paths: Path) -> str:
    """A digest of where files are: it tells those of one name apart, and does not say where they are."""
    return sha256("\0".join(str(path.resolve()) for path in paths).encode()).hexdigest()[:16]


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
    said = [
        f"{name!r} was not scored: it follows from another column, and would count for the same twice."
        for name in found.left_out
    ]
    for name, count in zip(found.on, found.unmet, strict=True):
        if count:
            said.append(
                f"Column {name!r}: {count:,} of {found.published:,} cells agree with nobody. If they are spelt "
                "otherwise, or say nothing (--missing), the risk is larger than it looks."
            )
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
    if not found.claimed and not (found.learned is not None and found.learned.people):
        said.append("Nobody was told from it by these columns. That proves nothing of other tables and columns.")
    return said


def _opened(argument: str, path: Path) -> Source:
    from privet.data import Source

    if not path.is_file():
        what = "a folder" if path.is_dir() else "no file"
        raise InvalidInput(argument, f"is {str(path)!r}, which is {what}", "name a CSV or Parquet file")
    try:
        found = Source.of(path)
    except InvalidInput as error:
        raise InvalidInput(argument, error.problem, error.advice) from None
    if found.csv is not None:
        _require_text(argument, path)
    return found


def _require_text(argument: str, path: Path) -> None:
    """Lines that are no text are left out where rows are private, as an error would tell of them; here nothing is."""
    from privet.data import opened

    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                problem = f"is {str(path)!r}, whose line {number:,} is not UTF-8 text"
                raise InvalidInput(argument, problem, "save it as UTF-8") from None


def _read(argument: str, source: Source, names: Sequence[str]) -> pl.DataFrame:
    import polars as pl

    try:
        source.require(names, "asked for")
        dates = _dates(source, names)
        others = [name for name in dict.fromkeys(names) if name not in dates]
        batches = list(source.batches(others)) if others else [dates]
    except InvalidInput as error:
        raise InvalidInput(argument, error.problem, error.advice) from None
    if not sum(map(len, batches)):
        raise InvalidInput(argument, f"is {str(source.path)!r}, which has no rows", "give a table with some")
    read = pl.concat(batches)
    return read.hstack(dates.get_columns()) if others else read


def _dates(source: Source, names: Sequence[str]) -> pl.DataFrame:
    """Columns of days and times of a Parquet file, which tables with a schema do not have."""
    import polars as pl

    if source.csv is not None:
        return pl.DataFrame()
    try:
        frame = pl.scan_parquet(source.path, glob=False)
        return frame.select(
            name for name, kind in frame.collect_schema().items() if name in names and kind.is_temporal()
        ).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        raise InvalidInput("file", f"{source.path.name!r} cannot be read", "is it whole?") from None
