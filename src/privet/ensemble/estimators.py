"""Any classifier of scikit-learn as a member."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from privet.core.errors import InvalidInput, MissingExtra
from privet.ensemble.drawing import seed
from privet.ensemble.learner import Task

__all__ = ["Estimator", "Fitted"]


@dataclass(frozen=True, eq=False)
class Fitted:
    """Fitted estimators, one for each member."""

    members: tuple[Any, ...] = field(repr=False)
    """Each an estimator, or the one class that the member always names."""
    classes: int

    @property
    def size(self) -> int:
        """How many members there are."""
        return len(self.members)

    def scores(self, inputs: Tensor) -> Tensor:
        """[members, rows, classes]: probabilities where the estimator has them, else 1 for the class it predicts."""
        rows = inputs.flatten(1).numpy()
        return torch.stack([self._one(member, rows) for member in self.members])

    def _one(self, member: Any, rows: Any) -> Tensor:
        if isinstance(member, int):
            return F.one_hot(torch.full((len(rows),), member), self.classes).float()
        if not hasattr(member, "predict_proba"):
            return F.one_hot(torch.tensor(np.asarray(member.predict(rows), dtype=np.int64)), self.classes).float()
        # A shard may lack a class, and then the estimator does not know of it. Copied: what comes from a cluster is
        # read-only.
        found = torch.zeros(len(rows), self.classes)
        known = torch.tensor(np.asarray(member.classes_, dtype=np.int64))
        found[:, known] = torch.from_numpy(np.asarray(member.predict_proba(rows), dtype=np.float32))
        return found


@dataclass(frozen=True)
class Estimator:
    """A classifier of scikit-learn, or of whatever has its interface, cloned for each member.

    Where it has a `random_state` that is not set, each member gets its own from the key. A member whose rows are of one
    class, or are refused by the estimator, always names its commonest class (0 without rows): no single row can stop
    the others. If all members are refused, the estimator's own complaint is raised.
    """

    estimator: Any
    key: str = "privet"

    def __post_init__(self) -> None:
        if not hasattr(self.estimator, "fit") or not hasattr(self.estimator, "predict"):
            problem = f"is a {type(self.estimator).__name__} without fit and predict"
            raise InvalidInput("estimator", problem, "give a classifier such as LogisticRegression()")

    def fit(self, task: Task) -> Fitted:
        """All members of the task, one after the other; `Processes` divides them among processes."""
        try:
            from sklearn.base import clone
        except ImportError:
            raise MissingExtra("scikit-learn", "train") from None
        inputs = task.inputs.flatten(1)
        found: list[Any] = []
        complaint: ValueError | None = None
        for place, own in enumerate(task.members):
            labels = task.labels[own]
            often = int(labels.bincount(minlength=task.classes).argmax())
            if int((labels.bincount() > 0).sum()) < 2:
                found.append(often)
                continue
            each = self._seeded(clone(self.estimator), task.first + place)
            rows = inputs[own].numpy()
            try:
                each.fit(rows, labels.numpy())
                each.predict(rows[:1])
                found.append(each)
            except ValueError as error:
                complaint = error
                found.append(often)
        if complaint is not None and all(isinstance(each, int) for each in found):
            raise InvalidInput("estimator", f"refuses every member's rows: {complaint}", "try it on made-up rows")
        return Fitted(tuple(found), task.classes)

    def _seeded(self, estimator: Any, number: int) -> Any:
        unset = {
            name: seed(self.key, "estimator", number, name)
            for name, value in estimator.get_params().items()
            if (name == "random_state" or name.endswith("__random_state")) and value is None
        }
        return estimator.set_params(**unset)
