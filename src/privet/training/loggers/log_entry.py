"""What a log is told, and what a log is."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Protocol, Self

from privet.core import InvalidInput

__all__ = ["MARK", "ClosingLog", "Log", "LogEntry", "check_names"]

MARK = "INTERNAL: computed from private rows, and not paid for; do not share"
"""What every log with internal values says of itself."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_./ -]{0,99}")
_OWN = frozenset({"step", "total", "epoch", "epsilon", "delta", "time"})


@dataclass(frozen=True)
class LogEntry:
    """Progress of a run. It depends on the data only through released values."""

    step: int
    """Steps made so far, from 1 on."""
    total: int
    """Steps of the plan."""
    epoch: float
    """How often a row was used so far, on average."""
    epsilon: float
    """What the steps so far cost, at most. Whoever stops early pays the whole plan all the same."""
    delta: float
    time: datetime
    """In UTC, to the second: finer ones would tell the sizes of single batches."""
    scores: tuple[tuple[str, float], ...] = ()
    """Of the model as it is now, on public rows alone."""


class Log(Protocol):
    """Log of a run. Internal values are written separately, and are dropped unless the log was opened for them."""

    def begin(self, scores: tuple[str, ...]) -> None:
        """Prepare the log for the scores that will be written, before anything is charged.

        Args:
            scores: Names of the scores.
        """

    def write(self, reached: LogEntry) -> None:
        """Write an entry, unless the log already has its step.

        Args:
            reached: The entry.
        """

    def write_internal(self, step: int, values: Mapping[str, float]) -> None:
        """Write values that depend on private rows, if the log was opened for them; otherwise drop them.

        Args:
            step: Number of the step.
            values: Internal values by name.
        """

    def close(self) -> None:
        """Close the log; a second call does nothing."""


class ClosingLog(ABC):
    """Base of logs that a `with` statement closes."""

    @abstractmethod
    def close(self) -> None:
        """Close the log; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def check_names(argument: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names after checking that every kind of log accepts them and that no column has them.

    Args:
        argument: Name of the argument, for the message.
        names: The names.

    Raises:
        InvalidInput: A name has unusual characters, or is a column of the log.

    >>> check_names("scores", ["test accuracy"])
    ('test accuracy',)
    """
    found = tuple(names)
    for name in found:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            problem = f"has the name {name!r}"
            raise InvalidInput(argument, problem, "use up to 100 letters, digits, blanks and _ - . / from a letter on")
        if name in _OWN:
            raise InvalidInput(argument, f"has the name {name!r}, which the log uses itself", "choose another")
    return found
