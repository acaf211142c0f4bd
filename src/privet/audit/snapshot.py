"""What a thing is now, so that one can tell later whether it was changed.

Two runs that return one and the same object, which each of them overwrites, return the same thing in the end. What the
first run let out is what the object was before the second one.
"""

from __future__ import annotations

import copyreg
import logging
import pickle
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from enum import Enum
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np
import torch

from privet.audit.insides import PLAIN, hides, is_frame, kind_of, own, parts_of, picked, reached
from privet.audit.numbers import components, digest, whole
from privet.core.errors import PrivetError

__all__ = ["Kept", "changed", "kept"]

Kept = list[tuple[str, object]]
"""Each place that can be reached, in order, and what is there."""

_ONE_EACH: Final = (type, CodeType, Enum, ModuleType, logging.Logger)
"""Known by name; what is logged is compared by itself."""
_REFUSED: Final = (TypeError, ValueError, AttributeError, RuntimeError, pickle.PicklingError, PrivetError)
_CLOSED: Final = "closed"


def kept(thing: Any, place: str = "the result") -> Kept:
    """What is there now, with everything that can be reached from it, as text and digests that nobody can overwrite."""
    found: Kept = []
    _walk(thing, place, {}, found)
    return found


def changed(before: Kept, after: Kept) -> Iterator[str]:
    """Where the same thing became another, the first place only; and what nobody can look into.

    >>> shared = [1, 2]
    >>> then = kept(shared)
    >>> shared[1] = 3
    >>> list(changed(then, kept(shared)))
    ['the result[1] lives outside of the pipeline, and was overwritten by the second run']
    """
    for place, token in before:
        if isinstance(token, tuple) and token[0] == _CLOSED:
            yield f"{place} is a {token[1]}, which cannot be compared"
    end: tuple[str, object] = ("", None)
    for (place, token), (there, now) in zip([*before, end], [*after, end], strict=False):
        if place != there or token != now:
            yield f"{place or there} lives outside of the pipeline, and was overwritten by the second run"
            return


def _walk(thing: Any, place: str, seen: dict[int, tuple[int, Any]], found: Kept) -> None:
    kind = type(thing)
    if isinstance(thing, _ONE_EACH):
        found.append((place, (id(thing), thing)))
        return
    if isinstance(thing, PLAIN):
        found.append((place, (kind, _text(thing))))
    elif id(thing) in seen:
        found.append((place, seen[id(thing)][0]))  # as the object of this number
        return
    else:
        seen[id(thing)] = len(seen), thing  # kept, so that no other object gets this id
        found.append((place, kind))
        for name, each in _inside(thing, place, found):
            _walk(each, f"{place}{name}", seen, found)
    for name, each in own(thing).items():
        _walk(each, f"{place}.{name}", seen, found)


def _text(thing: Any) -> object:
    base: Any = kind_of(thing)
    return thing.tobytes() if base is np.generic else base.__repr__(thing)  # a subclass may say what it likes


def _inside(thing: Any, place: str, found: Kept) -> Iterable[tuple[str, Any]]:
    """What it holds beside attributes; what has no Python inside is noted at once."""
    picks = picked(thing)
    if picks is not None:
        return [(f"'s {name}", each) for name, each in picks.items()]
    if isinstance(thing, torch.Tensor):
        return _tensor(thing, place, found)
    if isinstance(thing, np.ndarray):
        if thing.dtype.hasobject:
            return [("'s memory", (thing.strides, whole(thing))), *_numbered(thing.reshape(-1).tolist())]
        found.append((place, _digest(thing)))
        return ()
    if is_frame(thing):
        found.append((place, repr(thing.rows() if hasattr(thing, "rows") else thing.to_list())))
        return ()
    if isinstance(thing, weakref.ReferenceType):
        return [("", thing())]
    parts = parts_of(thing)
    if isinstance(thing, FunctionType):
        parts |= {f"closure[{name!r}]": each for name, each in reached(thing).items()}
    held = [(f".{name}", each) for name, each in parts.items()]
    if isinstance(thing, Mapping):
        return [*held, *(pair for number, key in enumerate(thing) for pair in _entry(thing, key, number))]
    if isinstance(thing, (Set, Sequence)) and not isinstance(thing, memoryview):
        return [*held, *_numbered(thing)]
    if not held and hides(type(thing)):
        return _reduced(thing, place, found)
    return held


def _numbered(things: Iterable[Any]) -> list[tuple[str, Any]]:
    return [(f"[{number}]", each) for number, each in enumerate(things)]


def _entry(thing: Any, key: Any, number: int) -> tuple[tuple[str, Any], tuple[str, Any]]:
    named = repr(key) if isinstance(key, PLAIN) else f"key {number}"
    return (f"'s key {number}", key), (f"[{named}]", thing[key])


def _tensor(thing: Any, place: str, found: Kept) -> list[tuple[str, Any]]:
    found.append((place, (str(thing.layout), str(thing.device), thing.requires_grad, tuple(thing.shape))))
    if thing.layout == torch.strided and not thing.is_meta:
        found.append((place, _digest(thing)))
    sparse = [] if thing.layout == torch.strided else components(thing.detach())
    return [*_numbered(sparse), *([("'s gradient", thing.grad)] if thing.is_leaf else [])]


def _digest(thing: Any) -> object:
    try:
        return digest(thing)
    except _REFUSED:  # a view into something else, or a tensor without memory of its own
        return _CLOSED, type(thing).__name__


def _reduced(thing: Any, place: str, found: Kept) -> Iterable[tuple[str, Any]]:
    """What Python's own copying would copy."""
    try:
        if isinstance(thing, memoryview):
            return [("", thing.tobytes())]
        reduce = copyreg.dispatch_table.get(type(thing))
        made = reduce(thing) if reduce else thing.__reduce_ex__(4)
        return _numbered([made] if isinstance(made, str) else [list(x) if isinstance(x, Iterator) else x for x in made])
    except _REFUSED:
        found.append((place, (_CLOSED, type(thing).__name__)))
        return ()
