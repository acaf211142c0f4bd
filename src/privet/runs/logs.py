"""The logs of a run, by the shell's words."""

from __future__ import annotations

from pathlib import Path

from privet.core import InvalidInput
from privet.training.loggers import CsvLog, Log, MlflowLog, TensorBoardLog

__all__ = ["open_logs"]


def open_logs(words: tuple[str, ...], folder: Path, *, resume: bool, internal: bool) -> list[Log]:
    """Open the logs of a run.

    Args:
        words: `csv` or `tensorboard`, which are written to the run directory; or `mlflow:EXPERIMENT`.
        folder: Run directory.
        resume: Whether to continue logs that exist.
        internal: Whether to log values that depend on private rows.

    Raises:
        InvalidInput: A word is unknown, or a log cannot be opened.
    """
    found: list[Log] = []
    for word in words:
        name, _, rest = word.partition(":")
        if name == "csv" and not rest:
            found.append(CsvLog(folder / "log.csv", resume=resume, internal=internal))
        elif name == "tensorboard" and not rest:
            found.append(TensorBoardLog(folder / "tensorboard", resume=resume, internal=internal))
        elif name == "mlflow" and rest:
            found.append(MlflowLog(rest, folder.name, resume=resume, internal=internal))
        else:
            raise InvalidInput("log", f"is {word!r}", "use csv, tensorboard, or mlflow:EXPERIMENT")
    return found
