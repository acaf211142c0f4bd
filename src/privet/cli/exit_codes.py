"""Exit codes of the command, and where it keeps what was typed."""

from __future__ import annotations

__all__ = ["BAD_INPUT", "BROKEN", "FAILED", "INTERRUPTED", "TYPED", "UNREAD"]

FAILED = 1
"""A check ran, and failed."""
BAD_INPUT = 2
"""The command cannot run with these arguments."""
BROKEN = 70
"""A bug in Privet: the `EX_SOFTWARE` of sysexits.h."""
INTERRUPTED = 130
UNREAD = 141
"""The reader of the output has gone: the code of a shell for SIGPIPE."""
TYPED = "privet.typed"
"""The key of the typed arguments in a context's `meta`."""
