"""Help that reads well: paragraphs without the breaks of the source, and commands to copy."""

from __future__ import annotations

import inspect
from collections.abc import Callable

__all__ = ["help_of"]


def help_of(command: Callable[..., object]) -> str:
    """A function's docstring for `--help`; a paragraph that begins with the program's name is an example to copy.

    >>> def greet() -> None:
    ...     '''Say hello,
    ...     in one line.
    ...
    ...     privet greet
    ...     '''
    >>> help_of(greet).split(chr(10))
    ['Say hello, in one line.', '', '  [cyan]$ privet greet[/cyan]']
    """
    paragraphs = (" ".join(part.split()) for part in inspect.cleandoc(command.__doc__ or "").split("\n\n"))
    return "\n\n".join(f"  [cyan]$ {text}[/cyan]" if text.startswith("privet ") else text for text in paragraphs)
