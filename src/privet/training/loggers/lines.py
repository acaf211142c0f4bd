"""A text file that grows by whole lines, and that a later life of a run can go on with."""

from __future__ import annotations

import os
from io import FileIO
from pathlib import Path

from privet.core import InvalidInput

__all__ = ["Lines"]


class Lines:
    """Lines under a header; the first cell of each is a step.

    The header is written together with the first line: a refused run leaves an empty file, which the next run may use.
    The file is closed after each write, so that nothing is lost however a run ends.
    """

    def __init__(self, path: Path, *, resume: bool, private: bool = False) -> None:
        self._path, self._private = path, private
        try:
            with self._open() as file:
                if private:
                    path.chmod(0o600)
                found = file.readall()
        except OSError as error:
            raise self._unwritable(error) from None
        if found and not resume:
            problem = f"is {str(path)!r}, which holds something already"
            raise InvalidInput("path", problem, "name another file, or go on with this one by resume=True")
        self._old = found[: found.rfind(b"\n") + 1]
        """What is there, without a line that was cut off."""
        self._head: str | None = None

    def begin(self, head: str) -> int:
        """Set the header, and return the last step that the file has, or 0.

        Args:
            head: The header, of one or more lines.

        Raises:
            InvalidInput: The file has another header.
        """
        self._head = head
        lines, several = self._old.decode(errors="replace").splitlines(), head.count("\n")
        try:
            if lines and lines[:several] != head.splitlines():
                raise ValueError
            return int(lines[-1].partition(",")[0]) if len(lines) > several else 0
        except ValueError:
            problem = f"is {str(self._path)!r}, which is no log with the same columns"
            raise InvalidInput("path", problem, "name another file, or log the same scores as before") from None

    def add(self, text: str) -> None:
        """Write some complete lines at once.

        Args:
            text: The lines, each with its line break.

        Raises:
            InvalidInput: The file cannot be written.
        """
        try:
            with self._open() as file:
                if self._head is not None:
                    file.truncate(len(self._old))
                    text = text if self._old else self._head + text
                    self._head = None
                file.seek(0, os.SEEK_END)
                file.write(text.encode())
        except OSError as error:
            raise self._unwritable(error) from None

    def _open(self) -> FileIO:
        # A link could lead to a file of somebody else's.
        flags = os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
        return FileIO(os.open(self._path, flags, 0o600 if self._private else 0o666), "r+")

    def _unwritable(self, error: OSError) -> InvalidInput:
        reason = (error.strerror or "unknown reason").lower()
        return InvalidInput("path", f"is {str(self._path)!r}, which cannot be written: {reason}", "choose another")
