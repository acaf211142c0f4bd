"""A scorer that releases a private score: it charges the budget, and then adds noise."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.accounting import epsilon as price
from privet.core import Event, InvalidInput, Release, Unit, checked
from privet.core.random import Rng, default_rng
from privet.data import assumptions_of
from privet.ledger import Ledger
from privet.report import CONFIDENCE, NOISE_AND_SAMPLING, Score, ScoreMechanism, share_of
from privet.sklearn.cells import column_of, keys, numbers
from privet.sklearn.rows import Bounds, target_number
from privet.sklearn.sources import SourceLike, sources_of

__all__ = ["PrivateScorer", "private_scorer"]


@dataclass(frozen=True)
class PrivateScorer:
    """Scorer for `scoring=` of scikit-learn's searches and `cross_val_score` that releases one private score a call.

    Args:
        epsilon: The privacy cost of each score. With n rows the noise on an accuracy is about 1/(n·ε).
        target_bounds: (low, high) of the target, for regressors. Without it the accuracy is scored.
        source: Where `target_bounds` come from, such as "codebook" or "public data". Required with them.
        ledger: The path or URL of a ledger.
        budget: The name of a budget in it, for one example that is added or removed. Each call is charged to it.

    Raises:
        InvalidInput: If an argument is not what it should be, or one of `ledger` and `budget` is given without the
            other.

    >>> private_scorer(0.5).event
    DiscreteLaplace(scale=2.0, bound=1, dimension=1)

    Guarantee: ε with δ = 0 for one example that is added or removed, by one draw (`privet.report.ScoreMechanism`). The
    number of rows is not used, and stays private. Scores of the model's own training rows cost the same, on top of the
    model. A prediction must depend on its row and the model alone; a model that looks at all rows to be predicted at
    once is not covered.
    """

    epsilon: float
    _: KW_ONLY
    target_bounds: Bounds | None = None
    source: SourceLike | None = None
    ledger: str | os.PathLike[str] | None = None
    budget: str | None = None

    def __post_init__(self) -> None:
        checked.positive("epsilon", self.epsilon)
        if self.target_bounds is not None:
            target_number(self.target_bounds)
            sources_of(self.source, [])
        if self.ledger is not None and not isinstance(self.ledger, (str, os.PathLike)):
            problem = f"is a {type(self.ledger).__name__}, and scikit-learn copies scorers"
            raise InvalidInput("ledger", problem, "give its path or URL")
        if (self.ledger is None) != (self.budget is None):
            raise InvalidInput("budget", "and ledger belong together", "give both, or neither")
        _ = self.event  # refuses an ε that no noise meets

    @property
    def unit(self) -> Unit:
        """One example, added or removed."""
        return Unit()

    @cached_property
    def mechanism(self) -> ScoreMechanism:
        """The mechanism of one score, known before any row is read."""
        return ScoreMechanism(self.epsilon, self.unit, is_binary=self.target_bounds is None)

    @property
    def event(self) -> Event:
        """The event of one score."""
        return self.mechanism.event

    def half_width(self, rows: int) -> float:
        """Return the expected half-width of a score's interval, before anything is drawn or charged.

        It is that of a model that is right about half of the rows, the widest case.

        Args:
            rows: About how many rows a call scores, as a public or released number.

        >>> round(private_scorer(0.5).half_width(2_000), 3)
        0.03
        """
        return self.mechanism.half_width(rows)

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the score as scikit-learn expects it: a number, the larger the better.

        `measure` returns it with its interval.

        Args:
            estimator: A fitted estimator whose prediction for a row depends on that row and the model alone.
            X: The private rows to score.
            y: Their targets.

        Raises:
            InvalidInput: If there is not one target for each prediction.
            BudgetExceeded: If the budget refuses the charge.
            LedgerError: If the ledger cannot be read or written.
        """
        return self.release(estimator, X, y).value

    def release(self, estimator: Any, X: Any, y: Any, *, rng: Rng | None = None) -> Release[float]:
        """Release the noisy accuracy; with `target_bounds`, 1 less the mean absolute error over the bounds' width.

        Args:
            estimator: A fitted estimator whose prediction for a row depends on that row and the model alone.
            X: The private rows to score.
            y: Their targets.
            rng: The source of noise; the secure generator by default. A seeded one taints the release.

        Raises:
            InvalidInput: If there is not one target for each prediction.
            BudgetExceeded: If the budget refuses the charge.
            LedgerError: If the ledger cannot be read or written.

        Guarantee: that of `event`, for `unit`; it is charged, where there is a ledger, before anything is drawn.
        """
        return self._drawn(estimator, X, y, rng).map(_share)

    def measure(self, estimator: Any, X: Any, y: Any, *, rng: Rng | None = None) -> Release[Score]:
        """Release the same score with its 95 % interval, which covers the noise and the sampling of the rows.

        Rows are taken as independent draws that the model has not seen: on its training rows the interval says nothing
        about new ones.

        Args:
            estimator: A fitted estimator whose prediction for a row depends on that row and the model alone.
            X: The private rows to score.
            y: Their targets.
            rng: The source of noise; the secure generator by default. A seeded one taints the release.

        Raises:
            InvalidInput: If there is not one target for each prediction.
            BudgetExceeded: If the budget refuses the charge.
            LedgerError: If the ledger cannot be read or written.

        Guarantee: that of `event`, for `unit`; it is charged, where there is a ledger, before anything is drawn. The
        interval is post-processing of the two noisy sums.
        """
        name = "accuracy" if self.target_bounds is None else "1 - scaled mean absolute error"

        def score(sums: tuple[float, float]) -> Score:
            ends = self.mechanism.interval(*sums)
            return Score(name, _share(sums), "scored rows", True, *ends, CONFIDENCE, NOISE_AND_SAMPLING)

        return self._drawn(estimator, X, y, rng).map(score)

    def _drawn(self, estimator: Any, X: Any, y: Any, rng: Rng | None) -> Release[tuple[float, float]]:
        chosen = default_rng() if rng is None else rng
        with ExitStack() as paid:
            if self.ledger is not None and self.budget is not None:
                ledger = paid.enter_context(Ledger(self.ledger))
                charge = ledger.reserve(self.budget, self.event, unit=self.unit, purpose="private score")
                paid.enter_context(charge.drawing())
            scores = self._scores(estimator.predict(X), y)
            sums = self.mechanism.release(scores, rng=chosen, source=self.budget or "scored rows")
        assumed = () if self.target_bounds is None else assumptions_of(sources_of(self.source, []))
        guarantee = price(self.event, 0.0, unit=self.unit)
        return replace(sums, guarantee=replace(guarantee, assumptions=(*guarantee.assumptions, *assumed)))

    def _scores(self, predicted: Any, y: Any) -> npt.NDArray[Any]:
        """Return one score in [0, 1] for each row; NaN where a number is missing."""
        said, true = column_of("the predictions", predicted).ravel(), column_of("y", y).ravel()
        if said.shape != true.shape:
            raise InvalidInput("y", "has another shape than the predictions", "give one target for each row")
        if self.target_bounds is None:
            pairs = zip(keys(said), keys(true), strict=True)  # what is missing is wrong
            return np.array([mine is not None and mine == theirs for mine, theirs in pairs], dtype=np.bool_)
        target = target_number(self.target_bounds)
        return np.asarray(1.0 - np.abs(target.scaled(numbers(said)) - target.scaled(numbers(true))) / 2)


private_scorer = PrivateScorer
"""Alias of `PrivateScorer` that reads as a function, for `scoring=`."""


def _share(sums: tuple[float, float]) -> float:
    return share_of(*sums, otherwise=0.5)  # scikit-learn wants a number in any case
