"""What pipelines and searches cost as a whole: their parts do not know of each other."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from sklearn.base import clone
from sklearn.feature_extraction import FeatureHasher
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Binarizer, Normalizer
from sklearn.utils.validation import check_is_fitted

from privet.accounting import epsilon as price
from privet.core import checked
from privet.core.errors import InvalidInput
from privet.core.event import Composed, Event, NonPrivate, Repeated
from privet.core.randomness import Randomness
from privet.core.release import Draw, Release
from privet.sklearn.estimators import PrivateClassifier, PrivateRegressor
from privet.sklearn.folds import HashedFolds
from privet.sklearn.scorer import PrivateScorer

__all__ = ["release_of"]

_PRIVATE = (PrivateClassifier, PrivateRegressor)
_ROWWISE = (Binarizer, FeatureHasher, Normalizer)
"""Steps that learn nothing and look at each row by itself. All others are the user's promise."""


def release_of(fitted: Any, *, public_steps: Collection[str] = ()) -> Release[Any]:
    """A fitted estimator, pipeline or search as what may leave, or may not; `guarantee` covers all that was done.

    Args:
        fitted: a `PrivateClassifier` or `PrivateRegressor`; a `Pipeline` that ends in one; a `GridSearchCV` or
            `RandomizedSearchCV` over either, of which the best estimator is the value.
        public_steps: names of a pipeline's steps that learn nothing from the rows and look at each by itself, such as a
            `FunctionTransformer` of logarithms. You must keep that true; scalers and encoders that are fitted do learn.

    Guarantee: for the unit of the final fit, at its δ. A pipeline costs its estimator, if no other step learned from
    rows. A search costs every fit of every candidate in every fold, every score, and the last fit, whatever their order
    (adaptive composition; no fold is counted as parallel), provided that its scores are `private_scorer`'s, its folds
    `HashedFolds`, and `rows` a public number. Where any of this fails the event is `NonPrivate`, with the reason, and ε
    is infinite: scikit-learn cannot be kept from choosing by scores that nobody paid for, but the result says so. The
    times in `cv_results_` are of private rows and are no part of this release.
    """
    steps = checked.texts("public_steps", public_steps)
    if isinstance(fitted, (GridSearchCV, RandomizedSearchCV)):
        check_is_fitted(fitted)
        return _search(fitted, steps)
    final = _final(fitted)
    if final is None:
        problem = f"is a {type(fitted).__name__}, of which nothing is known here"
        raise InvalidInput("fitted", problem, "give a private estimator, a pipeline that ends in one, or a search")
    check_is_fitted(final, "release_")
    return _with(fitted, final, _marks(_learned(fitted, steps)))


def _final(fitted: Any) -> PrivateClassifier | PrivateRegressor | None:
    """The private estimator that a pipeline ends in, or the estimator itself."""
    last = fitted.steps[-1][1] if isinstance(fitted, Pipeline) and fitted.steps else fitted
    return last if isinstance(last, _PRIVATE) else None


def _learned(fitted: Any, public: tuple[str, ...]) -> Iterator[str]:
    """Why steps before the last may have learned from rows that nobody paid for."""
    for name, step in fitted.steps[:-1] if isinstance(fitted, Pipeline) else ():
        if step is not None and step != "passthrough" and name not in public and type(step) not in _ROWWISE:
            yield f"the step {name!r} ({type(step).__name__}) may have learned from the rows, unpaid"


def _marks(reasons: Iterable[str]) -> list[Event]:
    """One event for all reasons, if there are any."""
    distinct = list(dict.fromkeys(reasons))
    return [NonPrivate("; ".join(distinct))] if distinct else []


def _with(value: Any, final: Any, others: list[Event], *, seeded: bool = False) -> Release[Any]:
    """The release of the final fit, with whatever else was done for it, priced together."""
    own: Release[Any] = final.release_
    if not others:
        return own.map(lambda _: value)
    more = Composed(tuple(others))
    # The same fit and the same other events are the same draw, however often one asks.
    digest = hashlib.sha256(f"{own.draws[0].id} {more.to_json()}".encode()).hexdigest()[:32]
    randomness = Randomness.SEEDED if seeded else own.randomness
    draws = (*own.draws, Draw(own.source[0], more, digest))
    guarantee = price(Composed((own.event, more)), final.guarantee_.delta, unit=own.unit)
    return Release(value, draws, own.unit, randomness, guarantee)


def _search(search: Any, public: tuple[str, ...]) -> Release[Any]:
    best = getattr(search, "best_estimator_", None)
    final = _final(best)
    if final is None:
        problem = "is a search without a private best estimator"
        raise InvalidInput("fitted", problem, "let it end in a private estimator, and leave refit at True")
    candidates = [clone(search.estimator).set_params(**given) for given in search.cv_results_["params"]]
    marks = _marks([*_unpaid(search), *(reason for each in candidates for reason in _unplanned(each, public))])
    if marks:
        return _with(best, final, marks)
    ends = [end for end in map(_final, candidates) if end is not None]
    if ends[search.best_index_].plan().event() != final.release_.event:
        problem = "has an estimator whose arguments were changed after the search"
        raise InvalidInput("fitted", problem, "leave search.estimator as it was; search on a clone of what you change")
    folds = search.n_splits_
    events: list[Event] = []
    for event, count in Counter(end.plan().event() for end in ends).items():
        events.append(Repeated(event, folds * count))
    for scorer in _scorers(search):
        each = folds * len(candidates) * (2 if search.return_train_score else 1)
        events.append(Repeated(scorer.event, each))
    return _with(
        best, final, events, seeded=final.release_.tainted or any(end.random_state is not None for end in ends)
    )


def _scorers(search: Any) -> list[Any]:
    return list(search.scorer_.values()) if isinstance(search.scorer_, Mapping) else [search.scorer_]


def _unpaid(search: Any) -> Iterator[str]:
    """What a search looked at without paying."""
    if not all(isinstance(scorer, PrivateScorer) for scorer in _scorers(search)):
        yield "the search chose by scores of private rows that nobody paid for; use scoring=private_scorer(epsilon)"
    if callable(search.refit):
        yield "the search chose by a function that sees times of private rows; leave refit at True"
    if type(search.cv) is not HashedFolds:
        yield "the search's folds are such that one row moves others; use cv=HashedFolds(k)"


def _unplanned(candidate: Any, public: tuple[str, ...]) -> Iterator[str]:
    """Why a candidate's fits cannot be priced before rows are read."""
    yield from _learned(candidate, public)
    final = _final(candidate)
    if final is None:
        yield "a candidate of the search does not end in a private estimator"
    elif final.rows is None:
        yield "the fits counted the rows of their folds, which are private; give rows"
