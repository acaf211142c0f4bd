"""Base of both estimators: check public arguments, train by `privet.training.recipe`, and keep the release."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.validation import check_is_fitted
from torch.func import functional_call

from privet.accounting import default_delta
from privet.core import Guarantee, InvalidInput, Release, checked
from privet.core.random import Rng, SeededRng
from privet.data import Number, Schema, assumptions_of
from privet.ledger import Ledger
from privet.sklearn.rows import Bounds, Columns, cells, plain
from privet.sklearn.sources import SourceLike, sources_of
from privet.training import DPSGD, BudgetCharge, DataKind, Recipe, recipe
from privet.training.models import Family, Model, apply_rowwise, choose

__all__ = ["PrivateEstimator"]

_cached_recipe = lru_cache(maxsize=64)(recipe)
"""The recipe, which depends on public numbers alone: the folds and candidates of a search calibrate it once."""


@dataclass(eq=False, repr=False)
class PrivateEstimator:
    """Arguments, training and outputs that `PrivateClassifier` and `PrivateRegressor` share.

    It is a dataclass, so that scikit-learn finds every argument in the signature of `__init__`, and finds it unchanged.
    """

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float | None = None
    bounds: Bounds | None = None
    categories: Mapping[Any, Sequence[Any]] | None = None
    source: SourceLike | Mapping[Any, SourceLike] | None = None
    rows: int | None = None
    family: Family | str = "auto"
    bins: int = 16
    clip: float | None = None
    batch_size: int | None = None
    epochs: float | None = None
    learning_rate: float | None = None
    ledger: str | os.PathLike[str] | None = None
    budget: str | None = None
    public_scores: bool = False
    random_state: int | None = None

    def plan(self) -> DPSGD:
        """Return the plan of a fit from the arguments alone.

        Its event, unit and guarantee are known before any row is read.

        Raises:
            InvalidInput: If `rows` is not given, because a fit then counts the rows of X; or another argument is out of
                range.
        """
        if self.rows is None:
            raise InvalidInput("rows", "is not given, and without it a fit counts the rows", "give a public number")
        rows, outputs = self._rows(0), self._planned_outputs()
        one = Schema((Number("any", 0.0, 1.0),))  # which features there are does not change the plan
        return self._recipe(rows, choose(one, outputs, rows, self.family, self.bins), outputs).plan

    def _planned_outputs(self) -> int:
        raise NotImplementedError

    def _fitted(self, X: Any, outputs: int, targets: Callable[[int], tuple[Any, Any]]) -> Self:
        """Train on rows; `targets` returns the target of each row, and which rows count."""
        given = cells(self, X, reset=True)
        held = len(given[0])
        names = getattr(self, "feature_names_in_", None)
        columns = Columns.of(self.bounds, self.categories, names, len(given))
        labels = [f"x{place}" for place in range(len(given))] if names is None else [str(name) for name in names]
        assumed = assumptions_of(sources_of(self.source, labels))
        y, counts = targets(held)
        rows = self._rows(held)
        model = choose(columns.schema, outputs, rows, self.family, self.bins)
        chosen = self._recipe(rows, model, outputs)
        x = columns.table(given)
        if not len(x):  # a row that does not count stands in for an empty X, so that the output does not show it
            x, y, counts = np.zeros((1, x.shape[1])), np.zeros(1, dtype=y.dtype), np.zeros(1)
        data = tuple(torch.from_numpy(np.ascontiguousarray(part)) for part in (x.astype(np.float32), y, counts))
        release = self._train(chosen, model, data)
        if release.guarantee is not None:
            stated = release.guarantee
            self.guarantee_: Guarantee = replace(stated, assumptions=(*stated.assumptions, *assumed))
            release = replace(release, guarantee=self.guarantee_)
        self.columns_: Columns = columns
        self.release_: Release[Model] = release
        return self

    def _rows(self, counted: int) -> int:
        """Return the public number of rows: the given one, or else how many there are."""
        if self.rows is not None:
            return checked.count("rows", plain(self.rows))
        if not counted:
            raise InvalidInput("X", "has 0 sample(s), and their number is public", "give rows, or give it")
        return counted

    def _recipe(self, rows: int, model: Model, outputs: int) -> Recipe:
        epsilon = checked.positive("epsilon", plain(self.epsilon))
        delta = default_delta(rows) if self.delta is None else checked.share("delta", plain(self.delta))
        if not delta:
            raise InvalidInput("delta", "is 0, which no normal noise meets", "give one far below 1 over the rows")
        chosen = _cached_recipe(
            DataKind.TABLE,
            rows,
            model.features,
            outputs,
            epsilon,
            delta,
            model.family,
            clip=plain(self.clip),
            batch_size=plain(self.batch_size),
            epochs=plain(self.epochs),
            learning_rate=plain(self.learning_rate),
        )
        # Where rows are counted the plan says so, and with it the unit: the number of rows is public by definition.
        return chosen if self.rows is not None else replace(chosen, plan=replace(chosen.plan, population=None))

    def _train(self, chosen: Recipe, model: Model, data: tuple[torch.Tensor, ...]) -> Release[Model]:
        optimizer = chosen.optimizer(model)
        with ExitStack() as open_:
            run = chosen.plan.attach(model, optimizer, data, charge=self._charge(open_, chosen), rng=self._rng())
            open_.callback(run.close)
            for inputs, targets, counts in run.batches():
                chosen.anneal(optimizer, run.steps - 1)
                run.step(model.losses(inputs, targets, chosen.pull) * counts)
            release: Release[Any] = run.release()
            return release

    def _charge(self, open_: ExitStack, chosen: Recipe) -> BudgetCharge | None:
        if self.ledger is None:
            if self.budget is not None:
                raise InvalidInput("ledger", "is missing, and a budget is named", "give the ledger's path or URL")
            return None
        if not isinstance(self.ledger, (str, os.PathLike)):
            problem = f"is a {type(self.ledger).__name__}, and scikit-learn copies the arguments of an estimator"
            raise InvalidInput("ledger", problem, "give the path or URL of the ledger, and the budget's name as budget")
        if self.budget is None:
            raise InvalidInput("budget", "is missing", "name the budget that the fit is charged to")
        budget, unit = open_.enter_context(Ledger(self.ledger)).budget(self.budget), chosen.plan.unit()
        if budget.unit != unit:
            problem = f"protects {budget.unit}, and this fit protects {unit}"
            advice = "give rows, a public number" if self.rows is None else "create one for the default unit"
            raise InvalidInput("budget", problem, f"{advice}; or charge a budget that was created for the fit's unit")
        return BudgetCharge(budget, purpose=f"{type(self).__name__}.fit")

    def _rng(self) -> Rng | None:
        if self.random_state is None:
            return None
        if isinstance(self.random_state, bool) or not isinstance(self.random_state, (int, np.integer)):
            problem = f"is a {type(self.random_state).__name__}"
            raise InvalidInput("random_state", problem, "leave it out; a whole number is for tests, and taints the fit")
        return SeededRng(int(self.random_state))

    def _outputs(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the released model's output for each row, which depends on that row alone, to the last bit."""
        check_is_fitted(self, "release_")
        rows = torch.from_numpy(self.columns_.table(cells(self, X, reset=False)))
        model = self.release_.value
        weights = {name: each.detach().double() for name, each in model.state_dict().items()}
        said = apply_rowwise(lambda some: torch.as_tensor(functional_call(model, weights, (some,))), rows)
        found: npt.NDArray[np.float64] = said.double().numpy()
        return found

    @property
    def score(self) -> Callable[[Any, Any], float]:
        """Accuracy, or R²; absent unless `public_scores` declares that the rows to be scored are public.

        A score of private rows reveals something about them, and so does a search that chooses by it. So scikit-learn
        finds no `score` here, and a search without `scoring` is refused before anything is fitted.
        """
        if not self.public_scores:
            raise AttributeError(
                "score on private rows is paid for by nobody; use scoring=privet.sklearn.private_scorer(epsilon), or, "
                "if all rows that are scored are public, the argument public_scores=True"
            )
        return self._score

    def _score(self, X: Any, y: Any) -> float:
        return float(super().score(X, y))  # type: ignore[misc]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True  # and whatever else a cell may hold
        return tags
