"""Write files atomically: readers see the old file or the whole new one."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from privet.core.errors import InvalidInput, reason_of

__all__ = ["write_atomically"]


def write_atomically(path: Path, text: str, argument: str, *, private: bool = False) -> None:
    """Write `text` to a temporary file beside `path` and rename it, so that no partial file is ever visible.

    Args:
        path: Where the file goes.
        text: Its content, written as UTF-8.
        argument: The name of the user's argument that an error is about.
        private: Whether only the owner of the process may read the file.

    Raises:
        InvalidInput: The file cannot be written.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    mode = 0o600 if private else 0o666  # less what the process masks
    try:
        with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
            file.write(text.encode())
        part.replace(path)
    except OSError as error:
        problem = f"cannot be written: {reason_of(error)}"
        raise InvalidInput(argument, problem, "make room, or choose another folder") from None
    finally:
        # Also after an interruption; once the file is in its place there is nothing to remove.
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
