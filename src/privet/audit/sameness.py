"""Whether two things that came out are the same, and in plain words where they are not.

Whatever can be reached from a result leaves with it: also what a function closes over, what hangs on a module beside
its weights, and what a subclass of `dict` carries. A kind whose insides cannot be seen is refused, and never passed.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime, time
from decimal import Decimal
from enum import Enum
from types import FunctionType
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from privet.audit.insides import PLAIN, hides, is_frame, kind_of, own, parts_of, picked, reached
from privet.audit.numbers import components, layout, moved, whole

__all__ = ["differing"]

_BY_TEXT: Final = (float, complex, Decimal, datetime, time)
"""What may be equal and still be told apart (0.0 and -0.0, one instant in two zones), or be NaN."""

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
    if isinstance(one, PLAIN) and not isinstance(one, np.void):
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
    picks = picked(one)
    if picks is not None:
        return _named(picks, picked(other) or {}, f"{place}'s ", seen)
    if isinstance(one, torch.Tensor):
        return _tensors(one, other, place, seen)
    if isinstance(one, (np.ndarray, np.void)):
        return _arrays(np.asarray(one), np.asarray(other), place, seen)
    if isinstance(one, nn.Module):
        return _differing(_weights(one), _weights(other), f"{place}'s weights", seen)
    if is_frame(one):
        return _frames(one, other, place)
    if isinstance(one, weakref.ReferenceType):
        return _differing(one(), other(), place, seen)
    entries = _entries(one, other, place, seen)
    if entries is None and not parts_of(one) and hides(type(one)):
        return None
    return _together(one, other, entries, place, seen)


def _together(one: Any, other: Any, entries: Iterator[str] | None, place: str, seen: _Pairs) -> Iterator[str]:
    yield from _named(parts_of(one), parts_of(other), f"{place}.", seen)
    if isinstance(one, FunctionType) and one.__code__ == other.__code__:
        yield from _differing(reached(one), reached(other), f"{place}'s closure", seen)
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
    # Not by ==, which is no answer for keys such as an optimizer's tensors.
    if len(keys) != len(others) or any(_differing(keys, others, place, seen)):
        yield f"{place} has other keys, or in another order"
        return
    for number, (key, its) in enumerate(zip(keys, others, strict=True)):
        named = repr(key) if isinstance(key, PLAIN) else f"key {number}"
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


def _named(mine: Mapping[str, Any], its: Mapping[str, Any], place: str, seen: _Pairs) -> Iterator[str]:
    for name, value in mine.items():
        yield from _differing(value, its[name], f"{place}{name}", seen)


def _equal(one: Any, other: Any) -> bool:
    # By the kind's own ==, since a subclass may have made its own blind.
    kind: Any = kind_of(one)
    if kind in _BY_TEXT:
        return bool(kind.__repr__(one) == kind.__repr__(other))
    if kind is np.generic:
        return not any(_arrays(np.asarray(one), np.asarray(other), "", {}))
    same, *nans = (kind.__eq__(*pair) for pair in ((one, other), (one, one), (other, other)))
    return _true(same) or not any(_true(each) for each in nans)


def _true(answer: Any) -> bool:
    return answer is not NotImplemented and bool(answer)


def _weights(module: nn.Module) -> dict[str, Any]:
    return dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))


def _attributes(one: Any, other: Any, place: str, seen: _Pairs) -> Iterator[str]:
    mine, its = own(one), own(other)
    if mine.keys() != its.keys():
        yield f"{place} has other attributes"
        return
    yield from _named(mine, its, f"{place}.", seen)


def _tensors(one: Any, other: Any, place: str, seen: _Pairs) -> Iterator[str]:
    if one.grad_fn is not None or other.grad_fn is not None:
        yield f"{place} carries how it was computed, which cannot be compared: detach it"
    if _sort(one) != _sort(other):
        yield f"{place} is another kind of tensor"
        return
    if one.is_meta:  # it has no numbers
        if one.shape != other.shape or one.dtype != other.dtype:
            yield f"{place} has another shape or type"
        return
    try:
        yield from list(_numbers(one.detach(), other.detach(), place, seen))
    except RuntimeError:  # it has no memory of its own
        yield f"{place} is a {type(one).__name__}, which cannot be compared"
    if one.is_leaf and other.is_leaf:
        yield from _differing(one.grad, other.grad, f"{place}'s gradient", seen)


def _sort(tensor: torch.Tensor) -> tuple[object, ...]:
    single = tensor.layout == torch.sparse_coo and tensor.is_coalesced()
    return tensor.layout, tensor.requires_grad, tensor.device, tensor.is_conj(), tensor.is_neg(), single


def _numbers(one: Any, other: Any, place: str, seen: _Pairs) -> Iterator[str]:
    if one.layout == torch.strided or one.shape != other.shape:
        yield from _arrays(one, other, place, seen)
        return
    for pair in zip(components(one), components(other), strict=True):
        yield from _arrays(*pair, place, seen)


def _arrays(one: Any, other: Any, place: str, seen: _Pairs) -> Iterator[str]:
    if one.shape != other.shape or one.dtype != other.dtype:
        sizes = tuple(one.shape), tuple(other.shape)
        yield f"{place} is {one.dtype} of shape {sizes[0]}, and {other.dtype} of shape {sizes[1]}"
        return
    if isinstance(one, np.ndarray) and one.dtype.hasobject:
        yield from _sequences(one.reshape(-1).tolist(), other.reshape(-1).tolist(), place, seen)
    elif count := moved(one, other):
        yield f"{place} differs in {count} of {int(np.prod(one.shape))} numbers"
    if layout(one) != layout(other):
        yield f"{place} lies otherwise in memory"
    yield from _views(one, other, place, seen)


def _views(one: Any, other: Any, place: str, seen: _Pairs) -> Iterator[str]:
    """What a view is part of goes wherever it goes: `torch.save` writes it, and `.base` is it."""
    bases = whole(one), whole(other)
    if any(_differing(*bases, place, seen)):
        yield f"{place} is a view of more than itself, which differs or cannot be compared: return a copy"


def _frames(one: Any, other: Any, place: str) -> Iterator[str]:
    kinds = [(each.schema if hasattr(each, "schema") else (each.name, each.dtype)) for each in (one, other)]
    if kinds[0] != kinds[1]:
        yield f"{place} has other columns"
    elif not one.equals(other) or _signs(one) != _signs(other):  # NaN is NaN there, and null is null
        yield f"{place} differs"


def _signs(frame: Any) -> list[bytes]:
    """Of each column of floats: `equals` takes −0.0 for 0.0."""
    columns = frame.get_columns() if hasattr(frame, "get_columns") else [frame]
    return [np.signbit(each.fill_null(0).fill_nan(0).to_numpy()).tobytes() for each in columns if each.dtype.is_float()]
