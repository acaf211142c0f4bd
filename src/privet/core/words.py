"""Counts and lists in words, for messages and pages."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["counted", "listed"]


def counted(number: float, noun: str) -> str:
    """Return a number with its noun, in the plural unless there is exactly one.

    >>> counted(1, "step"), counted(14063, "row"), counted(2.5, "epoch")
    ('1 step', '14,063 rows', '2.5 epochs')
    """
    return f"{number:,.10g} {noun}{'' if number == 1 else 's'}"


def listed(words: Sequence[str], last: str = "and") -> str:
    """Return words as a list in a sentence, with `last` before the last of them.

    >>> listed(["renyi", "zcdp", "gdp"]), listed(["zero-out", "replace"], "or"), listed(["pld"])
    ('renyi, zcdp and gdp', 'zero-out or replace', 'pld')
    """
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"
