"""The charge of a run: the whole bill at once, before anything is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from privet.cli.place import opened
from privet.cli.training.asked import Asked
from privet.cli.training.bill import Bill
from privet.cli.training.folder import Charged, Workplace
from privet.core.errors import InvalidInput
from privet.data import NAMES

if TYPE_CHECKING:
    from privet.ledger.charge import Charge
    from privet.ledger.fingerprint import Fingerprint

__all__ = ["charged", "draw"]

_WAIT = 60.0


@contextmanager
def charged(asked: Asked, place: Workplace, command: str, bill: Bill, *, resuming: bool) -> Iterator[Charge | None]:
    """The charge of the whole bill, if there is a ledger; given back if it ends before anything was drawn."""
    if asked.ledger is None:
        if not resuming:
            place.begin(asked, command, None)
        yield None
        return
    with opened(asked.url, None, _WAIT) as ledger, ExitStack() as unless_drawn:
        if resuming:
            _, _, before = place.found()
            if before is None:
                raise InvalidInput("ledger", "is named, and the run was not charged", "leave it out")
            yield ledger.resume(before.entry, before.token)
            return
        charge = ledger.reserve(
            asked.ledger,
            bill.event,
            unit=bill.unit,
            purpose=command[:1000],
            fingerprint=_fingerprint(asked) if ledger.budget(asked.ledger).version else None,
            resumable=True,
        )
        unless_drawn.callback(_give_back, charge, place)
        place.begin(asked, command, Charged(charge.id, charge.token or ""))
        yield charge


def draw(charge: Charge | None) -> None:
    """Tell the ledger, once, that noise may be drawn from now on."""
    from privet.ledger.records import State

    if charge is not None and charge.state is State.RESERVED:
        charge.draw()


def _give_back(charge: Charge, place: Workplace) -> None:
    from privet.ledger.records import State

    if charge.state is State.RESERVED and not place.begun:
        charge.abort()


def _fingerprint(asked: Asked) -> Fingerprint | None:
    """Of the data's file, for a budget that is bound to one."""
    from privet.ledger import fingerprint_of

    return None if asked.data in NAMES else fingerprint_of(Path(asked.data))
