"""Putting a page on the disk: whole or not at all, and never over a file that is not one of ours."""

from __future__ import annotations

import os
from pathlib import Path

from privet.core.atomic_write import write_atomically
from privet.core.errors import InvalidInput

__all__ = ["MARK", "require_writable", "write_page"]

MARK = '<meta name="generator" content="privet">'
"""What every page of ours has near its beginning."""


def require_writable(path: Path, argument: str = "plot") -> None:
    """Raise now, before the work, where a page could not be written or something would be lost."""
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


def write_page(path: Path, text: str, argument: str = "plot") -> None:
    """Write the page beside its place and then move it there, so that no half page is ever seen."""
    require_writable(path, argument)
    write_atomically(path, text, argument)


def _is_ours(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return MARK.encode() in file.read(2000)
    except OSError:
        return False
