"""Scores that are paid for, folds in which rows stay where they are, and what pipelines and searches cost in all."""

from __future__ import annotations

import copy
import pickle
from math import sinh
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from privet.accounting import epsilon as price
from privet.core.errors import BudgetExceeded, InvalidInput
from privet.core.event import Composed, Repeated
from privet.core.random import SeededRng
from privet.core.unit import Unit
from privet.ledger import Ledger
from privet.sklearn import (
    HashedFolds,
    PrivateClassifier,
    PrivateRegressor,
    PrivateScorer,
    private_fit,
    private_scorer,
    release_of,
)

GRID = {"bins": [2, 4]}


def made_up(rows: int = 120) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    x = np.random.default_rng(0).uniform(0, 1, (rows, 2))
    return x, (x[:, 0] > 0.5).astype(int)


def classifier(**changed: Any) -> PrivateClassifier:
    given: dict[str, Any] = {
        "source": "codebook",
        "bounds": (0, 1),
        "classes": [0, 1],
        "rows": 100,
        "delta": 1e-4,
        "bins": 2,
        "epochs": 1,
    }
    return PrivateClassifier(**(given | changed))


def search(estimator: Any, grid: Any = None, **changed: Any) -> GridSearchCV:
    given = {"scoring": private_scorer(0.5), "cv": HashedFolds(3), "error_score": "raise"}
    return GridSearchCV(estimator, GRID if grid is None else grid, **(given | changed))


