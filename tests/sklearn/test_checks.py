"""scikit-learn's own checks of its API: all that pass, and by name those that privacy does not allow."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator, check_regressors_train

from privet.sklearn import PrivateClassifier, PrivateRegressor

ROWS = "what is in a row never raises; a cell or a target that fits nothing follows a public rule"
CLASSES = "classes_ are those of the constructor: reading them from y, as the check wants, would tell of single rows"
NOISE = "wants a good fit of 200 rows, which ε = 8 does not allow"

CLASSIFIER = {
    "check_dtype_object": ROWS,
    "check_supervised_y_no_nan": ROWS,
    "check_classifiers_regression_target": ROWS,
    "check_classifiers_classes": CLASSES,
    "check_classifiers_train": CLASSES,
}
REGRESSOR = {
    "check_dtype_object": ROWS,
    "check_supervised_y_no_nan": ROWS,
    "check_regressors_train": NOISE,
}
CASES = [
    (PrivateClassifier(8.0, source="domain limit", bounds=(-10, 10), classes=(0, 1, 2), bins=4, epochs=1), CLASSIFIER),
    (
        PrivateRegressor(8.0, source="domain limit", bounds=(-10, 10), target_bounds=(-300, 300), bins=4, epochs=1),
        REGRESSOR,
    ),
]


@pytest.mark.parametrize(("estimator", "expected"), CASES, ids=["classifier", "regressor"])
def test_the_checks_of_scikit_learn(estimator: Any, expected: dict[str, str]) -> None:
    """Catches whatever breaks cloning, pickling, names of columns, repeated fits or messages; and a stale list."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # remarks of the checks about themselves
        found = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    failed = {each["check_name"]: each["exception"] for each in found if each["status"] == "failed"}
    assert not failed
    assert {each["check_name"] for each in found if each["status"] == "xfail"} == set(expected)
    assert sum(each["status"] == "passed" for each in found) >= 40


def test_with_little_noise_the_regressor_fits() -> None:
    """The check that noise forbids passes at ε = 50: catches a regressor that does not learn."""
    check_regressors_train(
        "PrivateRegressor",
        PrivateRegressor(
            50.0, source="domain limit", bounds=(-4, 4), target_bounds=(-3, 3), bins=4, epochs=20, public_scores=True
        ),
    )
