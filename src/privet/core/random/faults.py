"""What loops of rejection do when a source of randomness is broken: stop, and not spin for ever."""

from __future__ import annotations

from typing import Final

from privet.core.errors import PrivetError

__all__ = ["PATIENCE", "broken_source"]

# Rounds of bad luck in a row, each of probability at most 4/5, after which chance is no longer an explanation.
PATIENCE: Final = 2048


def broken_source() -> PrivetError:
    """Return the error for a coincidence that true randomness would not show in the lifetime of the universe."""
    return PrivetError(
        "the source of randomness repeats itself: coins came up that never come up together by chance; "
        "use privet.core.random.default_rng()"
    )
