"""The privacy cost of pipelines and searches as a whole, which their parts do not know."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from privet.accounting import epsilon as price
from privet.core import Composed, Draw, Event, InvalidInput, NonPrivate, Randomness, Release, Repeated, checked
from privet.sklearn.estimators import PrivateClassifier, PrivateRegressor
from privet.sklearn.folds import HashedFolds
from privet.sklearn.scorer import PrivateScorer

__all__ = ["private_fit", "release_of"]

_PRIVATE = (PrivateClassifier, PrivateRegressor)
_SEARCHES = (GridSearchCV, RandomizedSearchCV)


def private_fit(estimator: Any, X: Any, y: Any, *, public_steps: Collection[str] = ()) -> Release[Any]:
    """Fit an estimator, a pipeline or a search in place; return a release whose guarantee covers all that was done.

    The settings of a search can be changed, or forgotten, after it. So this function checks and fits it in one call: a
    search whose privacy cost cannot be accounted for is refused before any row is read, and before anything is charged.

    Args:
        estimator: A `PrivateClassifier` or `PrivateRegressor`; a `Pipeline` that ends in one; a `GridSearchCV` or
            `RandomizedSearchCV` over either, of which the best estimator is the value.
        X: The private rows.
        y: Their targets.
        public_steps: Names of a pipeline's steps that learn nothing from the rows, look at each by itself, and raise
            for none of them, such as a `FunctionTransformer` of logarithms. You must keep that true: scalers and
            encoders that are fitted do learn, and a `Normalizer` raises where a cell is missing or a text.

    Raises:
        InvalidInput: If the estimator is of another kind, or would not be private; the reason is named.

    Guarantee: for the unit of the final fit, at its δ. A pipeline costs its estimator, if no other step learned from
    rows. A search costs every fit of every candidate in every fold, every score, and the last fit, whatever their order
    (adaptive composition; no fold is counted as parallel): its scores are `private_scorer`'s, its folds `HashedFolds`,
    and `rows` a public number. Where a `RandomizedSearchCV` drew a candidate that is not private, the event is
    `NonPrivate`, with the reason, and ε is infinite. The times in `cv_results_` are of private rows and are no part of
    this release.
    """
    steps = checked.texts("public_steps", public_steps)
    search = isinstance(estimator, _SEARCHES)
    base = estimator.estimator if search else estimator
    if _final(base) is None:
        problem = f"is or searches a {type(base).__name__}, of which nothing is known here"
        raise InvalidInput("estimator", problem, "give a private estimator, a pipeline that ends in one, or a search")
    for reason in _planned(estimator, steps) if search else _learned(estimator, steps):
        raise InvalidInput("estimator", f"would not be private: {reason}", "nothing was fitted, nothing was charged")
    estimator.fit(X, y)
    return _search(estimator, steps) if search else release_of(estimator, public_steps=steps)


def release_of(fitted: Any, *, public_steps: Collection[str] = ()) -> Release[Any]:
    """Return a fitted estimator or pipeline as a release, marked as not private where that is so.

    Args:
        fitted: A `PrivateClassifier` or `PrivateRegressor`, or a `Pipeline` that ends in one, with the steps that it
            was fitted with; or a search, which is always marked: see `private_fit`.
        public_steps: Names of a pipeline's steps that learn nothing from the rows, look at each by itself, and raise
            for none of them.

    Raises:
        InvalidInput: If `fitted` is of another kind, or a search without a private best estimator.
        NotFittedError: If it is not fitted (scikit-learn's error).

    Guarantee: for the unit of the final fit, at its δ. A pipeline costs its estimator, if no other step learned from
    rows; else the event is `NonPrivate`, with the reason, and ε is infinite. So it is for a search, because nothing
    that scikit-learn keeps of it says by which folds, scores and arguments it was made: they can be set later.
    """
    steps = checked.texts("public_steps", public_steps)
    if isinstance(fitted, _SEARCHES):
        check_is_fitted(fitted)
        return _with(*_best(fitted), _marks([*_unpaid(fitted), _AFTERWARDS]))
    final = _final(fitted)
    if final is None:
        problem = f"is a {type(fitted).__name__}, of which nothing is known here"
        raise InvalidInput("fitted", problem, "give a private estimator, a pipeline that ends in one, or a search")
    check_is_fitted(final, "release_")
    return _with(fitted, final, _marks(_learned(fitted, steps)))


_AFTERWARDS = "how a search was made cannot be known after it; let private_fit(search, X, y) make it"


def _final(fitted: Any) -> PrivateClassifier | PrivateRegressor | None:
    """Return the private estimator that a pipeline ends in, or the estimator itself."""
    last = fitted.steps[-1][1] if isinstance(fitted, Pipeline) and fitted.steps else fitted
    return last if isinstance(last, _PRIVATE) else None


def _learned(fitted: Any, public: tuple[str, ...]) -> Iterator[str]:
    """Yield why steps, or their classes, may have learned from rows without a privacy charge."""
    steps = fitted.steps if isinstance(fitted, Pipeline) else []
    for name, step in steps[:-1]:
        if step is not None and step != "passthrough" and name not in public:
            yield f"the step {name!r} ({type(step).__name__}) may have learned from the rows or raised by one, unpaid"
    for part in (fitted, *(step for _, step in steps[-1:])):
        if type(part) not in (Pipeline, *_PRIVATE):
            yield f"{type(part).__name__} is a class of someone's own, which may do what nobody paid for"


def _marks(reasons: Iterable[str]) -> list[Event]:
    """Return one event for all reasons, if there are any."""
    distinct = list(dict.fromkeys(reasons))
    return [NonPrivate("; ".join(distinct))] if distinct else []


def _with(value: Any, final: Any, others: list[Event], *, seeded: bool = False) -> Release[Any]:
    """Return the release of the final fit, accounted for together with everything else that was done for it."""
    own: Release[Any] = final.release_
    if not others:
        return own.map(lambda _: value)
    more = Composed(tuple(others))
    # The same fit and the same other events have the same id, however often this is called.
    digest = hashlib.sha256(f"{own.draws[0].id} {more.to_json()}".encode()).hexdigest()[:32]
    randomness = Randomness.SEEDED if seeded else own.randomness
    draws = (*own.draws, Draw(own.source[0], more, digest))
    guarantee = price(Composed((own.event, more)), final.guarantee_.delta, unit=own.unit)
    return Release(value, draws, own.unit, randomness, guarantee)


def _best(search: Any) -> tuple[Any, Any]:
    """Return the best estimator, and the private one that it is or ends in."""
    best = getattr(search, "best_estimator_", None)
    final = _final(best)
    if final is None:
        problem = "is a search without a private best estimator"
        raise InvalidInput("fitted", problem, "let it end in a private estimator, and leave refit at True")
    return best, final


def _planned(search: Any, public: tuple[str, ...]) -> Iterator[str]:
    """Yield why a search would not be private, as far as that is known before its candidates are drawn."""
    yield from _unpaid(search)
    if not isinstance(search, GridSearchCV):
        yield from _learned(search.estimator, public)
        return
    for given in ParameterGrid(search.param_grid):
        yield from _unplanned(clone(search.estimator).set_params(**clone(given, safe=False)), public)


def _search(search: Any, public: tuple[str, ...]) -> Release[Any]:
    """Return the release of a search that was just fitted."""
    best, final = _best(search)
    candidates = [
        clone(search.estimator).set_params(**clone(given, safe=False)) for given in search.cv_results_["params"]
    ]
    marks = _marks(reason for each in candidates for reason in _unplanned(each, public))
    if marks:
        return _with(best, final, marks)
    ends = [end for end in map(_final, candidates) if end is not None]
    folds = search.n_splits_
    fits = Counter(end.plan().event() for end in ends).items()
    scores = folds * len(candidates) * (2 if search.return_train_score else 1)
    events: list[Event] = [Repeated(event, folds * count) for event, count in fits]
    events += [Repeated(scorer.event, scores) for scorer in _scorers(search)]
    seeded = final.release_.tainted or any(end.random_state is not None for end in ends)
    return _with(best, final, events, seeded=seeded)


def _scorers(search: Any) -> list[Any]:
    return list(search.scoring.values()) if isinstance(search.scoring, Mapping) else [search.scoring]


def _unpaid(search: Any) -> Iterator[str]:
    """Yield what a search uses of the private rows without a privacy charge."""
    if type(search) not in _SEARCHES:
        yield f"{type(search).__name__} is a class of someone's own, which may do what nobody paid for"
    if not all(type(scorer) is PrivateScorer for scorer in _scorers(search)):
        yield "the search chooses by scores of private rows that nobody paid for; use scoring=private_scorer(epsilon)"
    if callable(search.refit):
        yield "the search chooses by a function that sees times of private rows; leave refit at True"
    elif search.refit is False:
        yield "the search has no last fit, and so no model; leave refit at True"
    if type(search.cv) is not HashedFolds:
        yield "the search's folds are such that one row moves others; use cv=HashedFolds(k)"


def _unplanned(candidate: Any, public: tuple[str, ...]) -> Iterator[str]:
    """Yield why the privacy cost of a candidate's fits is not known before rows are read."""
    yield from _learned(candidate, public)
    final = _final(candidate)
    if final is None:
        yield "a candidate of the search does not end in a private estimator"
    elif final.rows is None:
        yield "the fits counted the rows of their folds, which are private; give rows"
