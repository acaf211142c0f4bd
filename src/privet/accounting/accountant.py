"""The accountants by name."""

from __future__ import annotations

from enum import Enum

__all__ = ["Accountant"]


class Accountant(Enum):
    """A proven way to turn events into ε; `PLD` is the tightest and the default."""

    PLD = "pld"
    RENYI = "renyi"
    ZCDP = "zcdp"
    GDP = "gdp"
    ADVANCED = "advanced"
    BASIC = "basic"
