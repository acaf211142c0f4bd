"""Short names for runs that are shown side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from privet.core import InvalidInput

__all__ = ["name_runs"]


def name_runs(runs: Sequence[Path]) -> dict[str, Path]:
    """Name each run by the end of its path, as much of it as tells it from the others.

    A page need not show where all of them lie.

    Args:
        runs: The folders of runs.

    Returns:
        The folders by name, in their order.

    Raises:
        InvalidInput: A folder comes twice.

    >>> [*name_runs([Path("a/first"), Path("b/first")])]
    ['a/first', 'b/first']
    """
    places = [run.resolve() for run in runs]
    if len(set(places)) < len(places):
        raise InvalidInput("runs", "name one folder twice", "name each once")
    for parts in range(1, max(len(place.parts) for place in places) + 1):
        names = ["/".join(place.parts[-parts:]) for place in places]
        if len(set(names)) == len(names):
            break
    return dict(zip(names, runs, strict=True))
