"""Where no theorem covers a run for some neighbours, say for which there is one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from privet.cli.options import NeighboursWord
from privet.core.errors import NotProven
from privet.core.event import Event
from privet.core.unit import Neighbours, Unit

__all__ = ["advised"]


@contextmanager
def advised(event: Event) -> Iterator[None]:
    """Add to a refusal the `--neighbours` that would be priced, if there are any."""
    try:
        yield
    except NotProven as refusal:
        others = [word.value for word in NeighboursWord if _is_proven(event, Neighbours(word.value))]
        if not others or "accountant" in str(refusal):
            raise
        from privet.report.words import listed

        raise NotProven(f"{refusal}; it can be priced with --neighbours {listed(others, 'or')}") from None


def _is_proven(event: Event, neighbours: Neighbours) -> bool:
    from privet.accounting import Profile

    try:
        Profile(event, Unit(neighbours=neighbours))
    except NotProven:
        return False
    return True
