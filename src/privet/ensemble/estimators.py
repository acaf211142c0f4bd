"""Ensembles whose members are scikit-learn classifiers."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from warnings import catch_warnings

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from privet.core import InvalidInput, MissingExtra
from privet.ensemble.learner import EnsembleTask
from privet.ensemble.seeding import generator, seed_of

__all__ = ["Estimator", "FittedEstimators"]

_MADE_UP = (20, 1000)
"""Numbers of synthetic rows of each class that an estimator is tried on; the second if it refuses the first."""
_REFUSALS: tuple[type[Exception], ...] = tuple(
    kind
    for kind in vars(builtins).values()
    if isinstance(kind, type) and issubclass(kind, Exception) and kind is not Exception
)
"""Built-in errors that estimators raise. Whether they do depends on the rows, and some messages quote rows."""


@dataclass(frozen=True, eq=False)
class FittedEstimators:
    """Fitted estimators, one for each member."""

    members: tuple[Any, ...] = field(repr=False)
    """Each an estimator, or None where a member always predicts its most common class."""
    commonest: tuple[int, ...] = field(repr=False)
    """Each member's most common class."""
    tried: Any = field(repr=False)
    """The estimator fitted on synthetic rows. What it refuses is refused for all members and reveals none of them."""
    classes: int

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.members)

    def scores(self, inputs: Tensor) -> Tensor:
        """Return scores [members, rows, classes]: probabilities where available, else 1 for the predicted class.

        A member that cannot score these rows predicts its most common class.

        Args:
            inputs: [rows, …]: public rows.

        Raises:
            InvalidInput: If the estimator that was fitted on synthetic rows refuses the inputs.
        """
        rows, refusals = inputs.flatten(1).numpy(), _refusals(self.tried)
        found = torch.zeros(self.size, len(rows), self.classes)
        with catch_warnings(action="ignore"):
            try:
                _scores(self.tried, rows, self.classes)
            except refusals as error:
                raise InvalidInput("inputs", f"are refused by the estimator: {error}", "ask about others") from error
            for place, (member, often) in enumerate(zip(self.members, self.commonest, strict=True)):
                found[place, :, often] = 1.0
                if member is not None:
                    with suppress(*refusals):
                        found[place] = _scores(member, rows, self.classes)
        return found


@dataclass(frozen=True)
class Estimator:
    """A scikit-learn classifier, or any object with its interface, cloned for each member.

    If it has a `random_state` that is not set, each member gets its own from the key. The estimator is first tried on
    synthetic rows between 0 and 1, and errors on those are raised. On private rows no error is raised and no warning is
    shown: a member whose rows have only one class, or are refused, always predicts its most common class (0 without
    rows). Refusals are Python's built-in errors, and those that the modules of the estimator and of its parts define.
    """

    estimator: Any
    key: str = "privet"

    def __post_init__(self) -> None:
        if not all(hasattr(self.estimator, name) for name in ("fit", "predict", "get_params", "set_params")):
            problem = f"is a {type(self.estimator).__name__} without fit, predict, get_params and set_params"
            raise InvalidInput("estimator", problem, "give a classifier such as LogisticRegression()")

    def fit(self, task: EnsembleTask) -> FittedEstimators:
        """Fit all members of the task, one after the other; `Processes` divides them among processes.

        Args:
            task: The private rows, their labels, and the rows of each member.

        Raises:
            InvalidInput: If the estimator refuses synthetic rows of this shape.
            MissingExtra: If scikit-learn is not installed.
        """
        try:
            from sklearn.base import clone
        except ImportError:
            raise MissingExtra("scikit-learn", "train") from None
        inputs, refusals = task.inputs.flatten(1), _refusals(self.estimator)
        found: list[Any] = []
        commonest: list[int] = []
        with catch_warnings(action="ignore"):
            tried = self._tried(clone, inputs[:0], task.classes)
            for place, own in enumerate(task.members):
                labels = task.labels[own]
                seen = labels.bincount(minlength=task.classes)
                commonest.append(int(seen.argmax()))
                found.append(None)
                if int((seen > 0).sum()) < 2:
                    continue
                with suppress(*refusals):
                    rows = inputs[own].numpy()
                    found[place] = self._fitted(clone, task.first + place, rows, labels.numpy(), rows[:1], task.classes)
        return FittedEstimators(tuple(found), tuple(commonest), tried, task.classes)

    def _tried(self, clone: Callable[[Any], Any], like: Tensor, classes: int) -> Any:
        """Return the estimator fitted on rows that follow from public numbers alone."""
        complaint: Exception | None = None
        for each in _MADE_UP:
            labels = torch.arange(each * classes) % classes
            drawn = torch.rand(len(labels), like.shape[1], generator=generator(self.key, "made-up rows"))
            rows = ((drawn + labels[:, None]) / classes).to(like.dtype).numpy()
            try:
                return self._fitted(clone, "made-up", rows, labels.numpy(), rows, classes)
            except _refusals(self.estimator) as error:
                complaint = error
        problem = f"refuses made-up rows of {like.shape[1]} features and {classes} classes: {complaint}"
        raise InvalidInput("estimator", problem, "choose settings that suit such rows") from complaint

    def _fitted(
        self, clone: Callable[[Any], Any], number: int | str, rows: Any, labels: Any, probe: Any, classes: int
    ) -> Any:
        """Return a fitted clone with its own random state, after checking that it can score the rows of `probe`."""
        estimator = clone(self.estimator)
        unset = {
            name: seed_of(self.key, "estimator", number, name)
            for name, value in estimator.get_params().items()
            if (name == "random_state" or name.endswith("__random_state")) and value is None
        }
        estimator.set_params(**unset).fit(rows, labels)
        _scores(estimator, probe, classes)
        return estimator


def _scores(member: Any, rows: Any, classes: int) -> Tensor:
    if not hasattr(member, "predict_proba"):
        return F.one_hot(torch.tensor(np.asarray(member.predict(rows), dtype=np.int64)), classes).float()
    # A shard may lack a class, and then the estimator does not know of it. Copy the arrays: those from a cluster are
    # read-only.
    found = torch.zeros(len(rows), classes)
    known = torch.tensor(np.asarray(member.classes_, dtype=np.int64))
    found[:, known] = torch.from_numpy(np.asarray(member.predict_proba(rows), dtype=np.float32))
    return found


def _refusals(estimator: Any) -> tuple[type[Exception], ...]:
    """Return Python's built-in errors, and those that the modules of an estimator and of its parts define.

    Some libraries have errors that do not derive from Python's, such as LightGBM's and CatBoost's.
    """
    kinds = {kind for part in (estimator, *estimator.get_params().values()) for kind in type(part).__mro__}
    modules = [sys.modules[name] for name in {kind.__module__ for kind in kinds} - {"builtins"} if name in sys.modules]
    named = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    return (*_REFUSALS, *(each for each in named if issubclass(each, Exception)))
