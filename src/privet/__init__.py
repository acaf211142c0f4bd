"""Privet: learn from data about people without giving any one of them away.

The rooms load when they are first used, so that `import privet` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privet.core import (
    Bounded,
    BudgetExceeded,
    Draw,
    Event,
    Evidence,
    Guarantee,
    Interval,
    InvalidInput,
    LedgerError,
    MissingExtra,
    Neighbours,
    NotProven,
    PrivetError,
    Randomness,
    Release,
    Trust,
    Unit,
    Whose,
)

if TYPE_CHECKING:
    from privet import (
        accounting,
        attacks,
        audit,
        data,
        ensemble,
        ledger,
        local,
        mechanisms,
        pate,
        query,
        report,
        runs,
        sklearn,
        training,
    )
    from privet.ledger import Ledger
    from privet.runs import open_run, train
    from privet.training import DPSGD, fit

__all__ = [
    "DPSGD",
    "Bounded",
    "BudgetExceeded",
    "Draw",
    "Event",
    "Evidence",
    "Guarantee",
    "Interval",
    "InvalidInput",
    "Ledger",
    "LedgerError",
    "MissingExtra",
    "Neighbours",
    "NotProven",
    "PrivetError",
    "Randomness",
    "Release",
    "Trust",
    "Unit",
    "Whose",
    "accounting",
    "attacks",
    "audit",
    "data",
    "ensemble",
    "fit",
    "ledger",
    "local",
    "mechanisms",
    "open_run",
    "pate",
    "query",
    "report",
    "runs",
    "sklearn",
    "train",
    "training",
]

_ROOMS = (
    "accounting",
    "attacks",
    "audit",
    "data",
    "ensemble",
    "ledger",
    "local",
    "mechanisms",
    "pate",
    "query",
    "report",
    "runs",
    "sklearn",
    "training",
)
_NAMES = {
    "DPSGD": "privet.training",
    "Ledger": "privet.ledger",
    "fit": "privet.training",
    "open_run": "privet.runs",
    "train": "privet.runs",
}


def __getattr__(name: str) -> Any:
    """Load a room, or a name that lives in one, when it is first asked for."""
    if name in _ROOMS:
        return import_module(f"privet.{name}")
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'privet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
