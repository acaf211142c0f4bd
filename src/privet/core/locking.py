"""Locks on files, so that one process works at a time."""

from __future__ import annotations

import sys
from io import FileIO

__all__ = ["locked"]


def locked(file: FileIO) -> bool:
    """Lock a file until it is closed, and return whether that succeeded: False if another process holds it."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(1 << 40)  # a place that nobody reads: these locks keep readers out too
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            file.seek(0)
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks: nobody can keep another out
    return True
