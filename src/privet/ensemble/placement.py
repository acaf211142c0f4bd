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
    """A place that fits parts of a task; each part holds its own members' rows and no others."""

    @property
    def parts(self) -> int:
        """Into how many parts the members are divided."""

    def fit(self, learner: Learner, parts: list[EnsembleTask]) -> list[Ensemble]:
        """One ensemble for each part, in their order."""


@dataclass(frozen=True)
class InProcess:
    """In this process."""

    parts: int = field(default=1, init=False)
    """One part: all members together."""

    def fit(self, learner: Learner, parts: list[EnsembleTask]) -> list[Ensemble]:
        """One ensemble for each part."""
        return [learner.fit(part) for part in parts]


@dataclass(frozen=True)
class Processes:
    """In processes of this machine, by joblib."""

    jobs: int = 2
    parts_each: int = 4
    """Parts for each process: more of them even out what is slow."""

    def __post_init__(self) -> None:
        checked.count("jobs", self.jobs)
        checked.count("parts_each", self.parts_each)

    @property
    def parts(self) -> int:
        """Into how many parts the members are divided."""
        return self.jobs * self.parts_each

    def fit(self, learner: Learner, parts: list[EnsembleTask]) -> list[Ensemble]:
        """One ensemble for each part."""
        joblib = _imported("joblib", "train")
        work = joblib.delayed(_alone)
        found: list[Ensemble] = joblib.Parallel(n_jobs=self.jobs)(work(learner, part) for part in parts)
        return found


@dataclass(frozen=True)
class Ray:
    """On a Ray cluster. Its machines see the private rows of the members that they train: they must be trusted.

    Without an address, Ray runs on this machine for as long as the call takes.
    """

    parts: int = 16
    """Into how many parts the members are divided."""
    address: str | None = None
    """Of a cluster that runs, such as `auto` or `ray://head:10001`."""

    def __post_init__(self) -> None:
        checked.count("parts", self.parts)

    def fit(self, learner: Learner, parts: list[EnsembleTask]) -> list[Ensemble]:
        """One ensemble for each part."""
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
    """In a process of its own, which is one of several: it keeps to one thread."""
    torch.set_num_threads(1)
    return learner.fit(part)


def _imported(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtra(name, extra) from None
