"""Linkage: identify the rows of a table without names by columns that another table has next to the names.

Removing the names does not make a table anonymous: postcode, birth date and sex identify most people (Sweeney
2000). Whoever has a table with names and these columns looks for the rows that agree. If only one row does, it is
that person's; if several do and all have the same diagnosis, the diagnosis is known without knowing the row
(homogeneity: Machanavajjhala et al. 2007), which is why k-anonymity alone does not protect sensitive values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from privet.attacks.linkage_scoring import LinkageScoring, best_rows, determined_columns
from privet.attacks.outcome import ConfidenceInterval
from privet.attacks.row_matching import (
    MISSING,
    Codes,
    MatchedColumn,
    RowGroups,
    TableLike,
    Truths,
    column_texts,
    encode,
    match_column,
    matching_groups,
    spelled_alike,
)
from privet.core import InvalidInput, checked

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Linkage", "LinkedAttribute", "link"]


@dataclass(frozen=True)
class LinkedAttribute:
    """Inferences about a sensitive column: people whose candidates all have the same value."""

    column: str
    people: int
    """Number of people whose value is inferred."""
    unmatched: int
    """Number of them with several candidates: none of the rows is known to be theirs."""
    commonest: float
    """Share of published rows with the most common value: the accuracy of guessing that value."""
    right: ConfidenceInterval | None = None
    """Share of correct inferences among those of them who are in both tables; None where nobody is known to be."""
    tried: int | None = None
    """Number of them who are in both tables, where that is known."""


@dataclass(frozen=True, eq=False)
class Linkage:
    """People who were linked to rows of a published table. It describes real people: it must not be shared."""

    on: tuple[str, ...]
    published: int
    people: int
    """Number of people in the table with names."""
    unique: int
    """Number of published rows that are unique in these columns."""
    smallest: int
    """Size of the smallest group of published rows that are equal in these columns: the k of k-anonymity."""
    candidates: Codes = field(repr=False)
    """[people]: number of published rows that may be theirs."""
    claims: Codes = field(repr=False)
    """[people]: the row that is claimed to be this person's; −1 where none is."""
    learned: LinkedAttribute | None = None
    present: int | None = None
    """Number of people in both tables, where that is known."""
    right: ConfidenceInterval | None = None
    """Precision: the share of claims that are correct; None where it is not known, or nothing was claimed."""
    found: ConfidenceInterval | None = None
    """Recall: the share of the people in both tables who were claimed correctly."""
    guess: float | None = None
    """The precision if each claim were a random published row."""
    unmet: tuple[int, ...] = ()
    """For each column, the number of published cells that agree with nobody in the other table. Either these people are
    not in it, or cells are written in ways that are not recognized, so that the risk is understated.
    """
    left_out: tuple[str, ...] = ()
    """Columns that were not scored, as they are determined by others."""

    @property
    def single(self) -> int:
        """Number of people with exactly one candidate."""
        return int(np.count_nonzero(self.candidates == 1))

    @property
    def absent(self) -> int:
        """Number of people without any candidate."""
        return int(np.count_nonzero(self.candidates == 0))

    @property
    def claimed(self) -> int:
        """Number of people for whom a row is claimed."""
        return int(np.count_nonzero(self.claims >= 0))


