"""A log on an MLflow server, or in its database."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from privet.core import InvalidInput, MissingExtra
from privet.training.loggers.log_entry import MARK, ClosingLog, LogEntry

__all__ = ["MlflowLog"]

_INTERNAL = "INTERNAL/"
_TAG = "privet.internal"
_SECRET = re.compile(r"//[^/@\s]*@")
"""A user and password in an address."""
_LONGEST = 300
"""So much of MLflow's own words is passed on."""


class MlflowLog(ClosingLog):
    """Metrics of one run of an experiment; names of internal ones begin with `INTERNAL/`, and the run's tags say so.

    Whoever can read the server can read internal values too: ask for them only where all of these may see the rows.
    """

    def __init__(
        self, experiment: str, run: str, *, uri: str | None = None, resume: bool = False, internal: bool = False
    ) -> None:
        """Make the run, or say now why that cannot be.

        Args:
            experiment: its name; it is made if it is not there.
            run: a name that no run of the experiment has yet.
            uri: the server's address, or a database such as sqlite:///mlflow.db; MLflow's own choice by default.
            resume: go on with the run of that name, if there is one; steps that it has are not written again.
            internal: also send what touches private rows.
        """
        for argument, name in (("experiment", experiment), ("run", run)):
            if not name.strip() or not name.isprintable() or set(name) & set("'\"`\\"):
                problem = f"is {name!r}, which is empty or has quotes or backslashes in it"
                raise InvalidInput(argument, problem, "choose a plain name")
        with _said():
            self._client: Any = _module("tracking").MlflowClient(tracking_uri=uri)
            found = _found(self._client, experiment, run)
            if found is not None and found.data.metrics and not resume:  # without any, it is what a refused run left
                problem = f"is {run!r}, which {experiment!r} has already"
                raise InvalidInput("run", problem, "name another, or go on with this one by resume=True")
            self._id, self._last, self._internal_last = self._opened(experiment, run, found)
            self._internal = internal
            if internal:
                self._client.set_tag(self._id, _TAG, MARK)
        self._finished = False

    def _opened(self, experiment: str, run: str, found: Any) -> tuple[str, int, int]:
        """The run's id, and the last step that it has, of both kinds."""
        if found is None:
            place = self._client.get_experiment_by_name(experiment)
            id_ = self._client.create_experiment(experiment) if place is None else place.experiment_id
            return str(self._client.create_run(id_, run_name=run).info.run_id), 0, 0
        own, names = found.info.run_id, found.data.metrics
        self._client.update_run(own, status="RUNNING")

        def last(internal: bool) -> int:
            among = [name for name in names if name.startswith(_INTERNAL) is internal]
            return max(
                (point.step for name in among for point in self._client.get_metric_history(own, name)), default=0
            )

        return own, last(False), last(True)

    def begin(self, scores: tuple[str, ...]) -> None:
        """Metrics may come and go, so that there is nothing to prepare."""

    def write(self, reached: LogEntry) -> None:
        """Send all metrics of a step."""
        if reached.step > self._last:
            values = {"epsilon": reached.epsilon, "epoch": reached.epoch, **dict(reached.scores)}
            self._send(values, reached.step, round(reached.time.timestamp()))
            self._last, self._finished = reached.step, reached.step == reached.total

    def write_internal(self, step: int, values: Mapping[str, float]) -> None:
        """Send internal metrics, if that was asked for."""
        if self._internal and step > self._internal_last:
            self._send({_INTERNAL + name: value for name, value in values.items()}, step, round(time.time()))

    def _send(self, values: Mapping[str, float], step: int, seconds: int) -> None:
        metric = _module("entities").Metric
        with _said():
            points = [metric(name, value, 1000 * seconds, step) for name, value in values.items()]
            self._client.log_batch(self._id, metrics=points)

    def close(self) -> None:
        """Say how the run ended: finished with its last step, else killed."""
        with _said():
            self._client.set_terminated(self._id, "FINISHED" if self._finished else "KILLED")


def _module(name: str) -> Any:
    """One of MLflow's modules, by name: it ships no types where it is absent."""
    try:
        return import_module(f"mlflow.{name}")
    except ImportError:
        raise MissingExtra("mlflow", "mlflow") from None


def _found(client: Any, experiment: str, run: str) -> Any:
    """The newest run of that name, or None."""
    place = client.get_experiment_by_name(experiment)
    if place is None:
        return None
    return next(iter(client.search_runs([place.experiment_id], f"attributes.run_name = '{run}'", max_results=1)), None)


@contextmanager
def _said() -> Iterator[None]:
    """What MLflow refuses, in one line."""
    refusal: type[Exception] = _module("exceptions").MlflowException
    try:
        yield
    except (refusal, OSError) as error:
        said = _SECRET.sub("//***@", " ".join(str(error).split()))[:_LONGEST]
        raise InvalidInput("uri", f"cannot be used: {said}", "check the address, and that MLflow runs there") from None
