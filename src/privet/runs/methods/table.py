"""The table of methods: one row each, named as on the command line."""

from __future__ import annotations

from privet.core.errors import InvalidInput
from privet.runs.methods.dp_sgd import DP_SGD
from privet.runs.methods.input import INPUT
from privet.runs.methods.none import NONE
from privet.runs.methods.objective import OBJECTIVE
from privet.runs.methods.output import OUTPUT
from privet.runs.methods.pate import PATE
from privet.runs.methods.protocol import Method

__all__ = ["METHODS", "method_named"]

METHODS: dict[str, Method] = {
    "dp-sgd": DP_SGD,
    "output": OUTPUT,
    "objective": OBJECTIVE,
    "input": INPUT,
    "pate": PATE,
    "none": NONE,
}
"""Every method by its name. A new one is a file beside this one, and a row here."""


def method_named(name: str, argument: str = "method") -> Method:
    """Return a method by its name.

    Raises:
        InvalidInput: There is none of that name; `argument` is what the error is about.
    """
    if name not in METHODS:
        raise InvalidInput(argument, f"is {name!r}", f"use one of: {', '.join(METHODS)}")
    return METHODS[name]
