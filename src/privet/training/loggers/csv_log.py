"""A log as a CSV file, for a spreadsheet or a script."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from privet.training.loggers.lines import Lines
from privet.training.loggers.log_entry import MARK, ClosingLog, LogEntry

__all__ = ["CsvLog"]

_HEAD = ("step", "total", "epoch", "epsilon", "delta", "time")
_INTERNAL_HEAD = ("step", "name", "value")


class CsvLog(ClosingLog):
    """CSV file with one line for each logged step; internal values are in a separate file next to it.

    The internal file's name starts with `internal-`, its first line says what it is, and only its owner can read it.
    Every line is written immediately, so that a killed run loses none of them.
    """

    def __init__(self, path: str | os.PathLike[str], *, resume: bool = False, internal: bool = False) -> None:
        """Open the file, or raise an error before the run is charged.

        Args:
            path: The file, which must be empty or absent.
            resume: Whether to continue a file that has lines; its steps are not written again.
            internal: Whether to write values that depend on private rows, to a file called `internal-` plus the name.

        Raises:
            InvalidInput: The file cannot be written, or has lines and `resume` is false.
        """
        place = Path(path)
        self._lines = Lines(place, resume=resume)
        self._last: int | None = None
        self._internal, self._internal_last = None, 0
        if internal:
            self._internal = Lines(place.with_name(f"internal-{place.name}"), resume=resume, private=True)
            self._internal_last = self._internal.begin(f"# {MARK}\n{_row(_INTERNAL_HEAD)}")

    def begin(self, scores: tuple[str, ...]) -> None:
        """Set the columns; those of a resumed file must be the same.

        Args:
            scores: Names of the scores.

        Raises:
            InvalidInput: The resumed file has other columns.
        """
        self._last = self._lines.begin(_row((*_HEAD, *scores)))

    def write(self, reached: LogEntry) -> None:
        """Write a line, unless the file already has this step.

        Args:
            reached: The entry.
        """
        if self._last is None:
            self.begin(tuple(name for name, _ in reached.scores))
        if reached.step > (self._last or 0):
            start = (reached.step, reached.total, f"{reached.epoch:.6g}", repr(reached.epsilon), repr(reached.delta))
            scores = (repr(value) for _, value in reached.scores)
            self._lines.add(_row((*start, reached.time.isoformat(), *scores)))
            self._last = reached.step

    def write_internal(self, step: int, values: Mapping[str, float]) -> None:
        """Write a line for each value to the internal file, if there is one.

        Args:
            step: Number of the step.
            values: Internal values by name.
        """
        if self._internal is not None and step > self._internal_last:
            self._internal.add("".join(_row((step, name, repr(value))) for name, value in values.items()))

    def close(self) -> None:
        """Do nothing: the file is closed after each line."""


def _row(cells: Sequence[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
