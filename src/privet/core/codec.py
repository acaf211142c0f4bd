"""JSON both ways for the frozen records, with a version; strict, so that an unknown field or kind is refused.

JSON has no infinite numbers, and they are written as texts. Whether "infinity" is a number is told by the type of the
field that it stands in, so that a purpose or a name of that spelling stays what it is: no field may be both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from privet.core.errors import InvalidInput

__all__ = ["VERSION", "Record", "decode", "encode", "kinds_in"]

VERSION = 1
_INFINITE = {"infinity": float("inf"), "-infinity": float("-inf")}


def encode(value: object) -> Any:
    """Return a record, enum, tuple or scalar as plain JSON data."""
    if isinstance(value, Record):
        body = {field.name: encode(getattr(value, field.name)) for field in fields(cast("Any", value))}
        return {"is": type(value).__name__} | body
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "infinity" if value > 0 else "-infinity"
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise InvalidInput("value", f"of type {type(value).__name__} has no JSON form")


@cache
def _types(kind: Any) -> dict[str, Any]:
    """The type of each field, of which there are few: cached, because a ledger reads the same kinds many times."""
    return get_type_hints(kind)


def decode(data: object, wanted: Any, kinds: Mapping[str, type[Record]], field: str = "JSON") -> Any:
    """Decode what `encode` returned, to a value of the type `wanted` made of the record classes in `kinds`.

    Every record is validated again as it is made; `field` is what an error names.
    """
    # One function, so that a level of nesting takes no more of the stack to read than it took to write.
    options = get_args(wanted) if get_origin(wanted) in (Union, UnionType) else (wanted,)
    items = next((get_args(option)[0] for option in options if get_origin(option) is tuple), None)
    if items is not None and not isinstance(data, list) and not (data is None and type(None) in options):
        raise InvalidInput(field, "is something else, where a list is wanted")
    if isinstance(data, dict):
        body = dict(data)
        name = body.pop("is", None)
        if not isinstance(name, str) or name not in kinds:
            raise InvalidInput("JSON", f"names the record {name!r}, which this version does not know", "upgrade privet")
        kind: Any = kinds[name]
        types = _types(kind)
        if unknown := sorted(set(body) - {known.name for known in fields(kind)}):
            raise InvalidInput("JSON", f"has unknown fields {unknown} for {name}", "upgrade privet")
        try:
            return kind(**{key: decode(item, types[key], kinds, key) for key, item in body.items()})
        except TypeError as error:
            raise InvalidInput("JSON", f"lacks fields for {name}: {error}") from None
    if isinstance(data, list):
        if items is None:
            raise InvalidInput(field, "is a list, where something else is wanted")
        return tuple(decode(item, items, kinds, field) for item in data)
    if isinstance(data, str) and float in options:
        return _INFINITE.get(data, data)
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are all different: of two values for one key, which one was meant cannot be known."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidInput("JSON", "has the same key twice")
    return found


def _no_number(name: str) -> float:
    """Python reads NaN and Infinity where JSON has no such words; a record never wrote them."""
    raise InvalidInput("JSON", f"holds {name}, which is not a number in JSON", 'write an infinite number as "infinity"')


def kinds_in(*types: Any) -> dict[str, type[Record]]:
    """Return the record classes that values of these types are made of, by name."""
    kinds: dict[str, type[Record]] = {}
    for kind in types:
        is_record = isinstance(kind, type) and issubclass(kind, Record)
        kinds |= kind.kinds() if is_record else kinds_in(*get_args(kind))
    return kinds


class Record:
    """A frozen dataclass with `to_json` and `from_json`."""

    @classmethod
    def kinds(cls) -> Mapping[str, type[Record]]:
        """Return the record classes that JSON of this record may hold, by name: itself and those of its fields."""
        return {cls.__name__: cls} | kinds_in(*_types(cast("Any", cls)).values())

    def to_json(self) -> str:
        """Return one line of JSON with the format's version; keys are sorted, so that equal records give equal text."""
        return json.dumps({"privet": VERSION, "record": encode(self)}, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Any:
        """Return the record that `to_json` wrote; raise `InvalidInput` if the text is malformed."""
        try:
            data = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
        except InvalidInput:
            raise
        except (ValueError, RecursionError) as error:
            raise InvalidInput("JSON", f"cannot be read: {error}") from None
        found = data.get("privet") if isinstance(data, dict) else None
        if found != VERSION or isinstance(found, bool):
            raise InvalidInput("JSON", f"has version {found!r}, and this code reads version {VERSION}")
        try:
            record = decode(data.get("record"), cls, cls.kinds())
        except RecursionError:
            raise InvalidInput("JSON", "is nested too deeply", "repeat and compose in fewer levels") from None
        if not isinstance(record, cls):
            raise InvalidInput("JSON", f"holds a {type(record).__name__}, where a {cls.__name__} is wanted")
        return record
