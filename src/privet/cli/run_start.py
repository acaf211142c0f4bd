"""The beginning of a run: its folder, and what was asked for, now or when a run that goes on was begun."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click
import typer
from click.core import ParameterSource

from privet.cli.options import require_budget
from privet.cli.run import INTERRUPTED, TYPED
from privet.core.errors import InvalidInput
from privet.runs.directory import A, RunDirectory
from privet.runs.start import hold_directory

__all__ = ["started"]

_OF_THE_CALL = ("out", "resume", "yes")


@contextmanager
def started(
    context: typer.Context,
    request: A,
    folder: Path,
    request_of: Callable[[str], A],
    *,
    resume: bool,
    fields: Mapping[str, str] | None = None,
) -> Iterator[tuple[RunDirectory[A], A, str]]:
    """Give the run's directory, the request and the command; Ctrl-C inside says how to resume.

    `fields` are the names of the request's fields, where options have others.
    """
    command = shlex.join(["privet", *context.meta[TYPED]])
    require_budget(request.budget, request.ledger)
    with hold_directory(folder, request_of, resume=resume) as directory, warnings.catch_warnings():
        if resume:
            interrupted = directory.found()
            _require_same(context, request, interrupted.asked, fields or {})
            request, command = interrupted.asked, interrupted.command
        # Of a large δ the plan and the page tell, in words.
        warnings.filterwarnings("ignore", message="delta is", category=UserWarning)
        try:
            yield directory, request, command
        except KeyboardInterrupt:
            _tell(context, folder, directory.unfinished)
            raise typer.Exit(INTERRUPTED) from None


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
