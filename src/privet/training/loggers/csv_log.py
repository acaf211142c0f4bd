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
    """One line for each step that is logged; internal values are in a file of their own, beside it.

    The internal file's name begins with `internal-`, its first line says what it is, and only its owner can read it.
    Every line is written at once, so that a run that is killed leaves all of them.
    """

    def __init__(self, path: str | os.PathLike[str], *, resume: bool = False, internal: bool = False) -> None:
        """Open the file, or say now why that cannot be.

        Args:
            path: the file, which must not hold anything yet.
            resume: go on with it, if it does; steps that it has are not written again.
            internal: also keep what touches private rows, in a file called `internal-` and the name.
        """
        place = Path(path)
        self._lines = Lines(place, resume=resume)
        self._last: int | None = None
        self._internal, self._internal_last = None, 0
        if internal:
            self._internal = Lines(place.with_name(f"internal-{place.name}"), resume=resume, private=True)
            self._internal_last = self._internal.begin(f"# {MARK}\n{_row(_INTERNAL_HEAD)}")

    def begin(self, scores: tuple[str, ...]) -> None:
        """Fix the columns; those of a file that is gone on with must be the same."""
        self._last = self._lines.begin(_row((*_HEAD, *scores)))

    def write(self, reached: LogEntry) -> None:
        """Add a line."""
        if self._last is None:
            self.begin(tuple(name for name, _ in reached.scores))
        if reached.step > (self._last or 0):
            start = (reached.step, reached.total, f"{reached.epoch:.6g}", repr(reached.epsilon), repr(reached.delta))
            scores = (repr(value) for _, value in reached.scores)
            self._lines.add(_row((*start, reached.time.isoformat(), *scores)))
            self._last = reached.step

    def write_internal(self, step: int, values: Mapping[str, float]) -> None:
        """Add a line for each value to the internal file, if there is one."""
        if self._internal is not None and step > self._internal_last:
            self._internal.add("".join(_row((step, name, repr(value))) for name, value in values.items()))

    def close(self) -> None:
        """Nothing is left open between two lines."""


def _row(cells: Sequence[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
