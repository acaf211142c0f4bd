"""One process at a time: a file that is held."""

from __future__ import annotations

import sys
from io import FileIO

__all__ = ["locked"]


def locked(file: FileIO) -> bool:
    """Whether nobody else holds the file, which this process does from now on, until the file is closed."""
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
