"""How records show themselves in a notebook. Another room draws them; the front door says which functions do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["html_of", "register_renderers"]

_loaders: list[Callable[[], Mapping[str, Callable[[Any], str]]]] = []


def register_renderers(load: Callable[[], Mapping[str, Callable[[Any], str]]]) -> None:
    """Register how records are rendered.

    Args:
        load: Called when a record is first shown. Returns the function that draws each class, by the class's name.
    """
    _loaders[:] = [load]


def html_of(record: object) -> str:
    """Return a small table; a subclass is drawn as its parent.

    Args:
        record: A guarantee, a release or a ledger.

    >>> from privet.core import Guarantee, Interval, Unit
    >>> html_of(Guarantee(Interval(0.9, 1.0), 1e-5, Unit(), "pld")).startswith("<table>")
    True
    """
    renderers = _loaders[0]()
    return next(renderers[kind.__name__](record) for kind in type(record).__mro__ if kind.__name__ in renderers)
