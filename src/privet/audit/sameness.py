"""Whether two things that came out are the same, and in plain words where they are not.

Whatever can be reached from a result leaves with it: also what a function closes over, what hangs on a module beside
its weights, and what a subclass of `dict` carries. A kind whose insides cannot be seen is refused, and never passed.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
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

__all__ = ["differing"]

_PLAIN: Final = (
    *(NoneType, int, str, bytes, bytearray, range, type(...), type(NotImplemented), type, CodeType, Enum),
    *(float, complex, Decimal, Fraction, datetime, date, time, timedelta, timezone, PurePath, UUID),
    *(np.generic, np.dtype, torch.dtype, torch.device, torch.layout, torch.memory_format),
)
"""What `==` tells all about, but for attributes that a subclass adds."""
_BY_TEXT: Final = (float, complex, Decimal, datetime, time)
"""What may be equal and still be told apart (0.0 and -0.0, one instant in two zones), or be NaN."""

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

_Pairs = dict[tuple[int, int], tuple[Any, Any]]


def differing(one: Any, other: Any, place: str = "the result") -> Iterator[str]:
    """Each place where two things differ. What is in it is not said: it may be private.

    >>> list(differing({"a": 1, "b": [2.0, float("nan")]}, {"a": 1, "b": [2.5, float("nan")]}))
    ["the result['b'][0] differs"]
    >>> list(differing(iter([1]), iter([1])))
    ['the result is a list_iterator, which cannot be compared']
    """
    return _differing(one, other, place, {})


def _differing(one: Any, other: Any, place: str, seen: _Pairs) -> Iterator[str]:
    if one is other:
        return
    if type(one) is not type(other):
        names = type(one).__name__, type(other).__name__
        apart = f"a {names[0]} and a {names[1]}"
        made = f"of two classes {names[0]}, which cannot be compared: define it outside of the pipeline"
        yield f"{place} is {apart if names[0] != names[1] else made}"
        return
    if isinstance(one, _PLAIN) and not isinstance(one, np.void):
        if not _equal(one, other):
            yield f"{place} differs"
            return
    elif (id(one), id(other)) in seen:  # a pair is looked at once, so that circles end
        return
    else:
        seen[id(one), id(other)] = one, other  # kept, so that no other pair gets these ids
        inside = _inside(one, other, place, seen)
        if inside is None:
            yield f"{place} is a {type(one).__name__}, which cannot be compared"
            return
        yield from inside
    if not isinstance(one, (type, Enum)):  # of which there is one each
        yield from _attributes(one, other, place, seen)


def _inside(one: Any, other: Any, place: str, seen: _Pairs) -> Iterator[str] | None:
    """What differs beside attributes; None where nobody can tell."""
    if isinstance(one, Release):
        return _named(_RELEASE, one, other, place, seen)
    if isinstance(one, Draw):
        return _named(_DRAW, one, other, place, seen)
    if isinstance(one, torch.Tensor):
        return _tensors(one, other, place, seen)
    if isinstance(one, (np.ndarray, np.void)):
        return _arrays(np.asarray(one), np.asarray(other), place, seen)
    if isinstance(one, nn.Module):
        return _differing(_weights(one), _weights(other), f"{place}'s weights", seen)
    if _is_frame(one):
        return _frames(one, other, place)
    if isinstance(one, weakref.ReferenceType):
        return _differing(one(), other(), place, seen)
    parts = [name for kind, names in _PARTS.items() if isinstance(one, kind) for name in names]
    entries = _entries(one, other, place, seen)
    if entries is None and not parts and _hides(type(one)):
        return None
    return _together(one, other, parts, entries, place, seen)


def _together(
    one: Any, other: Any, parts: list[str], entries: Iterator[str] | None, place: str, seen: _Pairs
) -> Iterator[str]:
    for name in parts:
        yield from _differing(getattr(one, name), getattr(other, name), f"{place}.{name}", seen)
    if isinstance(one, FunctionType) and one.__code__ == other.__code__:
        yield from _differing(_reached(one), _reached(other), f"{place}'s closure", seen)
    yield from entries or ()


def _entries(one: Any, other: Any, place: str, seen: _Pairs) -> Iterator[str] | None:
    if isinstance(one, Mapping):
        return _mappings(one, other, place, seen)
    if isinstance(one, Set):
        return _sets(one, other, place, seen)
    if isinstance(one, Sequence) and not isinstance(one, memoryview):
        return _sequences(one, other, place, seen)
    return None


def _mappings(one: Any, other: Any, place: str, seen: _Pairs) -> Iterator[str]:
    keys, others = list(one), list(other)
    # Not by ==, which is no answer for keys such as an optimiser's tensors.
    if len(keys) != len(others) or any(_differing(keys, others, place, seen)):
        yield f"{place} has other keys, or in another order"
        return
    for number, (key, its) in enumerate(zip(keys, others, strict=True)):
        named = repr(key) if isinstance(key, _PLAIN) else f"key {number}"
        yield from _differing(one[key], other[its], f"{place}[{named}]", seen)


def _sets(one: Any, other: Any, place: str, seen: _Pairs) -> Iterator[str]:
    if one != other:
        yield f"{place} differs"
        return
    partner = {each: each for each in other}
    for each in one:
        yield from _differing(each, partner[each], f"an entry of {place}", seen)


def _sequences(one: Any, other: Any, place: str, seen: _Pairs) -> Iterator[str]:
    if len(one) != len(other):
        yield f"{place} has {len(one)} entries and {len(other)}"
        return
    for number, pair in enumerate(zip(one, other, strict=True)):
        yield from _differing(*pair, f"{place}[{number}]", seen)


def _named(picks: Mapping[str, Callable[[Any], Any]], one: Any, other: Any, place: str, seen: _Pairs) -> Iterator[str]:
    for name, pick in picks.items():
        yield from _differing(pick(one), pick(other), f"{place}'s {name}", seen)


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


def _equal(one: Any, other: Any) -> bool:
    # By the kind's own ==, since a subclass may have made its own blind.
    kind: Any = _kind(one)
    if kind in _BY_TEXT:
        return bool(kind.__repr__(one) == kind.__repr__(other))
    same, *nans = (kind.__eq__(*pair) for pair in ((one, other), (one, one), (other, other)))
    return _true(same) or not any(_true(each) for each in nans)


def _true(answer: Any) -> bool:
    return answer is not NotImplemented and bool(answer)


def _kind(thing: Any) -> type[Any] | None:
    return next((each for each in _PLAIN if isinstance(thing, each)), None)


def _weights(module: nn.Module) -> dict[str, Any]:
    return dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))


def _reached(function: Any) -> dict[str, Any]:
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


def _attributes(one: Any, other: Any, place: str, seen: _Pairs) -> Iterator[str]:
    mine, its = _own(one), _own(other)
    if mine.keys() != its.keys():
        yield f"{place} has other attributes"
        return
    for name, value in mine.items():
        yield from _differing(value, its[name], f"{place}.{name}", seen)


def _own(thing: Any) -> dict[str, Any]:
    """Its attributes, those in slots included; without what was compared by another way."""
    found = {name: value for name, value in getattr(thing, "__dict__", {}).items() if not _known(thing, name)}
    plain = _kind(thing)
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
    return name in {"_df", "_s"} and _is_frame(thing)


def _slots(kind: type[Any]) -> dict[str, MemberDescriptorType]:
    own = vars(kind) if "__slots__" in vars(kind) else {}
    return {name: each for name, each in own.items() if isinstance(each, MemberDescriptorType)}


def _hides(kind: type[Any]) -> bool:
    """Whether its objects are larger than their attributes: then something made in C is inside. (Python's own copying
    decides by the same count whether attributes are all there is.)"""
    pointer = np.dtype(np.intp).itemsize
    held = sum(len(_slots(each)) for each in kind.__mro__) + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    return kind.__itemsize__ > 0 or kind.__basicsize__ > object.__basicsize__ + held * pointer


def _tensors(one: Any, other: Any, place: str, seen: _Pairs) -> Iterator[str]:
    if one.grad_fn is not None or other.grad_fn is not None:
        yield f"{place} carries how it was computed, which cannot be compared: detach it"
    if one.layout != other.layout or one.requires_grad != other.requires_grad or one.device != other.device:
        yield f"{place} is another kind of tensor"
        return
    if one.is_meta:  # it has no numbers
        if one.shape != other.shape or one.dtype != other.dtype:
            yield f"{place} has another shape or type"
        return
    first, second = one.detach().cpu(), other.detach().cpu()
    if one.layout != torch.strided:
        first, second = first.to_dense(), second.to_dense()
    yield from _arrays(first, second, place, seen)
    if one.is_leaf and other.is_leaf:
        yield from _differing(one.grad, other.grad, f"{place}'s gradient", seen)


def _arrays(one: Any, other: Any, place: str, seen: _Pairs) -> Iterator[str]:
    if one.shape != other.shape or one.dtype != other.dtype:
        sizes = tuple(one.shape), tuple(other.shape)
        yield f"{place} is {one.dtype} of shape {sizes[0]}, and {other.dtype} of shape {sizes[1]}"
    elif isinstance(one, np.ndarray) and one.dtype.hasobject:
        yield from _sequences(one.reshape(-1).tolist(), other.reshape(-1).tolist(), place, seen)
    else:
        moved = int((~((one == other) | ((one != one) & (other != other)))).sum())
        if moved:
            yield f"{place} differs in {moved} of {int(np.prod(one.shape))} numbers"


def _is_frame(thing: Any) -> bool:
    polars = sys.modules.get("polars")  # who has a frame has loaded it
    return polars is not None and isinstance(thing, (polars.DataFrame, polars.Series))


def _frames(one: Any, other: Any, place: str) -> Iterator[str]:
    kinds = [(each.schema if hasattr(each, "schema") else (each.name, each.dtype)) for each in (one, other)]
    if kinds[0] != kinds[1]:
        yield f"{place} has other columns"
    elif not one.equals(other):  # NaN is NaN there, and null is null
        yield f"{place} differs"
