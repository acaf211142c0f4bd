"""A card against the ledger that was charged for it."""

from __future__ import annotations

from privet.core import LedgerError
from privet.ledger import Ledger, State
from privet.report.runs import CARD
from privet.report.signing import NotGenuine
from privet.report.training_card import TrainingCard, counts

__all__ = ["require_charged"]


def require_charged(card: TrainingCard, ledger: Ledger) -> None:
    """Check that a ledger was charged for exactly what a card says was done.

    The budget's chain must hold up to the head on the card, its unit must be the card's, and the committed entries that
    the card names must be, together, the card's event: neither more nor less.

    Args:
        card: The card.
        ledger: The ledger.

    Raises:
        NotGenuine: The ledger and the card disagree, or the card names no budget.
    """
    if card.ledger is None:
        raise NotGenuine(f"{CARD} names no budget: the run was charged to no ledger")
    charged = card.ledger.value
    try:
        verification = ledger.verify(charged.budget, head=charged.head)
        if not verification:
            raise NotGenuine(f"the ledger does not hold: {verification.problems[0]}")
        if ledger.budget(charged.budget).unit != card.privacy.guarantee.value.unit:
            raise NotGenuine(f"the budget {charged.budget!r} protects another unit than {CARD}")
        entries = {id_: ledger.entry(id_) for id_ in charged.entries}
    except LedgerError as error:
        raise NotGenuine(f"the ledger is not the one that {CARD} names: {error}") from None
    for id_, entry in entries.items():
        if (entry.id, entry.budget, entry.state) != (id_, charged.budget, State.COMMITTED):
            raise NotGenuine(f"entry {id_} of the ledger is not a committed one of the budget {charged.budget!r}")
    if counts(entry.event for entry in entries.values()) != counts([card.privacy.event.value]):
        raise NotGenuine(f"the ledger was charged for something else than {CARD} says was done")
