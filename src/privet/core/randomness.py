"""Where a release's noise came from."""

from __future__ import annotations

from enum import Enum

__all__ = ["Randomness"]


class Randomness(Enum):
    """The kind of generator behind a release; anything but `SECURE` is no protection."""

    SECURE = "secure"
    SEEDED = "seeded"
