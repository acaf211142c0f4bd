"""Comparison of two results: the places where they differ, in plain words.

Everything that can be reached from a result is released with it: also what a function closes over, what is attached to
a module beside its weights, and what a subclass of `dict` carries. A type whose contents cannot be seen is reported,
and never passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from datetime import datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from privet.audit.array_contents import components, count_differing, layout, whole
from privet.audit.object_contents import PLAIN, Contents, attributes_of, contents_of, is_frame, numbered, plain_kind

__all__ = ["differences"]

_BY_TEXT: Final = (float, complex, Decimal, datetime, time)
"""Types whose equal values may be distinguishable (0.0 and -0.0, one instant in two time zones), or NaN."""

_Pairs = dict[tuple[int, int], tuple[Any, Any]]


def differences(one: Any, other: Any, place: str = "the result") -> Iterator[str]:
    """Yield each place where two objects differ, without the values, which may be private.

    Args:
        one: An object.
        other: The object that it is compared with.
        place: The name of the objects in messages.

    >>> list(differences({"a": 1, "b": [2.0, float("nan")]}, {"a": 1, "b": [2.5, float("nan")]}))
    ["the result['b'][0] differs"]
    >>> list(differences(iter([1]), iter([1])))
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
    elif (id(one), id(other)) in seen:  # each pair is compared once, so that cycles end
        return
    else:
        seen[id(one), id(other)] = one, other  # kept, so that no other pair gets these ids
        contents = _contents(one, other, place, seen)
        if contents is None:
            yield f"{place} is a {type(one).__name__}, which cannot be compared"
            return
        yield from contents
    if not isinstance(one, (type, Enum)):  # of which there is one each
        yield from _attributes(one, other, place, seen)


def _contents(one: Any, other: Any, place: str, seen: _Pairs) -> Iterator[str] | None:
    """Return differences beside attributes; None where they cannot be determined."""
    if isinstance(one, torch.Tensor):
        return _tensors(one, other, place, seen)
    if isinstance(one, (np.ndarray, np.void)):
        return _arrays(np.asarray(one), np.asarray(other), place, seen)
    if isinstance(one, nn.Module):
        return _differing(_weights(one), _weights(other), f"{place}'s weights", seen)
    if is_frame(one):
        return _frames(one, other, place)
    if isinstance(one, Set) and one == other:  # equal sets may come in different orders
        other = {entry: entry for entry in other}
        return _labeled([("", entry) for entry in one], [("", other[entry]) for entry in one], place, seen)
    mine, its = contents_of(one), contents_of(other)
    return None if mine is None or its is None else _labeled(mine, its, place, seen)


def _labeled(mine: Contents, its: Contents, place: str, seen: _Pairs) -> Iterator[str]:
    if [label for label, _ in mine] != [label for label, _ in its]:
        yield f"{place} has other entries, or in another order"
        return
    for (label, one), (_, other) in zip(mine, its, strict=True):
        yield from _differing(one, other, f"{place}{label}", seen)


def _equal(one: Any, other: Any) -> bool:
    # Use the base type's ==, because a subclass may override it and ignore differences.
    kind: Any = plain_kind(one)
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
    mine, its = attributes_of(one), attributes_of(other)
    if mine.keys() != its.keys():
        yield f"{place} has other attributes"
        return
    for name, value in mine.items():
        yield from _differing(value, its[name], f"{place}.{name}", seen)


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
        mine, its = (numbered(each.reshape(-1).tolist()) for each in (one, other))
        yield from _labeled(mine, its, place, seen)
    elif count := count_differing(one, other):
        yield f"{place} differs in {count} of {int(np.prod(one.shape))} numbers"
    if layout(one) != layout(other):
        yield f"{place} lies otherwise in memory"
    yield from _views(one, other, place, seen)


def _views(one: Any, other: Any, place: str, seen: _Pairs) -> Iterator[str]:
    """Compare the arrays that these are views of.

    They are released with the views: `torch.save` writes them, and `.base` refers to them.
    """
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
    """Return the sign bits of each column of floats: `equals` does not distinguish −0.0 from 0.0."""
    columns = frame.get_columns() if hasattr(frame, "get_columns") else [frame]
    return [np.signbit(each.fill_null(0).fill_nan(0).to_numpy()).tobytes() for each in columns if each.dtype.is_float()]
