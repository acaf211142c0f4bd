"""Privet: learn from data about people without giving any one of them away.

The rooms load when they are first used, so that `import privet` costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from privet.core import (
    lazy_attributes as _lazy_attributes,
)
from privet.core import (
    register_renderers as _register_renderers,
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
    from privet.training import DPSGD
    from privet.training.fit import fit

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


def _renderers() -> Mapping[str, Callable[[Any], str]]:
    from privet.report import RENDERERS

    return RENDERERS


_register_renderers(_renderers)
# Rooms are modules; the other names that are not imported above live in a room.
__getattr__ = _lazy_attributes(
    __name__,
    {"": tuple(__all__), "training": ("DPSGD", "fit"), "ledger": ("Ledger",), "runs": ("open_run", "train")},
)


def __dir__() -> list[str]:
    return sorted(__all__)
