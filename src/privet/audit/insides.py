"""What one thing holds: attributes, slots, what functions reach, and what is made in C."""

from __future__ import annotations

import functools
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
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

from privet.core.release import Draw, Release

__all__ = ["PLAIN", "hides", "is_frame", "kind_of", "own", "parts_of", "picked", "reached"]

PLAIN: Final = (
    *(NoneType, int, str, bytes, bytearray, range, type(...), type(NotImplemented), type, CodeType, Enum),
    *(float, complex, Decimal, Fraction, datetime, date, time, timedelta, timezone, PurePath, UUID),
    *(np.generic, np.dtype, torch.dtype, torch.device, torch.layout, torch.memory_format),
)
"""What `==` tells all about, but for attributes that a subclass adds."""

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
"""What things made in C hold beside their entries and attributes."""

# Ids of draws are random, and say nothing.
_DRAW: Final[Mapping[str, Callable[[Any], Any]]] = {
    "source": lambda draw: draw.source,
    "event": lambda draw: draw.event,
}
_RELEASE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "value": lambda release: release.value,
    "events": lambda release: [(draw.source, draw.event) for draw in release.draws],
    "unit": lambda release: release.unit,
    "randomness": lambda release: release.randomness,
    "guarantee": lambda release: release.guarantee,
}


def kind_of(thing: Any) -> type[Any] | None:
    """Which of the plain kinds it is, or is made from."""
    return next((each for each in PLAIN if isinstance(thing, each)), None)


def picked(thing: Any) -> dict[str, Any] | None:
    """What counts of a release or a draw; None for other things."""
    if isinstance(thing, (Release, Draw)):
        picks = _RELEASE if isinstance(thing, Release) else _DRAW
        return {name: pick(thing) for name, pick in picks.items()}
    return None


def parts_of(thing: Any) -> dict[str, Any]:
    """What something made in C holds beside its entries and attributes."""
    return {name: getattr(thing, name) for kind, names in _PARTS.items() if isinstance(thing, kind) for name in names}


def reached(function: Any) -> dict[str, Any]:
    """What a function's names stand for, outside of it and of its module."""
    found, code = {}, function.__code__
    if function.__globals__ is not getattr(sys.modules.get(function.__module__), "__dict__", None):
        found = {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # nothing was put there yet
            continue
    return found


def own(thing: Any) -> dict[str, Any]:
    """Its attributes, those in slots included; without what is looked at by another way."""
    found = {name: value for name, value in getattr(thing, "__dict__", {}).items() if not _known(thing, name)}
    plain = kind_of(thing)
    for kind in type(thing).__mro__:
        for name, slot in _slots(kind).items() if plain is None or not issubclass(plain, kind) else ():
            try:
                found[name if name not in found else f"{kind.__name__}.{name}"] = slot.__get__(thing)
            except AttributeError:  # it is empty
                continue
    if isinstance(thing, nn.Module):  # hooks are kept by numbers that count up for as long as Python runs
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


def hides(kind: type[Any]) -> bool:
    """Whether its objects are larger than their attributes: then something made in C is inside. (Python's own copying
    decides by the same count whether attributes are all there is.)"""
    pointer = np.dtype(np.intp).itemsize
    held = sum(len(_slots(each)) for each in kind.__mro__) + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    return kind.__itemsize__ > 0 or kind.__basicsize__ > object.__basicsize__ + held * pointer


def is_frame(thing: Any) -> bool:
    """Whether it is a table or a column of polars."""
    polars = sys.modules.get("polars")  # who has a frame has loaded it
    return polars is not None and isinstance(thing, (polars.DataFrame, polars.Series))
