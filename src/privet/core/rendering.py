"""How records show themselves in a notebook. They are drawn by another room, which is loaded when one is shown."""

from __future__ import annotations

from importlib import import_module

__all__ = ["RENDERERS", "html_of"]

RENDERERS = {
    "Guarantee": "privet.report.notebook:guarantee_table",
    "Ledger": "privet.report.notebook:ledger_table",
    "Release": "privet.report.notebook:release_table",
}
"""For each class that shows itself the function that draws it. `Bounded` has none, and never will: it is private."""


def html_of(record: object) -> str:
    """A small table; a subclass is drawn as its parent.

    >>> from privet.core import Guarantee, Interval, Unit
    >>> html_of(Guarantee(Interval(0.9, 1.0), 1e-5, Unit(), "pld")).startswith("<table>")
    True
    """
    name = next(each.__name__ for each in type(record).__mro__ if each.__name__ in RENDERERS)
    module, _, function = RENDERERS[name].partition(":")
    return str(getattr(import_module(module), function)(record))
