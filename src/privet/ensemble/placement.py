"""Where members are trained: in this process, in several, or on a Ray cluster. The call is the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

import torch

from privet.core import MissingExtra, checked
from privet.ensemble.learner import Ensemble, EnsembleTask, Learner

__all__ = ["InProcess", "Placement", "Processes", "Ray"]


class Placement(Protocol):
    """A place that trains parts of a task; each part holds its own members' rows and no others."""

    @property
    def parts(self) -> int:
        """The number of parts that the members are divided into."""

    def fit(self, learner: Learner, parts: list[EnsembleTask]) -> list[Ensemble]:
        """Train one ensemble for each part, and return them in the order of the parts.

        Args:
            learner: The training method.
            parts: The tasks, each with its own members and their rows.
        """


@dataclass(frozen=True)
class InProcess:
    """Training in this process."""

    parts: int = field(default=1, init=False)
    """One part: all members together."""

    def fit(self, learner: Learner, parts: list[EnsembleTask]) -> list[Ensemble]:
        """Train one ensemble for each part, and return them in the order of the parts.

        Args:
            learner: The training method.
            parts: The tasks, each with its own members and their rows.
        """
        return [learner.fit(part) for part in parts]


@dataclass(frozen=True)
class Processes:
    """Training in several processes of this machine, by joblib."""

    jobs: int = 2
    parts_each: int = 4
    """Parts for each process: more parts balance the load better."""

    def __post_init__(self) -> None:
        checked.count("jobs", self.jobs)
        checked.count("parts_each", self.parts_each)

    @property
    def parts(self) -> int:
        """The number of parts that the members are divided into."""
        return self.jobs * self.parts_each

    def fit(self, learner: Learner, parts: list[EnsembleTask]) -> list[Ensemble]:
        """Train one ensemble for each part, and return them in the order of the parts.

        Args:
            learner: The training method.
            parts: The tasks, each with its own members and their rows.

        Raises:
            MissingExtra: If joblib is not installed.
        """
        joblib = _imported("joblib", "train")
        work = joblib.delayed(_alone)
        found: list[Ensemble] = joblib.Parallel(n_jobs=self.jobs)(work(learner, part) for part in parts)
        return found


@dataclass(frozen=True)
class Ray:
    """Training on a Ray cluster. Its machines must be trusted: they see the private rows of the members they train.

    Without an address, Ray runs on this machine for the duration of the call.
    """

    parts: int = 16
    """The number of parts that the members are divided into."""
    address: str | None = None
    """The address of a running cluster, such as `auto` or `ray://head:10001`."""

    def __post_init__(self) -> None:
        checked.count("parts", self.parts)

    def fit(self, learner: Learner, parts: list[EnsembleTask]) -> list[Ensemble]:
        """Train one ensemble for each part, and return them in the order of the parts.

        Args:
            learner: The training method.
            parts: The tasks, each with its own members and their rows.

        Raises:
            MissingExtra: If Ray is not installed.
        """
        ray = _imported("ray", "ray")
        started = not ray.is_initialized()
        if started:
            ray.init(address=self.address, log_to_driver=False)
        try:
            work = ray.remote(_alone)
            held = ray.put(learner)
            found: list[Ensemble] = ray.get([work.remote(held, part) for part in parts])
        finally:
            if started:
                ray.shutdown()
        return found


def _alone(learner: Learner, part: EnsembleTask) -> Ensemble:
    """Train a part in a worker process, which is one of several and uses one thread."""
    torch.set_num_threads(1)
    return learner.fit(part)


def _imported(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtra(name, extra) from None
