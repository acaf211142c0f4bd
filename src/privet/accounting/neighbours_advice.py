"""Where no theorem covers an event for some neighbours, name those for which one does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from privet.accounting.profile import Profile
from privet.core.errors import NotProven
from privet.core.event import Event
from privet.core.unit import Neighbours, Unit
from privet.core.words import listed

__all__ = ["neighbours_advice"]

_CANDIDATES = (Neighbours.ADD_REMOVE, Neighbours.ZERO_OUT, Neighbours.REPLACE)


@contextmanager
def neighbours_advice(event: Event) -> Iterator[None]:
    """Add to a `NotProven` that is raised inside the neighbours for which the event can be priced, if there are any.

    Args:
        event: The event that is priced inside.

    Raises:
        NotProven: As raised inside, with the advice.
    """
    try:
        yield
    except NotProven as refusal:
        others = [neighbours.value for neighbours in _CANDIDATES if _is_proven(event, neighbours)]
        if not others or "accountant" in str(refusal):
            raise
        raise NotProven(f"{refusal}; it can be priced with `neighbours` {listed(others, 'or')}") from None


def _is_proven(event: Event, neighbours: Neighbours) -> bool:
    try:
        Profile(event, Unit(neighbours=neighbours))
    except NotProven:
        return False
    return True
