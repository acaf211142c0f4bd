"""The table of methods: one row each, named as on the command line."""

from __future__ import annotations

from privet.runs.methods.dp_sgd import DP_SGD
from privet.runs.methods.input import INPUT
from privet.runs.methods.none import NONE
from privet.runs.methods.objective import OBJECTIVE
from privet.runs.methods.output import OUTPUT
from privet.runs.methods.pate import PATE
from privet.runs.methods.protocol import Method
from privet.runs.methods.registry import METHODS

__all__ = ["METHOD_TABLE"]

METHOD_TABLE: dict[str, Method] = {
    "dp-sgd": DP_SGD,
    "output": OUTPUT,
    "objective": OBJECTIVE,
    "input": INPUT,
    "pate": PATE,
    "none": NONE,
}
"""Every method by its name. A new one is a file beside this one, and a row here."""

METHODS.update(METHOD_TABLE)
