"""The directory of a run while it works: checked, locked, and left tidy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from pathlib import Path

from privet.core import InvalidInput, locked
from privet.report import INTERNAL_CARD, INTERNAL_PAGE, REPORT, require_folder
from privet.runs.directory import HIDDEN, LOCK, RunDirectory
from privet.runs.plan_file import PLAN
from privet.training.models import DESCRIPTION, WEIGHTS

__all__ = ["hold_directory"]


@contextmanager
def hold_directory(folder: Path, *, resume: bool) -> Iterator[RunDirectory]:
    """Hold the directory of a run, so that no other run works in it.

    Args:
        folder: Where the run goes.
        resume: Whether an interrupted run continues there.

    Raises:
        InvalidInput: The folder has files of somebody else, another run works there, or there is nothing to resume.
    """
    directory, made = RunDirectory(folder), list[Path]()
    if not resume:
        made = [path for path in (folder, *folder.parents) if not path.exists()]
        require_folder(folder)
        _require_free(directory)
    with ExitStack() as stack:
        stack.callback(_remove_empty, made)
        stack.enter_context(_alone(directory, resume=resume))
        yield directory


def _require_free(directory: RunDirectory) -> None:
    """Refuse, before anything is charged, a folder where a file of somebody's has the name of one that will be written;
    that of a run that was interrupted is told so instead."""
    if directory.unfinished:
        return
    for name in (REPORT, INTERNAL_PAGE, INTERNAL_CARD, WEIGHTS, DESCRIPTION, PLAN):
        if (directory.folder / name).exists():
            problem = f"is {str(directory.folder)!r}, which holds {name!r}, and no run of Privet's"
            raise InvalidInput("out", problem, "name another folder, so that nothing is lost")


@contextmanager
def _alone(directory: RunDirectory, *, resume: bool) -> Iterator[None]:
    """Lock the folder, before anything is charged: of two runs in it, one would lose what it has paid for."""
    if resume and not directory.hidden.exists():
        directory.read_interrupted()  # says what is wrong
    if directory.hidden.is_symlink():
        problem = f"is {str(directory.folder)!r}, whose {HIDDEN} leads elsewhere"
        raise InvalidInput("out", problem, "name another folder, so that nothing there is lost")
    directory.hidden.mkdir(mode=0o700, exist_ok=True)
    lock = directory.hidden / LOCK
    with FileIO(lock, "a") as file:
        # A run that ends takes its lock away, and then the one that is held here is nobody's.
        if not locked(file) or not (lock.exists() and os.path.samestat(os.fstat(file.fileno()), lock.stat())):
            problem = f"is {str(directory.folder)!r}, where another run is at work"
            raise InvalidInput("out", problem, "wait until it is done, or name another folder")
        if directory.unfinished and not resume:
            problem = f"is {str(directory.folder)!r}, where a run was stopped"
            raise InvalidInput("out", problem, "go on with --resume, or name another folder")
        if not resume:
            directory.empty(but=lock.name)
        was_interrupted = directory.unfinished
        try:
            yield
        finally:
            # A folder that cannot go on is left as it is: somebody may find what is missing.
            if not directory.unfinished and (was_interrupted or not resume):
                directory.clear()


def _remove_empty(made: Sequence[Path]) -> None:
    """Leave no empty folder behind."""
    with suppress(OSError):
        for path in made:
            path.rmdir()
