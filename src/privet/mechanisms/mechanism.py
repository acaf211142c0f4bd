"""What a mechanism is: its event is known before it sees data, and it turns a `Bounded` into a `Release`."""

from __future__ import annotations

from typing import Any, Protocol

from privet.core import Bounded, Event, Release
from privet.core.random import Rng

__all__ = ["SOURCE", "Mechanism"]

SOURCE = "data"
"""The name of the data in a release if the caller gives none."""


class Mechanism(Protocol):
    """Noise or a choice that hides one unit. Its fields are public; the private answer is an argument of `release`."""

    @property
    def event(self) -> Event:
        """What a release will have done, for planning, budgets and calibration."""
        ...

    @property
    def expected_error(self) -> float:
        """The mean absolute error that the noise makes in one number, or a bound on it where the docstring says so."""
        ...

    def interval(self, confidence: float) -> float:
        """Return the half-width that the error stays within: of the noise, not of clipping.

        Args:
            confidence: The confidence, between 0 and 1.
        """
        ...

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[Any]:
        """Return the answer with its noise.

        Args:
            query: An answer of the clipper that the mechanism was made for.
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.

        Raises:
            InvalidInput: The answer could move further than the mechanism was made for.

        Guarantee: what the event is priced at for the unit that the mechanism was made for.
        """
        ...