def link(
    published: TableLike,
    known: TableLike,
    on: Sequence[str],
    *,
    sensitive: str | None = None,
    person: str | None = None,
    scoring: LinkageScoring | None = None,
    missing: Sequence[str] = MISSING,
    confidence: float = 0.95,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Linkage:
    """Link the people of one table to the rows of another, by the columns `on`.

    A published row is a candidate for a person if it agrees in every column, and no other row that agrees has fewer
    missing cells. Cells agree if they are equal, as texts or as numbers, or missing on either side, or if a generalized
    one (130**, 30-39, [30, 40), 65+) on either side covers or overlaps the other.

    Without `scoring`, a row is claimed for a person if it is the only candidate and is nobody else's candidate. With
    it, the row that fits best is claimed if it stands out, even if some cells differ.

    Intervals are those of Clopper & Pearson (1934), as if people were independent trials.

    Args:
        published: The table without names.
        known: The table with names, or whatever identifies people.
        on: The names of columns that both tables have.
        sensitive: A column of `published` whose values an attacker wants to learn.
        person: A column of both tables that identifies people, unique in each. It is used to check the claims, for data
            owners who try the attack on their own data.
        scoring: How to score rows that do not agree in every column.
        missing: Cells that count as missing, regardless of case; so do empty cells and those that consist of stars. In
            the sensitive column "none" is a value, unless `missing` is given.
        confidence: The coverage of each interval.
        progress: Called with the amount of work done and its total.

    Raises:
        InvalidInput: If `on` is empty, names a column twice, or names `sensitive` or `person`; a table lacks a column
            or has no rows; cells are neither numbers nor texts; generalized cells agree in too many ways; `person` is
            missing in a row or not unique; or `confidence` is not between 0 and 1.
        MissingExtra: If Polars is not installed.

    >>> rows = {"zip": ["13053", "13068", "14850"], "ill": ["flu", "flu", "no"]}
    >>> found = link(rows, {"zip": ["13068", "13053"], "name": ["Ann", "Bob"]}, ["zip"], sensitive="ill")
    >>> found.claims.tolist(), found.learned.people
    ([1, 0], 2)
    """
    checked.confidence("confidence", confidence)
    names = _names(on, sensitive, person)
    pairs = [
        (column_texts("published", published, n, missing), column_texts("known", known, n, missing)) for n in names
    ]
    columns = [match_column(one, other) for one, other in pairs]
    rows, people = RowGroups.by([c.published for c in columns]), RowGroups.by([c.known for c in columns])
    if not len(rows.of) or not len(people.of):
        raise InvalidInput("known" if len(rows.of) else "published", "has no rows", "give a table with some")
    silent = [word for word in missing if missing is not MISSING or word.lower() != "none"]
    secret = None if sensitive is None else encode(column_texts("published", published, sensitive, silent))[0]
    met = _met(columns, rows, people, secret, progress)
    left_out: tuple[int, ...] = ()
    if scoring is None:
        claims = np.where((met.rows == 1) & (people.sizes == 1) & (met.shared == 1), met.row, -1)
    else:
        left_out = determined_columns(rows)
        claims = best_rows(columns, rows, people, scoring, progress, but=left_out)
    of_each = claims[people.of]
    truth = (
        None
        if person is None
        else _truth(column_texts("published", published, person), column_texts("known", known, person))
    )
    right = found = guess = None
    if truth is not None:
        true, inside = (of_each >= 0) & (of_each == truth), truth >= 0
        right, found = _share(true[of_each >= 0], confidence), _share(true[inside], confidence)
        guess = float(inside[of_each >= 0].mean() / len(rows.of)) if (of_each >= 0).any() else None
    return Linkage(
        names,
        len(rows.of),
        len(people.of),
        int(np.count_nonzero(rows.sizes == 1)),
        int(rows.sizes.min()),
        met.rows[people.of],
        of_each,
        None if sensitive is None or secret is None else _learned(sensitive, secret, met, people, truth, confidence),
        None if truth is None else int(np.count_nonzero(truth >= 0)),
        right,
        found,
        guess,
        tuple(column.unmet for column in columns),
        tuple(names[place] for place in left_out),
    )


@dataclass(frozen=True, eq=False)
class _Met:
    """Matches of each group of people: how many rows agree, one of them, how many people that row agrees with, and the
    lowest and the highest code of the rows' sensitive values.
    """

    rows: Codes
    row: Codes
    shared: Codes
    low: Codes
    high: Codes


def _met(
    columns: Sequence[MatchedColumn],
    rows: RowGroups,
    people: RowGroups,
    secret: Codes | None,
    progress: Callable[[int, int], None],
) -> _Met:
    count, shared = np.zeros(len(people.sizes), np.int64), np.zeros(len(rows.sizes), np.int64)
    group = np.full(len(count), -1, np.int64)
    low, high = np.full(len(count), np.iinfo(np.int64).max), np.full(len(count), -1, np.int64)
    least, most = np.full(len(shared), np.iinfo(np.int64).max), np.full(len(shared), -1, np.int64)
    if secret is not None:
        np.minimum.at(least, rows.of, secret)
        np.maximum.at(most, rows.of, secret)
    fewest = np.full(len(count), len(columns))
    for gaps, mine, theirs in matching_groups(columns, rows, people, progress):
        kept = fewest[theirs] >= gaps  # rows with fewer gaps came before
        mine, theirs = mine[kept], theirs[kept]
        fewest[theirs] = gaps
        np.add.at(count, theirs, rows.sizes[mine])
        np.add.at(shared, mine, people.sizes[theirs])
        np.maximum.at(group, theirs, mine)
        np.minimum.at(low, theirs, least[mine])
        np.maximum.at(high, theirs, most[mine])
    return _Met(count, np.where(group >= 0, rows.first[group], -1), np.where(group >= 0, shared[group], 0), low, high)


def _learned(
    column: str, secret: Codes, met: _Met, people: RowGroups, truth: Codes | None, confidence: float
) -> LinkedAttribute:
    # A sensitive value that is missing in one candidate (−1) may be any: nothing is inferred then.
    sure = ((met.rows > 0) & (met.low == met.high) & (met.low >= 0))[people.of]
    right = counted = None
    if truth is not None:
        tried = sure & (truth >= 0)
        counted = int(np.count_nonzero(tried))
        right = _share((met.low[people.of] == secret[truth])[tried], confidence)
    known = secret[secret >= 0]
    commonest = float(np.bincount(known).max() / len(secret)) if len(known) else 0.0
    several = sure & (met.rows[people.of] > 1)
    return LinkedAttribute(
        column, int(np.count_nonzero(sure)), int(np.count_nonzero(several)), commonest, right, counted
    )


def _names(on: Sequence[str], sensitive: str | None, person: str | None) -> tuple[str, ...]:
    names = checked.texts("on", [on] if isinstance(on, str) else on)
    if not names:
        raise InvalidInput("on", "names no column", "name columns that both tables have, such as zip, birth and sex")
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput("on", f"names {name!r} twice", "name each column once")
        if name in (sensitive, person):
            other = "sensitive" if name == sensitive else "person"
            raise InvalidInput("on", f"names {name!r}, which is also {other}", "it can be one of them alone")
    return names


def _truth(published: pl.Series, known: pl.Series) -> Codes:
    """Return the index of each person's published row, as [people]; −1 where there is none."""
    published, known = spelled_alike(published, known)
    for table, cells in (("published", published), ("known", known)):
        if blank := cells.null_count():
            problem = f"is {cells.name!r}, which is missing in {blank:,} rows of the {table} table: that is nobody"
            raise InvalidInput("person", problem, "leave these rows out, or give each its own")
        if cells.n_unique() < len(cells):
            problem = f"is {cells.name!r}, which is not unique: two rows of the {table} table have the same"
            raise InvalidInput("person", problem, "give a column that says who each row is about, one row for each")
    places = {name: place for place, name in enumerate(published.to_list())}
    return np.array([places.get(name, -1) for name in known.to_list()], dtype=np.int64)


def _share(right: Truths, confidence: float) -> ConfidenceInterval | None:
    return ConfidenceInterval.of_share(int(np.count_nonzero(right)), len(right), confidence) if len(right) else None
