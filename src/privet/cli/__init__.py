"""The command line: one file a verb."""

from __future__ import annotations

from privet.cli.run import main

__all__ = ["main"]