class Says:
    """A model that knows the answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def predict(self, rows: Any) -> npt.NDArray[Any]:
        return np.full(len(rows), self.answer)


@pytest.mark.parametrize(
    ("scorer", "answer"),
    [(private_scorer(0.5), 1), (private_scorer(0.5, target_bounds=(0, 4), source="domain limit"), 4.0)],
)
def test_a_score_has_its_price_and_its_noise(scorer: Any, answer: Any) -> None:
    """Catches halved noise, and an ε that is split between the two sums, or spent on each.

    The mean size of noise that e^(-ε|x|) weighs is step / sinh(ε·step), on multiples of a step. 2,000 draws have a
    standard error of 2.2 % of it; within five of them, false alarms are below 1e-6, and half of it is far off.
    """
    assert price(scorer.event, 0.0, unit=Unit()).epsilon.upper == 0.5
    bounded = scorer.mechanism.query(scorer._scores(np.array([answer]), np.array([answer])))
    assert np.abs(bounded.value).sum() == pytest.approx(1.0)
    assert (bounded.l1, bounded.unit) == (1.0, Unit())
    rng = SeededRng(1)
    drawn = np.array([scorer.mechanism.noise.release(bounded, rng=rng).value for _ in range(1000)])
    step = scorer.mechanism.noise.grid.step
    expected = step / sinh(0.5 * step)
    assert np.abs(drawn - bounded.value).mean() == pytest.approx(expected, rel=0.11)
    assert scorer.release(Says(answer), np.zeros((1, 1)), [answer], rng=rng).event == scorer.event


def test_scores_are_near_the_truth() -> None:
    """Catches a share of the wrong sum: 3,000 rows, of which a quarter is right."""
    right = private_scorer(2.0)(Says(1), np.zeros((3000, 1)), np.arange(3000) % 4)
    assert right == pytest.approx(0.25, abs=0.02)
    close = private_scorer(2.0, target_bounds=(0, 10), source="domain limit")(
        Says(4.0), np.zeros((3000, 1)), np.full(3000, 6.0)
    )
    assert close == pytest.approx(0.8, abs=0.02)


def test_odd_rows_are_wrong_rows() -> None:
    """What rows hold is no reason to stop, and no rows are no reason either."""
    odd = np.array([float("nan"), None, "x"], dtype=object)
    for scorer in (private_scorer(1.0), private_scorer(1.0, target_bounds=(0, 1), source="domain limit")):
        for answers in (odd, np.zeros(0)):
            assert 0.0 <= scorer(Says(0.5), np.zeros((len(answers), 1)), answers) <= 1.0


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 1.0, "target_bounds": (1, 0), "source": "codebook"}, "target_bounds"),
        ({"epsilon": 1.0, "target_bounds": (0, 1)}, "source"),
        ({"epsilon": 1.0, "ledger": "ledger.db"}, "budget"),
        ({"epsilon": 1.0, "ledger": SeededRng(1), "budget": "b"}, "ledger"),
    ],
)
def test_what_no_scorer_can_be_is_refused(given: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        private_scorer(**given)
    assert caught.value.argument == named


def test_scorers_copy_and_pickle() -> None:
    scorer = private_scorer(1.0, ledger="ledger.db", budget="b")
    assert pickle.loads(pickle.dumps(scorer)) == copy.deepcopy(scorer) == scorer


def test_a_search_charges_every_fit_and_every_score(tmp_path: Path) -> None:
    """Catches a fit or a score that is free: 2 candidates in 3 folds, and the last fit."""
    x, y = made_up()
    place = tmp_path / "ledger.db"
    with Ledger(place) as ledger:
        ledger.create("clinic", epsilon=50.0, delta=1e-2)
        found = search(
            classifier(ledger=place, budget="clinic"), scoring=private_scorer(0.5, ledger=place, budget="clinic")
        )
        found.fit(x, y)
        purposes = [entry.purpose for entry in ledger.show("clinic").entries]
        assert purposes.count("PrivateClassifier.fit") == 7
        assert purposes.count("private score") == 6
        found.score(x, y)
        assert len(ledger.show("clinic").entries) == 14
        ledger.create("small", epsilon=2.5, delta=1e-2)
        poor = search(
            classifier(ledger=place, budget="small"), scoring=private_scorer(0.5, ledger=place, budget="small")
        )
        with pytest.raises(BudgetExceeded):
            poor.fit(x, y)
        assert ledger.budget("small").epsilon_left >= 0


def test_the_price_of_a_search_is_that_of_all_its_parts() -> None:
    """Catches a part that is left out: the event and ε are compared with a composition that is written out here."""
    x, y = made_up()
    found = search(classifier(), {"epsilon": [0.5, 1.0]}, return_train_score=True)
    release = private_fit(found, x, y)
    fits = [classifier(epsilon=each).plan().event() for each in (0.5, 1.0)]
    last = found.best_estimator_.release_.event
    whole = Composed((last, *(Repeated(fit, 3) for fit in fits), Repeated(private_scorer(0.5).event, 12)))
    assert release.guarantee is not None
    assert release.value is found.best_estimator_
    assert release.guarantee.epsilon.upper == pytest.approx(price(whole, 1e-4).epsilon.upper, rel=1e-9)
    assert price(release.event, 1e-4).epsilon.upper == pytest.approx(release.guarantee.epsilon.upper, rel=1e-9)
    assert release.guarantee.epsilon.upper > found.best_estimator_.guarantee_.epsilon.upper
    assert not release.tainted


def test_random_searches_and_pipelines_have_prices_too() -> None:
    x, y = made_up()
    pipe = Pipeline([("length", Normalizer()), ("model", classifier(random_state=3))])
    found = RandomizedSearchCV(
        pipe, {"model__bins": [2, 3, 4]}, n_iter=2, scoring=private_scorer(0.5), cv=HashedFolds(2), error_score="raise"
    )
    with pytest.raises(InvalidInput, match=r"'length' .Normalizer. may have learned from the rows or raised by one"):
        private_fit(found, x, y)  # a cell that is missing would raise, unpaid
    release = private_fit(found, x, y, public_steps=["length"])
    assert release.guarantee is not None
    assert 1.0 < release.guarantee.epsilon.upper < 8.0
    assert release.tainted


def function_of(rows: Any) -> Any:
    return rows


class Silent(PrivateScorer):
    """A scorer with the price of ours, and without its noise."""

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        return float((estimator.predict(X) == y).mean())


class Scaled(PrivateClassifier):
    """A classifier with the guarantee of ours, and means of the rows inside."""


class Own(GridSearchCV):  # type: ignore[misc]
    """A search that could do anything."""


UNPAID: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"scoring": "accuracy"}, {}, "nobody paid"),
    ({"scoring": Silent(0.5)}, {}, "nobody paid"),
    ({"scoring": {"a": private_scorer(0.5), "b": "accuracy"}, "refit": "a"}, {}, "nobody paid"),
    ({"scoring": None}, {"public_scores": True}, "nobody paid"),
    ({"cv": KFold(3)}, {}, "one row moves others"),
    ({"cv": 3}, {}, "one row moves others"),
    ({"refit": lambda results: 0}, {}, "times"),
    ({"refit": False}, {}, "no last fit"),
    ({}, {"rows": None}, "counted the rows"),
]


@pytest.mark.parametrize(("changed", "estimator", "reason"), UNPAID)
def test_a_search_that_would_look_without_paying_is_refused(changed: Any, estimator: Any, reason: str) -> None:
    """Catches a finite ε for a choice that nobody paid for, and fits that were made before it was noticed."""
    x, y = made_up()
    found = search(classifier(**estimator), **changed)
    with pytest.raises(InvalidInput, match=reason):
        private_fit(found, x, y)
    assert not hasattr(found, "cv_results_")


def test_classes_of_someones_own_are_refused() -> None:
    """Catches a price by the name of a parent, whose methods a child may have replaced."""
    x, y = made_up()
    given: dict[str, Any] = {
        "source": "codebook",
        "bounds": (0, 1),
        "classes": [0, 1],
        "rows": 100,
        "bins": 2,
        "epochs": 1,
    }
    own = Own(classifier(), GRID, scoring=private_scorer(0.5), cv=HashedFolds(2))
    for made in (Scaled(**given), search(Scaled(**given)), own):
        with pytest.raises(InvalidInput, match="class of someone's own"):
            private_fit(made, x, y)
    marked = release_of(Scaled(**given).fit(x, y)).guarantee
    assert marked is not None
    assert marked.epsilon.upper == float("inf")


def test_a_candidate_that_is_drawn_and_not_private_is_marked() -> None:
    x, y = made_up()
    drawn = RandomizedSearchCV(
        classifier(), {"rows": [None]}, n_iter=1, scoring=private_scorer(0.5), cv=HashedFolds(2), error_score="raise"
    )
    marked = private_fit(drawn, x, y).guarantee
    assert marked is not None
    assert marked.epsilon.upper == float("inf")
    assert "counted the rows" in marked.assumptions[0]


@pytest.mark.parametrize("made", [{}, {"cv": KFold(3)}, {"scoring": "accuracy"}, {"refit": lambda results: 0}])
def test_of_a_search_nothing_is_believed_afterwards(made: dict[str, Any]) -> None:
    """Catches a finite ε for a search by `KFold`, or by plain scores, that was given our folds and scorer after it."""
    x, y = made_up()
    found = search(classifier(), **made).fit(x, y)
    for _ in range(2):
        release = release_of(found)
        assert release.guarantee is not None
        assert release.guarantee.epsilon.upper == float("inf")
        assert "private_fit" in release.guarantee.assumptions[0]
        assert price(release.event, 1e-4, unit=release.unit).epsilon.upper == float("inf")
        found.set_params(cv=HashedFolds(3), scoring=private_scorer(0.5), refit=True)
        found.scorer_ = found.scoring


def test_without_a_scorer_nothing_is_fitted(tmp_path: Path) -> None:
    """Catches a search by plain scores that shows only after all fits were charged."""
    x, y = made_up()
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.create("clinic", epsilon=5.0, delta=1e-2)
        with pytest.raises(TypeError, match="score"):
            GridSearchCV(classifier(ledger=tmp_path / "ledger.db", budget="clinic"), GRID).fit(x, y)
        assert not ledger.show("clinic").entries


def test_steps_that_learn_are_marked() -> None:
    """Catches a scaler's mean that leaves with the model; a promise takes the mark away, where the user makes it."""
    x, y = made_up()
    scaled = Pipeline([("scale", StandardScaler()), ("model", classifier())]).fit(x, y)
    marked = release_of(scaled).guarantee
    assert marked is not None
    assert marked.epsilon.upper == float("inf")
    assert "'scale' (StandardScaler)" in marked.assumptions[0]
    own = Pipeline([("own", FunctionTransformer(function_of)), ("none", "passthrough"), ("model", classifier())]).fit(
        x, y
    )
    for promised, finite in (((), False), (("own",), True)):
        guarantee = release_of(own, public_steps=promised).guarantee
        assert guarantee is not None
        assert (guarantee.epsilon.upper <= 1.0) is finite
    assert release_of(own[-1]).draws == own[-1].release_.draws
    with pytest.raises(InvalidInput, match="StandardScaler"):
        private_fit(scaled, x, y)
    again = private_fit(own, x, y, public_steps=["own"])
    assert again.value is own
    assert again.draws == own[-1].release_.draws


