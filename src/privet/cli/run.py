"""The program `privet`: run a command, and turn every expected failure into one line and an exit code."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from privet.cli.exit_codes import BAD_INPUT, BROKEN, INTERRUPTED, TYPED, UNREAD

if TYPE_CHECKING:
    import click

__all__ = ["main"]

_OTHER_NAMES = {"url": "ledger", "timeout": "wait", "data": "fingerprint_of", "key": "key_file"}
"""Options whose name differs from the library's argument."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `privet` with these arguments (those of the process, if none are given) and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    usual = sys.excepthook
    if os.environ.get("PRIVET_TRACEBACK") != "1":
        sys.excepthook = _report
    try:
        # Imported here, so that an interruption is quiet from the first moment on.
        code = _run(given)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = UNREAD
        _hush()
    # Not in a `finally`: what nobody expected must still find the hook on its way out of the process.
    sys.excepthook = usual
    return code


def _hush() -> None:
    """Discard buffered output, or the interpreter would complain about it at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        # A stream without a file of its own has nobody to go away.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
            continue
        with contextlib.suppress(OSError, ValueError, AttributeError):
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report an unexpected error in one line in place of a traceback.

    Its message is not shown: it may quote a row, if a model of the user's own raised it.
    """
    import click

    advice = "please report it (PRIVET_TRACEBACK=1 shows its text, which may quote rows, and where it was)"
    click.echo(f"privet: internal error: {kind.__name__}; {advice}", err=True)
    # An exit from within the hook is how it sets the process's exit code.
    sys.exit(BROKEN)


def _run(given: list[str]) -> int:
    import click
    from typer.main import get_command

    from privet.cli.app import app
    from privet.cli.missing import MissingOptions
    from privet.core import InvalidInput, PrivetError

    command = get_command(app)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Greek letters shows something in their place
    try:
        done = _invoked(command, given)
    except click.exceptions.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        raise  # before its parent, OSError
    except MissingOptions as error:
        return _refuse(error.format_message())
    except click.NoSuchOption as error:
        if error.option_name == "--url" and "--ledger" in _options(command, given):
            return _refuse("--url is called --ledger now; the option that names a budget is --budget")
        return _refuse_usage(error)
    except click.UsageError as error:
        return _refuse_usage(error)
    except InvalidInput as error:
        options = _options(command, given)
        rest = str(error).removeprefix(error.argument)
        return _refuse(_as_option(error.argument, options) + _with_options(rest, options))
    except PrivetError as error:
        return _refuse(_with_options(str(error), _options(command, given)))
    except (MemoryError, OverflowError):
        return _refuse("these numbers need more than this machine has; use fewer steps, or more noise")
    except OSError as error:
        # What was done before is in the error's notes (`console.after`).
        so_far = "".join(f"{note}, but " for note in getattr(error, "__notes__", ()))
        # The system's words, and not the error's own.
        reason = "unknown reason" if error.errno is None else os.strerror(error.errno).lower()
        return _refuse(f"{so_far}the output cannot be written: {reason}; make room for it")
    return done if isinstance(done, int) else 0


def _invoked(command: click.Command, given: list[str]) -> object:
    """Run the command and flush its output; click's own `main` would end the process if the reader has gone."""
    import click

    try:
        with command.make_context("privet", list(given)) as context:
            context.meta[TYPED] = given
            done = command.invoke(context)
    except click.exceptions.Exit as stop:
        done = stop.exit_code
    if sys.stdout is not None:
        sys.stdout.flush()
    return done


def _refuse(message: str) -> int:
    """Print a message as one line on stderr."""
    import click

    line = " ".join(message.split())
    click.echo("privet: " + "".join(each if each.isprintable() else "?" for each in line), err=True)
    return BAD_INPUT


def _refuse_usage(error: click.UsageError) -> int:
    where = error.ctx.command_path if error.ctx is not None else "privet"
    # For a command, click and typer each add the same advice.
    text = re.sub(r"( Did you mean [^?]*\?)\1+", r"\1", error.format_message())
    return _refuse(f"{text} See: {where} --help" if text.endswith("?") else f"{text.rstrip('.')}; see: {where} --help")


def _with_options(text: str, options: dict[str, str]) -> str:
    """Replace the library's arguments in backticks by the command's options: `batch_size` becomes --batch-size."""
    return re.sub(r"`(\w+)`", lambda name: options.get("--" + name[1].replace("_", "-"), name[0]), text)


def _as_option(argument: str, options: dict[str, str]) -> str:
    """Return the option for a library's argument, if the command has one."""
    for name in (argument, _OTHER_NAMES.get(argument, argument)):
        option = "--" + name.replace("_", "-")
        if option in options:
            return options[option]
    return argument


def _options(command: click.Command, given: list[str]) -> dict[str, str]:
    """Return every option of the typed command, with the first of its names."""
    import click

    options = {option: parameter.opts[0] for parameter in command.params for option in parameter.opts}
    if isinstance(command, click.Group):
        place = next((place for place, word in enumerate(given) if word in command.commands), None)
        if place is not None:
            options |= _options(command.commands[given[place]], given[place + 1 :])
    return options
