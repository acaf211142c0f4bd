"""Contents of one object: attributes, slots, entries, closures, and the contents of objects implemented in C."""

from __future__ import annotations

import functools
import sys
import weakref
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from types import BuiltinMethodType, CodeType, FunctionType, MemberDescriptorType, MethodType, NoneType
from typing import Any, Final
from uuid import UUID

import numpy as np
import torch
from torch import nn

from privet.core import Draw, Release

__all__ = ["PLAIN", "Contents", "attributes_of", "contents_of", "is_frame", "numbered", "plain_kind"]

Contents = list[tuple[str, Any]]
"""The contents of an object, each with a label that is appended to the place of the object."""

PLAIN: Final = (
    *(NoneType, int, str, bytes, bytearray, range, type(...), type(NotImplemented), type, CodeType, Enum),
    *(float, complex, Decimal, Fraction, datetime, date, time, timedelta, timezone, PurePath, UUID),
    *(np.generic, np.dtype, torch.dtype, torch.device, torch.layout, torch.memory_format),
)
"""Types that `==` compares completely, except for attributes that a subclass adds."""

_PARTS: Final[Mapping[type[Any], tuple[str, ...]]] = {
    functools.partial: ("func", "args", "keywords"),
    defaultdict: ("default_factory",),
    deque: ("maxlen",),
    slice: ("start", "stop", "step"),
    MethodType: ("__func__", "__self__"),
    BuiltinMethodType: ("__name__", "__self__"),
    FunctionType: ("__code__", "__defaults__", "__kwdefaults__", "__name__", "__doc__", "__annotations__"),
    BaseException: ("args", "__cause__", "__context__", "__traceback__"),
}
"""Contents of objects implemented in C, beside their entries and attributes."""

# Ids of draws are random and carry no information.
_DRAW: Final = ("source", "event")
_RELEASE: Final = ("value", "unit", "randomness", "guarantee")


def plain_kind(thing: Any) -> type[Any] | None:
    """Return which of the plain types an object has or derives from; None if none.

    Args:
        thing: The object.
    """
    return next((kind for kind in PLAIN if isinstance(thing, kind)), None)


def contents_of(thing: Any) -> Contents | None:
    """Return what an object holds beside its attributes; None where that cannot be determined.

    The caller handles tensors, arrays and frames, whose numbers are not objects.

    Args:
        thing: The object.
    """
    if isinstance(thing, Draw):
        return [(f"'s {name}", getattr(thing, name)) for name in _DRAW]
    if isinstance(thing, Release):
        events = [(draw.source, draw.event) for draw in thing.draws]
        return [("'s events", events), *((f"'s {name}", getattr(thing, name)) for name in _RELEASE)]
    if isinstance(thing, weakref.ReferenceType):
        return [("", thing())]
    parts = [
        (f".{name}", getattr(thing, name))
        for kind, names in _PARTS.items()
        if isinstance(thing, kind)
        for name in names
    ]
    if isinstance(thing, FunctionType):
        parts.append(("'s closure", _names_of(thing)))
    if isinstance(thing, Mapping):
        return [*parts, *(pair for number, key in enumerate(thing) for pair in _entry(thing, key, number))]
    if isinstance(thing, (Set, Sequence)) and not isinstance(thing, memoryview):
        return [*parts, *numbered(thing)]
    return None if not parts and _hides_contents(type(thing)) else parts


def numbered(things: Iterable[Any]) -> Contents:
    """Return objects in order, labeled by their positions.

    Args:
        things: The objects.
    """
    return [(f"[{number}]", thing) for number, thing in enumerate(things)]


def _entry(thing: Any, key: Any, number: int) -> Contents:
    name = repr(key) if isinstance(key, PLAIN) else f"key {number}"
    return [(f"'s key {number}", key), (f"[{name}]", thing[key])]


def _names_of(function: Any) -> dict[str, Any]:
    """Return the objects that a function's names refer to, outside of it and of its module."""
    found, code = {}, function.__code__
    if function.__globals__ is not getattr(sys.modules.get(function.__module__), "__dict__", None):
        found = {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # nothing was put there yet
            continue
    return found


def attributes_of(thing: Any) -> dict[str, Any]:
    """Return an object's attributes, including those in slots; without what `contents_of` returns.

    Args:
        thing: The object.
    """
    found = {name: value for name, value in getattr(thing, "__dict__", {}).items() if not _known(thing, name)}
    plain = plain_kind(thing)
    for kind in type(thing).__mro__:
        for name, slot in _slots(kind).items() if plain is None or not issubclass(plain, kind) else ():
            try:
                found[name if name not in found else f"{kind.__name__}.{name}"] = slot.__get__(thing)
            except AttributeError:  # it is empty
                continue
    if isinstance(thing, nn.Module):  # hooks are keyed by a process-wide counter
        hooks = {name for name, value in found.items() if "_hooks" in name and isinstance(value, Mapping)}
        return {name: list(value.values()) if name in hooks else value for name, value in found.items()}
    return found


def _known(thing: Any, name: str) -> bool:
    if isinstance(thing, Release):
        return name == "draws" or name in _RELEASE
    if isinstance(thing, Draw):
        return name == "id" or name in _DRAW
    return name in {"_df", "_s"} and is_frame(thing)


def _slots(kind: type[Any]) -> dict[str, MemberDescriptorType]:
    mine = vars(kind) if "__slots__" in vars(kind) else {}
    return {name: each for name, each in mine.items() if isinstance(each, MemberDescriptorType)}


def _hides_contents(kind: type[Any]) -> bool:
    """Return whether objects of a type are larger than their attributes, so that something implemented in C is inside.

    Python's own copying decides by the same count whether attributes are all there is.
    """
    pointer = np.dtype(np.intp).itemsize
    held = sum(len(_slots(each)) for each in kind.__mro__) + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    return kind.__itemsize__ > 0 or kind.__basicsize__ > object.__basicsize__ + held * pointer


def is_frame(thing: Any) -> bool:
    """Return whether an object is a table or a column of Polars.

    Args:
        thing: The object.
    """
    polars = sys.modules.get("polars")  # a frame exists only if Polars is loaded
    return polars is not None and isinstance(thing, (polars.DataFrame, polars.Series))