def test_what_is_not_ours_has_no_release() -> None:
    x, y = made_up()
    with pytest.raises(InvalidInput, match="fitted"):
        release_of(RandomForestClassifier(2).fit(x, y))
    with pytest.raises(InvalidInput, match="refit"):
        release_of(search(classifier(), refit=False).fit(x, y))
    with pytest.raises(InvalidInput, match="estimator"):
        private_fit(RandomForestClassifier(2), x, y)


def test_cross_validation_with_regressors(tmp_path: Path) -> None:
    x, _ = made_up()
    model = PrivateRegressor(source="domain limit", bounds=(0, 1), target_bounds=(0, 1), rows=100, bins=2, epochs=1)
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.create("clinic", epsilon=5.0, delta=1e-2)
        scorer = private_scorer(
            0.5, target_bounds=(0, 1), source="codebook", ledger=tmp_path / "ledger.db", budget="clinic"
        )
        scores = cross_val_score(model, x, x[:, 0], scoring=scorer, cv=HashedFolds(3), error_score="raise")
        assert len(ledger.show("clinic").entries) == len(scores) == 3


@pytest.mark.parametrize("texts", [False, True])
def test_a_row_that_goes_moves_no_other(texts: bool) -> None:
    """Catches folds by place or by class, such as scikit-learn's own: with KFold some rows would move."""
    x, _ = made_up(200)
    rows = np.array([[f"n{cell:.3f}", cell] for cell in x[:, 0]], dtype=object) if texts else x

    def fold(cv: Any, some: Any) -> npt.NDArray[np.int64]:
        found = np.full(len(some), -1)
        for place, (train, test) in enumerate(cv.split(some)):
            assert len(train) + len(test) == len(some)
            found[test] = place
        return found

    whole = fold(HashedFolds(4), rows)
    assert (whole[1:] == fold(HashedFolds(4), rows[1:])).all()
    assert (fold(KFold(4), rows)[1:] != fold(KFold(4), rows[1:])).any()
    # Each fold has 50 rows on average, with a deviation of 6.1: five of them, false alarms below 1e-5.
    assert np.bincount(whole, minlength=4) == pytest.approx(50, abs=31)
    assert (whole != fold(HashedFolds(4, key="another"), rows)).any()
    assert HashedFolds(4).get_n_splits() == 4
    with pytest.raises(InvalidInput, match="n_splits"):
        HashedFolds(1)
    with pytest.raises(InvalidInput, match="groups"):
        next(HashedFolds(2).split(rows, groups=np.zeros(len(rows))))
