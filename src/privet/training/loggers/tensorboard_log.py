"""A log for TensorBoard."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privet.core import InvalidInput, MissingExtra
from privet.training.loggers.log_entry import MARK, ClosingLog, LogEntry

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

__all__ = ["TensorBoardLog"]

_FILES = "events.out.tfevents.*"


class TensorBoardLog(ClosingLog):
    """Curves of ε, epochs and scores by step; internal values are in the subdirectory `internal`, as another run.

    Only its owner can open that directory, and the names of its curves start with `INTERNAL`.
    """

    def __init__(self, folder: str | os.PathLike[str], *, resume: bool = False, internal: bool = False) -> None:
        """Create the directory, or raise an error before anything is charged.

        Args:
            folder: The directory; it must not hold a log, unless `resume` is true.
            resume: Whether to continue a log that is there; its steps are not written again.
            internal: Whether to write values that depend on private rows, to the subdirectory `internal`.

        Raises:
            InvalidInput: The directory cannot be written, or holds a log and `resume` is false.
        """
        place = Path(folder)
        self._writer, self._last = _opened(place, resume=resume)
        self._internal: SummaryWriter | None = None
        self._internal_last = 0
        if internal:
            self._internal, self._internal_last = _opened(place / "internal", resume=resume, private=True)
            self._internal.add_text("INTERNAL", MARK)

    def begin(self, scores: tuple[str, ...]) -> None:
        """Do nothing: curves need no preparation.

        Args:
            scores: Names of the scores.
        """

    def write(self, reached: LogEntry) -> None:
        """Add a point to every curve, unless the log already has this step.

        Args:
            reached: The entry.
        """
        if reached.step > self._last:
            for name, value in (("epsilon", reached.epsilon), ("epoch", reached.epoch), *reached.scores):
                self._writer.add_scalar(name, value, reached.step, walltime=reached.time.timestamp())
            self._writer.flush()
            self._last = reached.step

    def write_internal(self, step: int, values: Mapping[str, float]) -> None:
        """Add points to the internal curves, if they are enabled.

        Args:
            step: Number of the step.
            values: Internal values by name.
        """
        if self._internal is not None and step > self._internal_last:
            for name, value in values.items():
                self._internal.add_scalar(f"INTERNAL/{name}", value, step)
            self._internal.flush()

    def close(self) -> None:
        """Close the files."""
        self._writer.close()
        if self._internal is not None:
            self._internal.close()


def _opened(folder: Path, *, resume: bool, private: bool = False) -> tuple[SummaryWriter, int]:
    """Return a writer of a new file in this directory, and the last step of the other files there."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtra("tensorboard", "tensorboard") from None
    try:
        folder.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
        if private:
            folder.chmod(0o700)
        last = max(map(_last, folder.glob(_FILES)), default=0)
        if last and not resume:  # without a step it is what a run has left that was refused
            problem = f"is {str(folder)!r}, which holds a log already"
            raise InvalidInput("folder", problem, "name another folder, or go on with this one by resume=True")
        writer = SummaryWriter(str(folder))
        if private:
            for path in folder.glob(_FILES):
                path.chmod(0o600)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InvalidInput("folder", f"is {str(folder)!r}, which cannot be written: {reason}", "name another") from None
    return writer, last


def _last(path: Path) -> int:
    """Return the last step of a file; a truncated record at the end is ignored."""
    loader: Any = import_module("tensorboard.backend.event_processing.event_file_loader")  # it ships no types
    event: Any = import_module("tensorboard.compat.proto.event_pb2").Event
    records = loader.RawEventFileLoader(str(path)).Load()
    return max((int(event.FromString(record).step) for record in records), default=0)
