"""Cards as JSON: `card.json` for everybody, and `internal.json` with the internal values too.

The shareable form refuses a card with anything internal in it, and refuses to read one.
"""

from __future__ import annotations

import json
from dataclasses import fields
from types import NoneType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from privet.accounting import Accountant, AccountantAnswer
from privet.core import (
    VERSION,
    Draw,
    Guarantee,
    Internal,
    InvalidInput,
    Public,
    Randomness,
    Release,
    Unit,
    checked,
    decode,
    encode,
    kinds_in,
)
from privet.report.card import RunCard, require_shareable
from privet.report.training_card import TrainingCard

__all__ = ["FORMAT", "document", "from_json", "to_json"]

FORMAT = 2
"""The version of the card's format."""
_ADDED = frozenset({"internal_remarks"})
"""Fields that cards of this format did not always have."""
_MARK = "INTERNAL: holds values that were computed on private rows and not released; not for sharing"
_KINDS = kinds_in(*get_type_hints(TrainingCard).values(), *get_type_hints(RunCard).values(), Draw)


def to_json(card: TrainingCard, *, internal: bool = False) -> str:
    """Return a card as JSON.

    Args:
        card: The card; without `internal`, it must have no internal value: see `shareable`.
        internal: Whether internal values are written too.

    Raises:
        InvalidInput: The card has an internal value, and `internal` is false.
    """
    if not internal:
        require_shareable(card)
    head = {"privet-card": FORMAT} | ({"sharing": _MARK} if internal else {})
    return json.dumps(head | {"card": _encode(card)}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def from_json(text: str, *, internal: bool = False) -> TrainingCard:
    """Return the card that `to_json` wrote.

    Args:
        text: The JSON.
        internal: Whether it may have internal values.

    Raises:
        InvalidInput: The text is malformed, of another version, or has internal values that are not expected.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("card", f"is not JSON: {error}") from None
    version = data.get("privet-card") if isinstance(data, dict) else None
    if version != FORMAT or isinstance(version, bool):
        raise InvalidInput("card", f"has version {version!r}, and this code reads version {FORMAT}", "use that version")
    try:
        card = cast("TrainingCard", _read(data.get("card"), TrainingCard, "card"))
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInput("card", f"has a value of another kind than it should have: {error}") from None
    if not internal:
        require_shareable(card)
    return card


def document(card: RunCard) -> dict[str, Any]:
    """Return the card of a described run as plain JSON data, as the reference of `privet account` describes it.

    An infinite ε is the text "infinity".

    Args:
        card: The card.

    Raises:
        InvalidInput: The card has an internal value.
    """
    require_shareable(card)
    names = ("guarantee", "ladder", "meaning", "event", "conditions", "notes", "warnings")
    values = {name: _encode_value(getattr(card, name).value) for name in names}
    return {"privet": VERSION, "command": "account"} | values


def _encode(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, (TrainingCard, RunCard)):
        return {field.name: _encode(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_encode(each) for each in value]
    if isinstance(value, Release):
        rest = {name: encode(getattr(value, name)) for name in ("draws", "unit", "randomness", "guarantee")}
        return {"is": "Release", "value": _encode_value(value.value)} | rest
    if isinstance(value, (Public, Internal)):
        return {"is": type(value).__name__, "value": _encode_value(value.value)}
    raise InvalidInput("card", f"holds a {type(value).__name__}, which does not say where it comes from")


def _encode_value(value: Any) -> Any:
    """Return a value without its wrapper as plain JSON data."""
    if isinstance(value, tuple):
        return [_encode_value(each) for each in value]
    if isinstance(value, AccountantAnswer):
        return {"accountant": encode(value.accountant), "guarantee": encode(value.guarantee), "refusal": value.refusal}
    return encode(value)


def _read(data: Any, kind: Any, name: str) -> Any:
    """Return a card, a tuple of typed values, or one typed value: whatever `kind` is."""
    options = get_args(kind) if get_origin(kind) is Union else (kind,)
    if data is None:
        if NoneType in options:
            return None
        raise InvalidInput(name, "is missing from the card")
    if kind in (TrainingCard, RunCard):
        types = get_type_hints(kind)
        # Cards of earlier versions lack what was added since.
        added = _ADDED if kind is TrainingCard else frozenset[str]()
        if not isinstance(data, dict) or not set(types) - added <= set(data) <= set(types):
            raise InvalidInput(name, "lacks fields, or has unknown ones", "upgrade privet")
        return kind(**{key: _read(item, types[key], key) for key, item in data.items()})
    if get_origin(kind) is tuple:
        if not isinstance(data, list):
            raise InvalidInput(name, "is something else, where a list is wanted")
        return tuple(_read(each, get_args(kind)[0], name) for each in data)
    held = next(get_args(option)[0] for option in options if option is not NoneType)
    value = _value(data["value"], held, name)
    if data["is"] == "Public":
        return Public(value)
    if data["is"] == "Internal":
        return Internal(value)
    if data["is"] != "Release":
        raise InvalidInput(name, f"is a {data['is']!r}, which this version does not know", "upgrade privet")
    return Release(
        value,
        decode(data["draws"], tuple[Draw, ...], _KINDS, "draws"),
        decode(data["unit"], Unit, _KINDS, "unit"),
        checked.member("randomness", data["randomness"], Randomness),
        decode(data["guarantee"], Guarantee | None, _KINDS, "guarantee"),
    )


def _value(data: Any, held: Any, name: str) -> Any:
    if held == tuple[AccountantAnswer, ...]:
        return tuple(
            AccountantAnswer(
                checked.member("accountant", each["accountant"], Accountant),
                decode(each["guarantee"], Guarantee | None, _KINDS, "guarantee"),
                each["refusal"],
            )
            for each in data
        )
    if held is Randomness:
        return checked.member(name, data, held)
    return decode(data, held, _KINDS, name)
