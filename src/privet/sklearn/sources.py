"""Where the bounds, values and classes given to an estimator come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from privet.core import InvalidInput
from privet.data import BoundsSource, SourceKind

__all__ = ["TARGET", "SourceLike", "sources_of"]

SourceLike: TypeAlias = BoundsSource | SourceKind | str
"""A source, or the words for one."""

TARGET = "target"
"""The key of the classes, or of the target's bounds, in a mapping of sources."""
_ADVICE = (
    'say where they come from: source="codebook", or one for each column, such as {"age": "domain limit", "target": '
    '"codebook"}; one of ' + ", ".join(kind.value for kind in SourceKind)
)


def sources_of(source: Any, columns: Sequence[str]) -> tuple[tuple[str, BoundsSource], ...]:
    """Return the source of every column's bounds or values, and of the target's.

    Args:
        source: One source for all, or a mapping from a column's name or place, or "target", to its own.
        columns: The names of the columns, in order.

    Raises:
        InvalidInput: A column has no source; it is named.
    """
    names = [*columns, TARGET]
    if source is None or isinstance(source, (str, SourceKind, BoundsSource)):
        given: dict[str, Any] = dict.fromkeys(names, source)
    elif isinstance(source, Mapping):
        given = {}
        if TARGET in columns:
            problem = f"is a dict, and {TARGET!r} is both a column and the key of the classes or target's bounds"
            raise InvalidInput("source", problem, "rename the column, or give one source for all")
        for key, value in source.items():
            place = isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(columns)
            name = columns[key] if place else key
            if name not in names:
                raise InvalidInput("source", f"has the column {key!r}, which X has not", "use its name or its place")
            given[name] = value
    else:
        raise InvalidInput("source", f"is a {type(source).__name__}", _ADVICE)
    found = {name: BoundsSource.of(value) for name, value in given.items()}
    unknown = [repr(name) for name in names if found.get(name) is None]
    if unknown:
        raise InvalidInput("source", f"is missing for the bounds or values of {', '.join(unknown)}", _ADVICE)
    return tuple((name, each) for name in names if (each := found[name]) is not None)
