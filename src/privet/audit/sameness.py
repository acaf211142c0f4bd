"""Whether two things that came out are the same, and in plain words where they are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch import nn

from privet.core.release import Release

__all__ = ["differing"]


def differing(one: Any, other: Any, place: str = "the result") -> Iterator[str]:
    """Each place where two things differ. What is in it is not said: it may be private.

    >>> list(differing({"a": 1, "b": [2.0, float("nan")]}, {"a": 1, "b": [2.5, float("nan")]}))
    ["the result['b'][0] differs"]
    """
    if one is other:
        return
    if type(one) is not type(other):
        yield f"{place} is a {type(one).__name__} and a {type(other).__name__}"
    elif isinstance(one, Release):
        # Ids of draws are random, and say nothing.
        for name, pick in _RELEASE.items():
            yield from differing(pick(one), pick(other), f"{place}'s {name}")
    elif isinstance(one, (torch.Tensor, np.ndarray)):
        yield from _arrays(np.asarray(_plain(one)), np.asarray(_plain(other)), place)
    elif isinstance(one, nn.Module):
        yield from differing(one.state_dict(), other.state_dict(), f"{place}'s weights")
    elif isinstance(one, Mapping):
        if list(one) != list(other):
            yield f"{place} has other keys, or in another order"
        else:
            for key in one:
                yield from differing(one[key], other[key], f"{place}[{key!r}]")
    elif isinstance(one, Sequence) and not isinstance(one, (str, bytes)):
        if len(one) != len(other):
            yield f"{place} has {len(one)} entries and {len(other)}"
        else:
            for number, pair in enumerate(zip(one, other, strict=True)):
                yield from differing(*pair, f"{place}[{number}]")
    elif is_dataclass(one):
        for field in fields(one):
            yield from differing(getattr(one, field.name), getattr(other, field.name), f"{place}.{field.name}")
    elif isinstance(one, FunctionType):  # two functions of one text are the same function, to whoever calls them
        if one.__code__ != other.__code__:
            yield f"{place} differs"
    elif (
        "__eq__" not in {name for kind in type(one).__mro__[:-1] for name in vars(kind)}
        and hasattr(one, "__dict__")
        and not isinstance(one, Enum)
    ):
        yield from differing(vars(one), vars(other), place)
    elif not (one == other or (one != one and other != other)):
        yield f"{place} differs"


_RELEASE: dict[str, Callable[[Release[Any]], Any]] = {
    "value": lambda release: release.value,
    "events": lambda release: [(draw.source, draw.event) for draw in release.draws],
    "unit": lambda release: release.unit,
    "randomness": lambda release: release.randomness,
    "guarantee": lambda release: release.guarantee,
}


def _plain(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value


def _arrays(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any], place: str) -> Iterator[str]:
    if one.shape != other.shape or one.dtype != other.dtype:
        yield f"{place} is {one.dtype} of shape {one.shape}, and {other.dtype} of shape {other.shape}"
    else:
        moved = int(np.count_nonzero(~((one == other) | ((one != one) & (other != other)))))
        if moved:
            yield f"{place} differs in {moved} of {one.size} numbers"
