"""A card for programs: one JSON object, the same for every run."""

from __future__ import annotations

from typing import Any

from privet.accounting import AccountantAnswer
from privet.core.codec import VERSION, encode
from privet.report.card import RunCard, require_shareable

__all__ = ["document"]


def document(card: RunCard) -> dict[str, Any]:
    """Return everything on the card as plain JSON data, as the reference of `privet account` describes it.

    An infinite ε is the text "infinity".
    """
    require_shareable(card)
    return {
        "privet": VERSION,
        "command": "account",
        "guarantee": encode(card.guarantee.value),
        "ladder": [_rung(rung) for rung in card.ladder.value],
        "meaning": encode(card.meaning.value),
        "event": encode(card.event.value),
        "conditions": list(card.conditions.value),
        "notes": list(card.notes.value),
        "warnings": list(card.warnings.value),
    }


def _rung(rung: AccountantAnswer) -> dict[str, Any]:
    guarantee = encode(rung.guarantee) if rung.guarantee is not None else None
    return {"accountant": rung.accountant.value, "guarantee": guarantee, "refusal": rung.refusal}
