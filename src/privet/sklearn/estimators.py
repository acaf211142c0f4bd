"""A classifier and a regressor trained by DP-SGD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from privet.core import InvalidInput
from privet.sklearn.cells import keys, numbers
from privet.sklearn.fitting import PrivateEstimator
from privet.sklearn.rows import Bounds, column, listed, target_number

__all__ = ["PrivateClassifier", "PrivateRegressor"]

_BLANK = 0
"""The target of a row that does not count."""


@dataclass(eq=False, repr=False)
class PrivateClassifier(PrivateEstimator, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier trained by DP-SGD, whose weights reveal little about any single row.

    Everything that could be read from the rows is an argument instead, and is checked when `fit` is called.

    Args:
        epsilon: The privacy cost of a fit, at most.
        delta: The δ of the guarantee; 1/(10 · rows), rounded down to one digit, unless given.
        bounds: (low, high), each a number or one number for each feature. Required. Cells beyond them count as they do.
        categories: {column: values} for columns that hold categories, by name or place; they need no bounds.
        source: Where bounds, values and classes come from. Required. "codebook", "domain limit", "public data" or
            "learned under the budget" for all of them, or {column: source} with the key "target" for the classes. It is
            among the assumptions of the guarantee, because it cannot be checked here.
        rows: About how many rows there are, as a public number; without it the exact number is public by definition.
        family: `auto`, `linear` or `residual` (`privet.training.models`).
        bins: The number of bins that each number is cut into.
        clip: The clipping norm, in place of the default heuristic of `privet.training.recipe`.
        batch_size: The expected batch size, in place of the default heuristic.
        epochs: The number of epochs, in place of the default heuristic.
        learning_rate: The learning rate, in place of the default heuristic.
        ledger: The path or URL of a ledger. Every fit is charged to it, a clone's too.
        budget: The name of a budget in the ledger.
        public_scores: Whether there is a `score` method, which is for public rows alone.
        random_state: A seed for tests. It taints the release, because whoever knows it can subtract the noise.
        classes: All classes there are. Required. A row of another class counts for nothing.

    Attributes:
        release_: The model, with its event, unit and randomness.
        guarantee_: The privacy cost of this fit. It does not cover other fits, nor how the arguments were chosen: see
            `private_fit` for searches and pipelines.
        classes_: The classes, sorted.

    Guarantee: that of DP-SGD for one example (`DPSGD`): add/remove with `rows`, and zero-out without. Bounds, classes,
    values and names of columns are public, every row is read by itself, and none raises.
    """

    classes: Sequence[Any] | None = field(default=None, kw_only=True)

    def fit(self, X: Any, y: Any) -> PrivateClassifier:
        """Train on rows and their classes, and charge the ledger if there is one.

        The model is in `release_`, and the class describes the guarantee.

        Args:
            X: The private rows: a dense array, a frame or a list of lists. A cell beyond its bounds counts as the
                bound.
            y: The class of each row. A row whose class is not in `classes` counts for nothing.

        Returns:
            The estimator itself.

        Raises:
            InvalidInput: If an argument of the constructor is missing or out of range, or X and y do not fit together.
            TypeError: If X is sparse.
            BudgetExceeded: If the budget refuses the charge.
            LedgerError: If the ledger cannot be read or written.
        """
        classes = _classes(self.classes)
        known = listed("classes", classes)

        def targets(rows: int) -> tuple[Any, Any]:
            codes = known.place(keys(column(y, rows)))
            return np.where(codes < 0, _BLANK, codes), (codes >= 0).astype(np.float32)

        fitted: PrivateClassifier = self._fitted(X, len(classes), targets)
        self.classes_ = classes
        return fitted

    def _planned_outputs(self) -> int:
        return len(_classes(self.classes))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most likely class of each row, by the released model.

        Args:
            X: Rows with the columns that `fit` was given.

        Raises:
            NotFittedError: If the estimator is not fitted (scikit-learn's error).
            InvalidInput: If X has no rows and columns.
            ValueError: If X has other columns than in `fit`.
            TypeError: If X is sparse.
        """
        outputs = self._outputs(X)
        return np.asarray(self.classes_[outputs.argmax(1)])

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the probability of each class for each row, in the order of `classes_`, by the released model.

        Args:
            X: Rows with the columns that `fit` was given.

        Returns:
            [rows, classes].

        Raises:
            NotFittedError: If the estimator is not fitted (scikit-learn's error).
            InvalidInput: If X has no rows and columns.
            ValueError: If X has other columns than in `fit`.
            TypeError: If X is sparse.
        """
        outputs = self._outputs(X)
        weights = np.exp(outputs - outputs.max(1, keepdims=True))
        return np.asarray(weights / weights.sum(1, keepdims=True))


@dataclass(eq=False, repr=False)
class PrivateRegressor(PrivateEstimator, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Regressor trained by DP-SGD, whose weights reveal little about any single row.

    Args:
        epsilon: The privacy cost of a fit, at most.
        delta: The δ of the guarantee; 1/(10 · rows), rounded down to one digit, unless given.
        bounds: (low, high), each a number or one number for each feature. Required. Cells beyond them count as they do.
        categories: {column: values} for columns that hold categories, by name or place; they need no bounds.
        source: Where bounds, values and target bounds come from. Required. "codebook", "domain limit", "public data" or
            "learned under the budget" for all of them, or {column: source} with the key "target" for the target. It is
            among the assumptions of the guarantee, because it cannot be checked here.
        rows: About how many rows there are, as a public number; without it the exact number is public by definition.
        family: `auto`, `linear` or `residual` (`privet.training.models`).
        bins: The number of bins that each number is cut into.
        clip: The clipping norm, in place of the default heuristic of `privet.training.recipe`.
        batch_size: The expected batch size, in place of the default heuristic.
        epochs: The number of epochs, in place of the default heuristic.
        learning_rate: The learning rate, in place of the default heuristic.
        ledger: The path or URL of a ledger. Every fit is charged to it, a clone's too.
        budget: The name of a budget in the ledger.
        public_scores: Whether there is a `score` method, which is for public rows alone.
        random_state: A seed for tests. It taints the release, because whoever knows it can subtract the noise.
        target_bounds: (low, high) of the target. Required. Targets beyond them count as they do, and a row without a
            number as target counts for nothing; predictions stay within.

    Attributes:
        release_: The model, with its event, unit and randomness; its targets are scaled to [-1, 1].
        guarantee_: The privacy cost of this fit.

    Guarantee: that of DP-SGD for one example (`DPSGD`): add/remove with `rows`, and zero-out without. Bounds, target
    bounds, values and names of columns are public, every row is read by itself, and none raises.
    """

    target_bounds: Bounds | None = field(default=None, kw_only=True)

    def fit(self, X: Any, y: Any) -> PrivateRegressor:
        """Train on rows and their targets, and charge the ledger if there is one.

        The model is in `release_`, and the class describes the guarantee.

        Args:
            X: The private rows: a dense array, a frame or a list of lists. A cell beyond its bounds counts as the
                bound.
            y: The target of each row. A target beyond `target_bounds` counts as the bound; a row whose target is not a
                number counts for nothing.

        Returns:
            The estimator itself.

        Raises:
            InvalidInput: If an argument of the constructor is missing or out of range, or X and y do not fit together.
            TypeError: If X is sparse.
            BudgetExceeded: If the budget refuses the charge.
            LedgerError: If the ledger cannot be read or written.
        """
        target = target_number(self.target_bounds)

        def targets(rows: int) -> tuple[Any, Any]:
            scaled = target.scaled(numbers(column(y, rows)))
            counts = ~np.isnan(scaled)
            return np.where(counts, scaled, _BLANK).astype(np.float32), counts.astype(np.float32)

        fitted: PrivateRegressor = self._fitted(X, 0, targets)
        self.target_ = target
        return fitted

    def _planned_outputs(self) -> int:
        return 0

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the predicted target of each row, within its bounds, by the released model.

        Args:
            X: Rows with the columns that `fit` was given.

        Raises:
            NotFittedError: If the estimator is not fitted (scikit-learn's error).
            InvalidInput: If X has no rows and columns.
            ValueError: If X has other columns than in `fit`.
            TypeError: If X is sparse.
        """
        outputs = self._outputs(X)
        return self.target_.unscaled(np.clip(outputs, -1.0, 1.0))


def _classes(classes: Any) -> npt.NDArray[Any]:
    """Return all classes, sorted."""
    if classes is None:
        problem = "is not given, and classes that are read from the rows tell of them"
        raise InvalidInput(
            "classes", problem, 'list all that there can be, from public knowledge: classes=["no", "yes"]'
        )
    if isinstance(classes, (str, bytes)) or not isinstance(classes, (Sequence, np.ndarray)):
        raise InvalidInput("classes", "is not a list", 'list all classes: classes=["no", "yes"]')
    given = np.asarray(classes)
    found = np.unique(given) if given.ndim == 1 else given
    if given.ndim != 1 or len(found) != len(given) or len(found) < 2:
        raise InvalidInput("classes", "are fewer than two, or name one twice", "list every class once")
    return found
