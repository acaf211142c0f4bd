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
    """Metrics of one run of an MLflow experiment. Names of internal ones start with `INTERNAL/`, and a tag says so.

    Everyone who can read the server can read the internal values: enable them only if all of these may see the rows.
    """

    def __init__(
        self, experiment: str, run: str, *, uri: str | None = None, resume: bool = False, internal: bool = False
    ) -> None:
        """Create the run, or raise an error before anything is charged.

        Args:
            experiment: Name of the experiment; it is created if it does not exist.
            run: Name of the run; the experiment must not have one of this name, unless `resume` is true.
            uri: Address of the server, or a database such as sqlite:///mlflow.db; by default MLflow's own choice.
            resume: Whether to continue a run of that name; its steps are not written again.
            internal: Whether to send values that depend on private rows.

        Raises:
            InvalidInput: A name cannot be used, the run exists and `resume` is false, or MLflow refuses.
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
        """Return the run's id, and its last step for public and for internal metrics."""
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
        """Do nothing: metrics need no preparation.

        Args:
            scores: Names of the scores.
        """

    def write(self, reached: LogEntry) -> None:
        """Send all metrics of a step, unless the run already has it.

        Args:
            reached: The entry.
        """
        if reached.step > self._last:
            values = {"epsilon": reached.epsilon, "epoch": reached.epoch, **dict(reached.scores)}
            self._send(values, reached.step, round(reached.time.timestamp()))
            self._last, self._finished = reached.step, reached.step == reached.total

    def write_internal(self, step: int, values: Mapping[str, float]) -> None:
        """Send internal metrics, if they are enabled.

        Args:
            step: Number of the step.
            values: Internal values by name.
        """
        if self._internal and step > self._internal_last:
            self._send({_INTERNAL + name: value for name, value in values.items()}, step, round(time.time()))

    def _send(self, values: Mapping[str, float], step: int, seconds: int) -> None:
        metric = _module("entities").Metric
        with _said():
            points = [metric(name, value, 1000 * seconds, step) for name, value in values.items()]
            self._client.log_batch(self._id, metrics=points)

    def close(self) -> None:
        """Set the final status of the run: finished after the last step, otherwise killed."""
        with _said():
            self._client.set_terminated(self._id, "FINISHED" if self._finished else "KILLED")


def _module(name: str) -> Any:
    """Import one of MLflow's modules by name: it has no types where it is not installed."""
    try:
        return import_module(f"mlflow.{name}")
    except ImportError:
        raise MissingExtra("mlflow", "mlflow") from None


def _found(client: Any, experiment: str, run: str) -> Any:
    """Return the newest run of that name, or None."""
    place = client.get_experiment_by_name(experiment)
    if place is None:
        return None
    return next(iter(client.search_runs([place.experiment_id], f"attributes.run_name = '{run}'", max_results=1)), None)


@contextmanager
def _said() -> Iterator[None]:
    """Turn an error of MLflow into an `InvalidInput` of one line."""
    refusal: type[Exception] = _module("exceptions").MlflowException
    try:
        yield
    except (refusal, OSError) as error:
        said = _SECRET.sub("//***@", " ".join(str(error).split()))[:_LONGEST]
        raise InvalidInput("uri", f"cannot be used: {said}", "check the address, and that MLflow runs there") from None
