"""Where the bounds and values of a column come from, and who vouches that no private row was used for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from enum import Enum

from privet.core import InvalidInput, checked

__all__ = ["BoundsSource", "SourceKind", "assumptions_of"]

_MOST_NAMED = 8
"""How many columns an assumption names; the schema lists all of them."""


class SourceKind(Enum):
    """Where bounds and values can come from without reading private rows outside the budget."""

    CODEBOOK = "codebook"
    """A codebook, questionnaire, standard or other documentation of the data."""
    DOMAIN_LIMIT = "domain limit"
    """What is possible at all: an age from 0 to 120, a percentage from 0 to 100."""
    PUBLIC_DATA = "public data"
    """Other rows, which need no protection."""
    LEARNED = "learned under the budget"
    """Released by a mechanism, and charged to the budget of these rows."""


_STATEMENTS = {
    SourceKind.CODEBOOK: "come from a codebook and not from the private rows",
    SourceKind.DOMAIN_LIMIT: "are limits of the domain and were not read from the private rows",
    SourceKind.PUBLIC_DATA: "were read from public data and not from the private rows",
    SourceKind.LEARNED: "were learned under the budget of these rows",
}
_COST_ELSEWHERE = "; the cost of learning them is not part of this ε"
"""Of a schema that somebody vouches for: it came from a file, and whatever released it was charged by itself."""
_COST_UNKNOWN = "; the cost of learning them is part of this ε only if the same run learned them"
"""Of a schema without a name: of a run that learned it, or of a caller who says so."""


@dataclass(frozen=True)
class BoundsSource:
    """The source of one column's bounds or values.

    >>> BoundsSource(SourceKind.CODEBOOK, by="Ada Lovelace", on=date(2026, 11, 18)).kind
    <SourceKind.CODEBOOK: 'codebook'>
    """

    kind: SourceKind
    by: str | None = None
    """Who vouches for it."""
    on: date | None = None
    """When they did."""
    reference: str | None = None
    """Where to look it up: a title, a page, an address."""
    seal: str | None = None
    """A digest of what was vouched for (`seal_of`), so that a later edit is noticed."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", checked.member("source", self.kind, SourceKind))
        for name in ("by", "reference", "seal"):
            value = getattr(self, name)
            if value is not None and not checked.text(name, value).isprintable():
                raise InvalidInput(name, "has line ends or control characters", "write it in one line")
        if self.on is not None and type(self.on) is not date:
            raise InvalidInput("on", "is not a date", "write it as 2026-11-18, without quotes")
        if (self.by is None) != (self.on is None):
            raise InvalidInput("on" if self.on is None else "by", "is missing", "say both who vouches, and when")

    @staticmethod
    def of(given: BoundsSource | SourceKind | str | None) -> BoundsSource | None:
        """Return a record for what a caller passed: a record, a kind, or a kind's name.

        Args:
            given: The record itself, a `SourceKind`, one of its values as text, or None.

        Raises:
            InvalidInput: The text is not one of the kinds.
        """
        if given is None or isinstance(given, BoundsSource):
            return given
        return BoundsSource(checked.member("source", given, SourceKind))


def assumptions_of(columns: Iterable[tuple[str, BoundsSource | None]]) -> tuple[str, ...]:
    """Return what a guarantee assumes about sources, one sentence for each kind and person.

    Args:
        columns: Pairs of a column's name and its source; columns without a source are skipped.

    >>> assumptions_of([("age", BoundsSource(SourceKind.DOMAIN_LIMIT)), ("ward", None)])
    ("the bounds or values of 'age' are limits of the domain and were not read from the private rows \
    (as stated; nobody is named)",)
    """
    groups: dict[tuple[SourceKind, str | None, date | None], list[str]] = {}
    for name, source in columns:
        if source is not None:
            groups.setdefault((source.kind, source.by, source.on), []).append(name)
    sentences = []
    for (kind, by, on), names in groups.items():
        listed = ", ".join(map(repr, names[:_MOST_NAMED]))
        if len(names) > _MOST_NAMED:
            listed += f" and {len(names) - _MOST_NAMED} more columns"
        who = f"{by} vouched for this on {on}" if by is not None else "as stated; nobody is named"
        cost = _COST_UNKNOWN if by is None else _COST_ELSEWHERE
        learned = cost if kind is SourceKind.LEARNED else ""
        sentences.append(f"the bounds or values of {listed} {_STATEMENTS[kind]}{learned} ({who})")
    return tuple(sentences)
