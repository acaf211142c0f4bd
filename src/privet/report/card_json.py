"""A training card as JSON, both ways: `card.json` for everybody, and `internal.json` with the internal values too.

The shareable form refuses a card with anything internal in it, and refuses to read one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from types import NoneType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from privet.accounting import Accountant, AccountantAnswer
from privet.accounting.meaning import Meaning
from privet.core import checked
from privet.core.codec import Record, decode, encode
from privet.core.disclosure import Internal, Public
from privet.core.errors import InvalidInput
from privet.core.event import Event
from privet.core.guarantee import Evidence, Guarantee
from privet.core.randomness import Randomness
from privet.core.release import Draw, Release
from privet.core.scores import Canaries, Score, Trial
from privet.core.unit import Unit
from privet.report.attack_records import Attacked, Picture, Remembered
from privet.report.card import RunCard, require_shareable
from privet.report.training_card import TrainingCard
from privet.report.training_records import BillLine, Charged, Choice, Consensus, Finding, Growth, Series

__all__ = ["FORMAT", "from_json", "to_json"]

FORMAT = 2
"""The version of the card's format."""
_ADDED = frozenset({"internal_remarks"})
"""Fields that cards of this format did not always have."""
_MARK = "INTERNAL: holds values that were computed on private rows and not paid for; not to be shared"
_KINDS: Mapping[str, type[Record]] = {
    **Event.kinds(),
    **Guarantee.kinds(),
    **Meaning.kinds(),
    **Evidence.kinds(),
    **Draw.kinds(),
    **Attacked.kinds(),
    **{kind.__name__: kind for kind in (BillLine, Charged, Choice, Consensus, Finding, Growth, Score, Series, Trial)},
    **{kind.__name__: kind for kind in (Canaries, Picture, Remembered)},
}


def to_json(card: TrainingCard, *, internal: bool = False) -> str:
    """The card's JSON. Without `internal`, a card with anything internal is refused: use `shareable(card)`."""
    if not internal:
        require_shareable(card)
    head = {"privet-card": FORMAT} | ({"sharing": _MARK} if internal else {})
    return json.dumps(head | {"card": _written(card)}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def from_json(text: str, *, internal: bool = False) -> TrainingCard:
    """The card that `to_json` wrote; anything malformed, and anything internal where none is expected, is refused."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("card", f"is not JSON: {error}") from None
    found = data.get("privet-card") if isinstance(data, dict) else None
    if found != FORMAT or isinstance(found, bool):
        raise InvalidInput("card", f"has version {found!r}, and this code reads version {FORMAT}", "use that version")
    try:
        card = cast("TrainingCard", _read(data.get("card"), TrainingCard, "card"))
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInput("card", f"has a value of another kind than it should have: {error}") from None
    if not internal:
        require_shareable(card)
    return card


def _written(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, (TrainingCard, RunCard)):
        return {field.name: _written(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_written(each) for each in value]
    if isinstance(value, Release):
        about = {"draws": value.draws, "unit": value.unit, "randomness": value.randomness, "guarantee": value.guarantee}
        return {"is": "Release", "value": _plain(value.value)} | {name: encode(each) for name, each in about.items()}
    if isinstance(value, (Public, Internal)):
        return {"is": type(value).__name__, "value": _plain(value.value)}
    raise InvalidInput("card", f"holds a {type(value).__name__}, which does not say where it comes from")


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, AccountantAnswer):
        return {"accountant": encode(value.accountant), "guarantee": encode(value.guarantee), "refusal": value.refusal}
    return encode(value)


def _read(data: Any, wanted: Any, name: str) -> Any:
    """A card, several typed values, or one: what `wanted` is, by the types of the card's fields."""
    options = get_args(wanted) if get_origin(wanted) is Union else (wanted,)
    if data is None:
        if NoneType in options:
            return None
        raise InvalidInput(name, "is missing from the card")
    if wanted in (TrainingCard, RunCard):
        types = get_type_hints(wanted)
        # Cards of earlier versions lack what was added since.
        added = _ADDED if wanted is TrainingCard else frozenset[str]()
        if not isinstance(data, dict) or not set(types) - added <= set(data) <= set(types):
            raise InvalidInput(name, "lacks fields, or has unknown ones", "upgrade privet")
        return wanted(**{key: _read(item, types[key], key) for key, item in data.items()})
    if get_origin(wanted) is tuple:
        if not isinstance(data, list):
            raise InvalidInput(name, "is something else, where a list is wanted")
        return tuple(_read(each, get_args(wanted)[0], name) for each in data)
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
