"""Write pages: whole or not at all, and never over a file that is not a page of Privet's."""

from __future__ import annotations

import os
from pathlib import Path

from privet.core import InvalidInput, reason_of, write_atomically

__all__ = ["MARK", "require_ours", "require_writable", "require_writable_folder", "write_page"]

MARK = '<meta name="generator" content="privet">'
"""The tag near the beginning of every page of Privet's."""


def require_writable(path: Path, argument: str = "plot") -> None:
    """Check, before the work, that a page can be written to a file without losing anything.

    Args:
        path: The file.
        argument: The name of the user's argument that an error is about.

    Raises:
        InvalidInput: The file is not HTML, its folder is missing or read-only, or it is not a page of Privet's.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(argument, f"is {str(path)!r}, and the page is HTML", "end the name in .html")
    if not path.parent.is_dir():
        raise InvalidInput(argument, f"is in {str(path.parent)!r}, which is no folder", "make the folder first")
    if path.is_dir():
        raise InvalidInput(argument, f"is {str(path)!r}, which is a folder", "name a file in it")
    if path.exists() and not _is_ours(path):
        problem = f"is {str(path)!r}, which exists and is not a page of Privet's"
        raise InvalidInput(argument, problem, "give another name, so that nothing is lost")
    if not os.access(path.parent, os.W_OK):
        raise InvalidInput(argument, f"is in {str(path.parent)!r}, which cannot be written", "choose another folder")


def require_writable_folder(folder: Path, argument: str) -> None:
    """Create a folder, or check that it can be written.

    Args:
        folder: The folder.
        argument: The name of the user's argument that an error is about.

    Raises:
        InvalidInput: The folder cannot be created or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"is {str(folder)!r}, which cannot be made: {reason_of(error)}"
        raise InvalidInput(argument, problem, "name another") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidInput(argument, f"is {str(folder)!r}, which cannot be written", "choose another folder")


def require_ours(path: Path) -> None:
    """Raise `InvalidInput` if a page would replace a file that is not a page of Privet's."""
    if path.exists() and not _is_ours(path):
        problem = f"holds {path.name!r}, which is not a page of Privet's"
        raise InvalidInput("out", problem, "name another folder, so that nothing is lost")


def write_page(path: Path, text: str, argument: str = "plot") -> None:
    """Write a page atomically.

    Args:
        path: The file.
        text: The page.
        argument: The name of the user's argument that an error is about.

    Raises:
        InvalidInput: The file is not HTML, its folder is missing or read-only, or it is not a page of Privet's.
    """
    require_writable(path, argument)
    write_atomically(path, text, argument)


def _is_ours(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return MARK.encode() in file.read(2000)
    except OSError:
        return False
