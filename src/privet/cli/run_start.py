"""The beginning of a run: its folder, and what was asked for, now or when a run that goes on was begun."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from pathlib import Path

import click
import typer
from click.core import ParameterSource

from privet.cli.run import INTERRUPTED, TYPED
from privet.core.errors import InvalidInput
from privet.core.locking import locked
from privet.report import require_folder
from privet.report.runs import INTERNAL_CARD, INTERNAL_PAGE, REPORT
from privet.runs.directory import HIDDEN, LOCK, A, RunDirectory
from privet.training.models.stored import DESCRIPTION, WEIGHTS

__all__ = ["started"]

_OF_THE_CALL = ("out", "resume", "yes")


@contextmanager
def started(
    context: typer.Context,
    asked: A,
    folder: Path,
    asked_of: Callable[[str], A],
    *,
    resume: bool,
    fields: Mapping[str, str] | None = None,
) -> Iterator[tuple[RunDirectory[A], A, str]]:
    """The workplace, what was asked for, and the command; Ctrl-C inside says how to go on.

    `fields` are the names of what was asked for, where options have others.
    """
    place, ours = RunDirectory(folder, asked_of), list[Path]()
    command = shlex.join(["privet", *context.meta[TYPED]])
    if not resume:
        ours = [each for each in (folder, *folder.parents) if not each.exists()]
        require_folder(folder)
        _require_room(place)
    with ExitStack() as last:
        last.callback(_tidy, ours)
        last.enter_context(_alone(place, resume=resume))
        if resume:
            begun = place.found()
            _require_same(context, asked, begun.asked, fields or {})
            asked, command = begun.asked, begun.command
        # Of a large δ the plan and the page tell, in words.
        last.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message="delta is", category=UserWarning)
        try:
            yield place, asked, command
        except KeyboardInterrupt:
            _tell(context, folder, place.unfinished)
            raise typer.Exit(INTERRUPTED) from None


def _require_room(place: RunDirectory[A]) -> None:
    """Refuse, before anything is charged, a folder where a file of somebody's has the name of one that will be written;
    that of a run that was stopped is told so instead."""
    if place.unfinished:
        return
    for name in (REPORT, INTERNAL_PAGE, INTERNAL_CARD, WEIGHTS, DESCRIPTION):
        if (place.folder / name).exists():
            problem = f"is {str(place.folder)!r}, which holds {name!r}, and no run of Privet's"
            raise InvalidInput("out", problem, "name another folder, so that nothing is lost")


@contextmanager
def _alone(place: RunDirectory[A], *, resume: bool) -> Iterator[None]:
    """Hold the folder, before anything is charged: of two runs in it, one would lose what it has paid for."""
    if resume and not place.hidden.exists():
        place.found()  # says what is wrong
    if place.hidden.is_symlink():
        problem = f"is {str(place.folder)!r}, whose {HIDDEN} leads elsewhere"
        raise InvalidInput("out", problem, "name another folder, so that nothing there is lost")
    place.hidden.mkdir(mode=0o700, exist_ok=True)
    lock = place.hidden / LOCK
    with FileIO(lock, "a") as file:
        # A run that ends takes its lock away, and then the one that is held here is nobody's.
        if not locked(file) or not (lock.exists() and os.path.samestat(os.fstat(file.fileno()), lock.stat())):
            problem = f"is {str(place.folder)!r}, where another run is at work"
            raise InvalidInput("out", problem, "wait until it is done, or name another folder")
        if place.unfinished and not resume:
            problem = f"is {str(place.folder)!r}, where a run was stopped"
            raise InvalidInput("out", problem, "go on with --resume, or name another folder")
        if not resume:
            place.empty(but=lock.name)
        begun = place.unfinished
        try:
            yield
        finally:
            # A folder that cannot go on is left as it is: somebody may find what is missing.
            if not place.unfinished and (begun or not resume):
                place.clear()


def _tidy(ours: Sequence[Path]) -> None:
    """Leave no empty folder behind."""
    with suppress(OSError):
        for each in ours:
            each.rmdir()


def _tell(context: typer.Context, folder: Path, unfinished: bool) -> None:
    if unfinished:
        again = f"{context.command_path} --resume --out {shlex.quote(str(folder))}"
        click.echo(f"privet: stopped; what was drawn is paid for. Go on: {again}", err=True)
    else:
        click.echo("privet: stopped before anything was trained", err=True)


def _require_same(context: typer.Context, typed: object, stored: object, fields: Mapping[str, str]) -> None:
    """What was typed beside --resume must be what the run was begun with."""
    for name in context.params:
        if name in _OF_THE_CALL or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        field = fields.get(name, name)
        if getattr(typed, field) != getattr(stored, field):
            problem = "is not what the run was begun with"
            raise InvalidInput(name, problem, "leave it out: a run goes on as it was planned")
