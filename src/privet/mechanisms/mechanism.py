"""What a mechanism is: its event is known before it sees data, and it turns a `Bounded` into a `Release`."""

from __future__ import annotations

from typing import Any, Protocol

from privet.core.bounded import Bounded
from privet.core.event import Event
from privet.core.random import Rng
from privet.core.release import Release

__all__ = ["SOURCE", "Mechanism"]

SOURCE = "data"
"""What a release calls its data when nobody named them."""


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
        """The half-width that the error stays within, with this confidence: of the noise, not of clipping."""
        ...

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[Any]:
        """The answer with its noise.

        Guarantee: what the event is priced at for the unit that the mechanism was made for.
        """
        ...
