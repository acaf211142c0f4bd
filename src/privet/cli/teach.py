"""Help that reads well: paragraphs without the breaks of the source, and commands to copy."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

__all__ = ["continued", "help_of", "is_example"]

_CONTINUED = " \\"
_DEEPER = "    "


def help_of(command: Callable[..., object]) -> str:
    """A function's docstring for `--help`: one line a paragraph; one that begins with `privet ` is an example.

    >>> def greet() -> None:
    ...     '''Say hello,
    ...     in one line.
    ...
    ...     privet greet
    ...     '''
    >>> help_of(greet).split(chr(10))
    ['Say hello, in one line.', '', 'privet greet']
    """
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(command.__doc__ or "").split("\n\n"))


def is_example(paragraph: str) -> bool:
    """Whether a paragraph of help is a command to copy."""
    return paragraph.startswith("privet ")


def continued(example: str, width: int) -> list[str]:
    r"""A command in lines of at most `width`, broken before options, so that it can be pasted as it is shown.

    A backslash must be the last character of its line: with a blank after it, a shell would not continue the command.

    >>> continued("privet greet --name Ada --loud", 24)
    ['privet greet \\', '    --name Ada --loud']
    """
    lines, line = [], ""
    for part in re.split(r" (?=--)", example):
        longer = f"{line} {part}" if line.strip() else line + part
        if line.strip() and len(longer) + len(_CONTINUED) > width:
            lines.append(line + _CONTINUED)
            longer = _DEEPER + part
        line = longer
    return [*lines, line]
