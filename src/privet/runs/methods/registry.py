"""Methods by their names. `privet.runs.methods.table` lists them, and modules that methods are built on read here."""

from __future__ import annotations

from privet.core import InvalidInput
from privet.runs.methods.protocol import Method

__all__ = ["METHODS", "method_named"]

METHODS: dict[str, Method] = {}
"""Every method by its name, as soon as `privet.runs.methods` is imported."""


def method_named(name: str, argument: str = "method") -> Method:
    """Return a method by its name.

    Args:
        name: As on the command line.
        argument: What an error is about.

    Raises:
        InvalidInput: There is none of that name.
    """
    if name not in METHODS:
        raise InvalidInput(argument, f"is {name!r}", f"use one of: {', '.join(METHODS)}")
    return METHODS[name]
