"""Public rows that are the private ones again: a check of the owner's own files, before anything is charged.

Whether it refuses depends on private rows. It protects their owner from a mistake; it is made where the rows lie, and
its outcome is not for others.
"""

from __future__ import annotations

import filecmp
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput
from privet.data import Source, hashes, texts_of

__all__ = ["require_other_file", "require_other_records", "require_other_rows"]

_KEY = "privet others"
_DEVIATIONS = 4.0
"""By so many deviations more rows must be shared than chance makes: once in 30,000 times it is chance after all."""


def require_other_file(private: str, public: str, argument: str, advice: str) -> None:
    """Refuse a file of public rows that is the private file, or a copy of it.

    Args:
        private: Path of the private file.
        public: Path of the public file.
        argument: Name of the argument that an error is about.
        advice: Advice of the error.

    Raises:
        InvalidInput: The public rows are, or overlap with, the private ones.
    """
    data, other = Path(private), Path(public)
    same = other.is_file() and data.is_file() and (other.samefile(data) or filecmp.cmp(other, data, shallow=False))
    if same:
        raise _again(argument, "is", advice)


def require_other_records(private: str, public: str, argument: str, advice: str) -> None:
    """Refuse a public table that holds the private rows, in any order, compressed or not, by the texts of their cells.

    This check is for tables without a schema.

    Args:
        private: Path of the private table.
        public: Path of the public table.
        argument: Name of the argument that an error is about.
        advice: Advice of the error.

    Raises:
        InvalidInput: The public rows are, or overlap with, the private ones.
    """
    require_other_file(private, public, argument, advice)
    sources = Source.of(private), Source.of(public)
    names = sorted(set(sources[0].header) & set(sources[1].header))
    if names:
        _require_other(_records(sources[0], names), _records(sources[1], names), argument, advice)


def require_other_rows(
    private: tuple[npt.NDArray[Any], ...], public: tuple[npt.NDArray[Any], ...], argument: str, advice: str
) -> None:
    """Refuse public rows, of which half or more are private rows as well.

    Rows of few values coincide by chance. The files themselves show how often: as often as a row has a duplicate in its
    own file. So the threshold is half of the rows that would have no duplicate by chance.

    Args:
        private: Arrays of the private rows.
        public: Arrays of the public rows.
        argument: Name of the argument that an error is about.
        advice: Advice of the error.

    Raises:
        InvalidInput: The public rows are, or overlap with, the private ones.
    """
    if all(part.size for part in (*private, *public)):
        _require_other(hashes(list(private), _KEY), hashes(list(public), _KEY), argument, advice)


def _require_other(private: npt.NDArray[np.uint64], public: npt.NDArray[np.uint64], argument: str, advice: str) -> None:
    if not len(private) or not len(public):
        return
    if len(private) == len(public) and bool((np.sort(private) == np.sort(public)).all()):
        raise _again(argument, "holds the rows of", advice)
    public = _once(public)
    # A few rows of few values have no twins among themselves, and all of theirs in a larger file.
    twins, among = max(
        (_twins(private), len(private)), (_twins(public), len(public)), key=lambda each: each[0] / each[1]
    )
    chance, shared = twins / among, float(np.isin(public, private).mean())
    likely = (twins + 1) / (among + 2)  # Laplace's rule: of few rows little is known
    spread = sqrt(likely * (1 - likely) * (1 / len(private) + 1 / len(public)))
    if shared - chance >= max((1 - chance) / 2, _DEVIATIONS * spread):
        raise _again(argument, "holds many rows of", advice)


def _once(rows: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the rows of a file that repeats itself once: otherwise every row would seem to have a duplicate."""
    values, counts = np.unique(rows, return_counts=True)
    return np.repeat(values, counts // np.gcd.reduce(counts))


def _twins(rows: npt.NDArray[np.uint64]) -> int:
    """Return the number of rows that occur more than once."""
    _, counts = np.unique(rows, return_counts=True)
    return int(counts[counts > 1].sum())


def _records(source: Source, names: list[str]) -> npt.NDArray[np.uint64]:
    """Return a hash of the texts of each record's cells."""
    source.require(names, "in both files")
    found = [np.zeros(0, dtype=np.uint64)]
    for batch in source.batches(names):
        cells = [texts_of(batch[name], ()).fill_null("").hash(0).to_numpy() for name in names]
        found.append(hashes([np.stack(cells, axis=1)], _KEY))
    return np.concatenate(found)


def _again(argument: str, how: str, advice: str) -> InvalidInput:
    return InvalidInput(argument, f"{how} the file that is learned from, whose rows are private", advice)
