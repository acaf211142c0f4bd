"""Cross-validation folds in which adding or removing one row moves no other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput, checked
from privet.data import hashes
from privet.sklearn.cells import columns_of, words

__all__ = ["HashedFolds"]


@dataclass(frozen=True)
class HashedFolds:
    """Folds by a keyed hash of a row's content, for the `cv` of scikit-learn's searches.

    With `KFold` a removed row shifts the rows behind it into other folds, and `StratifiedKFold` moves rows when another
    row's class changes: then two neighboring data sets have training parts that differ in several rows, and a guarantee
    for one row does not cover them. Here a row's fold depends on that row and the key alone. Folds are about equally
    large; equal rows share a fold.

    >>> rows = np.arange(20.0).reshape(10, 2)
    >>> folds = [set(test.tolist()) for _, test in HashedFolds(3).split(rows)]
    >>> sorted(set.union(*folds)) == list(range(10)), sum(map(len, folds))
    (True, 10)
    """

    n_splits: int = 5
    key: str = "privet"

    def __post_init__(self) -> None:
        checked.count("n_splits", self.n_splits, 2)
        checked.text("key", self.key)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds.

        Args:
            X: Ignored; part of scikit-learn's interface.
            y: Ignored; part of scikit-learn's interface.
            groups: Ignored; part of scikit-learn's interface.
        """
        del X, y, groups
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """Yield the training and test rows of each fold.

        Args:
            X: The rows: an array, a frame or a list of lists.
            y: Ignored: a row's class does not influence its fold.
            groups: Must be None, because folds are by row.

        Yields:
            For each fold the indices of all other rows, and those of its own.

        Raises:
            InvalidInput: If groups are given, or X has no columns.
        """
        del y
        if groups is not None:
            raise InvalidInput("groups", "are given, and folds are by rows", "leave them out")
        fold = self._fold(X)
        for place in range(self.n_splits):
            yield np.flatnonzero(fold != place), np.flatnonzero(fold == place)

    def _fold(self, X: Any) -> npt.NDArray[np.uint64]:
        _, columns = columns_of(X)
        if not columns:
            raise InvalidInput("X", "has no columns", "give rows and columns")
        rows = np.stack([words(column) for column in columns], 1)
        found: npt.NDArray[np.uint64] = hashes([rows], self.key) % np.uint64(self.n_splits)
        return found
