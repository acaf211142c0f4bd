"""Private estimators on scikit-learn's public API, a scorer that charges for its scores, and folds that fit both."""

from __future__ import annotations

from importlib.util import find_spec

from privet.core import MissingExtra as _MissingExtra

if find_spec("sklearn") is None:
    raise _MissingExtra("scikit-learn", "train")
if find_spec("torch") is None:
    raise _MissingExtra("torch", "train")

from privet.sklearn.estimators import PrivateClassifier, PrivateRegressor
from privet.sklearn.folds import HashedFolds
from privet.sklearn.scorer import PrivateScorer, private_scorer
from privet.sklearn.searches import private_fit, release_of

__all__ = [
    "HashedFolds",
    "PrivateClassifier",
    "PrivateRegressor",
    "PrivateScorer",
    "private_fit",
    "private_scorer",
    "release_of",
]
