"""Snapshots of an object, to tell later whether it was overwritten.

Two runs that return one and the same object, which each of them overwrites, return the same object in the end. The
result of the first run is what the object was before the second one.
"""

from __future__ import annotations

import copyreg
import logging
import pickle
from collections.abc import Iterator
from enum import Enum
from types import CodeType, ModuleType
from typing import Any, Final

import numpy as np
import torch

from privet.audit.array_contents import components, digest, whole
from privet.audit.object_contents import PLAIN, Contents, attributes_of, contents_of, is_frame, numbered, plain_kind
from privet.core import PrivetError

__all__ = ["Snapshot", "overwritten_places", "take_snapshot"]

Snapshot = list[tuple[str, object]]
"""Each reachable place, in order, and what is there."""

_ONE_EACH: Final = (type, CodeType, Enum, ModuleType, logging.Logger)
"""Types of objects that are identified by name; log lines are compared separately."""
_REFUSED: Final = (TypeError, ValueError, AttributeError, RuntimeError, pickle.PicklingError, PrivetError)
_CLOSED: Final = "closed"


def take_snapshot(thing: Any, place: str = "the result") -> Snapshot:
    """Return an object, with everything that can be reached from it, as text and digests that cannot be overwritten.

    Args:
        thing: The object.
        place: The name of the object in messages.
    """
    found: Snapshot = []
    _walk(thing, place, {}, found)
    return found


def overwritten_places(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """Yield the first place where an object was overwritten, and every place whose contents cannot be seen.

    Args:
        before: The snapshot after the first run.
        after: The snapshot of the same object after the second run.

    >>> shared = [1, 2]
    >>> then = take_snapshot(shared)
    >>> shared[1] = 3
    >>> list(overwritten_places(then, take_snapshot(shared)))
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


def _walk(thing: Any, place: str, seen: dict[int, tuple[int, Any]], found: Snapshot) -> None:
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
        for name, each in _contents(thing, place, found):
            _walk(each, f"{place}{name}", seen, found)
    for name, each in attributes_of(thing).items():
        _walk(each, f"{place}.{name}", seen, found)


def _text(thing: Any) -> object:
    base: Any = plain_kind(thing)
    return thing.tobytes() if base is np.generic else base.__repr__(thing)  # a subclass may override `repr`


def _contents(thing: Any, place: str, found: Snapshot) -> Contents:
    """Return what an object holds beside attributes; arrays are recorded at once, by their digest."""
    if isinstance(thing, torch.Tensor):
        return _tensor(thing, place, found)
    if isinstance(thing, np.ndarray) and thing.dtype.hasobject:
        return [("'s memory", (thing.strides, whole(thing))), *numbered(thing.reshape(-1).tolist())]
    if isinstance(thing, np.ndarray):
        found.append((place, _digest(thing)))
        return []
    if is_frame(thing):
        found.append((place, repr(thing.rows() if hasattr(thing, "rows") else thing.to_list())))
        return []
    contents = contents_of(thing)
    return _reduced(thing, place, found) if contents is None else contents


def _tensor(thing: Any, place: str, found: Snapshot) -> Contents:
    found.append((place, (str(thing.layout), str(thing.device), thing.requires_grad, tuple(thing.shape))))
    if thing.layout == torch.strided and not thing.is_meta:
        found.append((place, _digest(thing)))
    sparse = [] if thing.layout == torch.strided else components(thing.detach())
    return [*numbered(sparse), *([("'s gradient", thing.grad)] if thing.is_leaf else [])]


def _digest(thing: Any) -> object:
    try:
        return digest(thing)
    except _REFUSED:  # a view into something else, or a tensor without memory of its own
        return _CLOSED, type(thing).__name__


def _reduced(thing: Any, place: str, found: Snapshot) -> Contents:
    """Return what Python's own copying would copy."""
    try:
        if isinstance(thing, memoryview):
            return [("", thing.tobytes())]
        reduce = copyreg.dispatch_table.get(type(thing))
        made = reduce(thing) if reduce else thing.__reduce_ex__(4)
        return numbered([made] if isinstance(made, str) else [list(x) if isinstance(x, Iterator) else x for x in made])
    except _REFUSED:
        found.append((place, (_CLOSED, type(thing).__name__)))
        return []
