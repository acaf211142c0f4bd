"""Which process this is. A fork copies the memory of a generator, and with it everything that it would draw next."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["Home", "here"]

Home = tuple[int, int]


class _Forks:
    """Counts the forks between the process that loaded this module and this one."""

    def __init__(self) -> None:
        self.depth = 0
        if hasattr(os, "register_at_fork"):  # absent where processes cannot fork
            os.register_at_fork(after_in_child=self._deepen)

    def _deepen(self) -> None:
        self.depth += 1


_FORKS: Final = _Forks()


def here() -> Home:
    """Return a name for this process that differs from its parent's.

    The process id alone can be reused by a grandchild, and the hook alone misses a fork made by C code: either one is
    enough to tell, so both are in the name.
    """
    return os.getpid(), _FORKS.depth
