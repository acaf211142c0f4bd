"""Compatibility of cell values: equal values, and generalized ones with all that they cover, on either side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput

__all__ = ["Codes", "Generalization", "compatible_pairs", "expand_ranges", "parse_generalization"]

Codes = npt.NDArray[np.int64]

_MOST = 1 << 27
_NUMBER = r"\s*(-?\d+(?:\.\d+)?)\s*"
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?")
_STEM = re.compile(r"([^*]+?)(\*[*\W]*)")
_HIDDEN = re.compile(r"\d[\d-]*(?:-?X{2,})+", re.IGNORECASE)
_RANGE = re.compile(rf"{_NUMBER}(?:-|–|to|\.\.){_NUMBER}")
_BRACKETS = re.compile(rf"([\[(\]]){_NUMBER}(?:-|–|to|\.\.|,|;){_NUMBER}([\])\[])")
_ABOVE = re.compile(rf"(?:>=|≥){_NUMBER}|{_NUMBER}\+")
_STRICT = re.compile(rf"([<>]|<=|≤){_NUMBER}")


@dataclass(frozen=True)
class Generalization:
    """Meaning of a generalized text: texts with a prefix, texts with the same other letters, or a range of numbers."""

    stem: str | None = None
    form: str | None = None
    """Text with a star for each hidden letter."""
    span: tuple[float, float] | None = None
    """Lower and upper end, both included."""


def parse_generalization(text: str) -> Generalization | None:
    """Parse a generalized text: 130**, 130XX, 1**53, 30-39, [30, 40), 65+ or <18; return None for any other text.

    Digits that end in stars are also ranges of numbers, so that 3* and 30-34 are compatible.

    Args:
        text: The text of a cell.
    """
    starred = re.sub("[xX]", "*", text) if _HIDDEN.fullmatch(text) else text
    if found := _STEM.fullmatch(starred):
        digits, stars = found[1], len(found[2])
        whole = digits.isdecimal() and set(found[2]) == {"*"}
        span = (int(digits) * 10.0**stars, (int(digits) + 1) * 10.0**stars - 1) if whole else None
        return Generalization(stem=digits, span=span)
    if "*" in starred and starred.strip("*"):
        return Generalization(form=starred)
    low, high = _ends(text) or (1.0, 0.0)
    # 13053-1234 and 1984-05 are a postcode and a month: a range does not end before it starts.
    return Generalization(span=(low, high)) if low <= high else None


def _ends(text: str) -> tuple[float, float] | None:
    if found := _RANGE.fullmatch(text):
        return float(found[1]), float(found[2])
    if found := _BRACKETS.fullmatch(text):
        low, high = float(found[2]), float(found[3])
        return (low if found[1] == "[" else _next(low)), (high if found[4] == "]" else _next(high, -np.inf))
    if found := _ABOVE.fullmatch(text):
        return float(found[1] or found[2]), np.inf
    if found := _STRICT.fullmatch(text):
        end, sign = float(found[2]), found[1]
        return (_next(end), np.inf) if sign == ">" else (-np.inf, _next(end, -np.inf) if sign == "<" else end)
    return None


def _next(number: float, towards: float = np.inf) -> float:
    return float(np.nextafter(number, towards))


def expand_ranges(starts: Codes, ends: Codes) -> tuple[Codes, Codes]:
    """Return all positions in many ranges, and the range that each belongs to.

    Args:
        starts: The first position of each range.
        ends: The position after the last one of each range.

    Returns:
        The index of the range, and the position.

    Raises:
        InvalidInput: If there are too many positions.

    >>> expand_ranges(np.array([5, 0, 7]), np.array([7, 0, 8]))[1].tolist()
    [5, 6, 7]
    """
    counts = np.maximum(ends - starts, 0)
    if counts.sum() > _MOST:
        problem = f"has coarsened cells that agree with others in {counts.sum():,} ways, which is too many"
        raise InvalidInput("on", problem, "coarsen both tables in the same way, or leave that column out")
    of = np.repeat(np.arange(len(counts)), counts)
    return of, np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts) + starts[of]


def _is_hierarchy(texts: Sequence[str]) -> bool:
    """Return whether texts such as 30-39 can be ranges: any two are disjoint or nested, as generalized cells are.

    Telephone numbers (555-1234) or postcodes (14850-9999) that look like ranges soon overlap in part.
    """
    spans = sorted({(float(found[1]), -float(found[2])) for found in map(_RANGE.fullmatch, texts) if found})
    within: list[float] = []
    for low, high in ((low, -minus) for low, minus in spans if low <= -minus):
        while within and within[-1] <= low:
            within.pop()
        if within and high > within[-1]:
            return False
        within.append(high)
    return True


class _DistinctValues:
    """Distinct values of one table, by kind; `ranges` says whether texts such as 30-39 are ranges."""

    def __init__(self, texts: Sequence[str], *, ranges: bool) -> None:
        self.texts = texts
        found = [parse_generalization(text) if ranges or not _RANGE.fullmatch(text) else None for text in texts]
        self.plain = [place for place, each in enumerate(found) if each is None]
        self.stems = {place: each.stem for place, each in enumerate(found) if each and each.stem is not None}
        self.forms = {place: each.form for place, each in enumerate(found) if each and each.form is not None}
        self.spans = {place: each.span for place, each in enumerate(found) if each and each.span is not None}

    def starting(self, places: Sequence[int], texts: Sequence[str]) -> tuple[Codes, Codes]:
        """Return pairs of a prefix and a position of the other table whose text starts with it."""
        stems = np.array([*self.stems], dtype=np.int64)
        order = np.array(sorted(range(len(places)), key=texts.__getitem__), dtype=np.int64)
        ordered = np.array([texts[each] for each in order], dtype=object)
        starts = np.searchsorted(ordered, np.array([*self.stems.values()], dtype=object))
        # The highest code point sorts after all texts with this prefix.
        ends = np.searchsorted(ordered, np.array([f"{stem}\U0010ffff" for stem in self.stems.values()], dtype=object))
        of, where = expand_ranges(starts, ends)
        return stems[of], np.array(places, dtype=np.int64)[order[where]]

    def numbered(self, other: _DistinctValues) -> tuple[Codes, Codes]:
        """Return pairs of a range of numbers and a plain number of the other table."""
        mine = np.array([place for place in self.spans if place not in self.stems], dtype=np.int64)
        low, high = (np.array([self.spans[place][end] for place in mine.tolist()]) for end in (0, 1))
        places = np.array([place for place in other.plain if _PLAIN.fullmatch(other.texts[place])], dtype=np.int64)
        numbers = np.array([float(other.texts[place]) for place in places.tolist()])
        order = np.argsort(numbers, kind="stable")
        of, where = expand_ranges(
            np.searchsorted(numbers[order], low, side="left"), np.searchsorted(numbers[order], high, side="right")
        )
        return mine[of], places[order[where]]

    def overlapping(self, other: _DistinctValues) -> tuple[Codes, Codes]:
        """Return pairs of ranges that overlap; two prefixes are compared as texts."""
        theirs = np.array([*other.spans], dtype=np.int64)
        low, high = (np.array([span[end] for span in other.spans.values()]) for end in (0, 1))
        ranges = np.array([place not in other.stems for place in other.spans], dtype=np.bool_)
        pairs = [
            theirs[(low <= end) & (high >= start) & (ranges | (place not in self.stems))]
            for place, (start, end) in self.spans.items()
        ]
        of = np.repeat(np.array([*self.spans], dtype=np.int64), [len(each) for each in pairs])
        return of, np.concatenate(pairs) if pairs else np.zeros(0, dtype=np.int64)

    def formed(self, other: _DistinctValues) -> tuple[Codes, Codes]:
        """Return pairs of a text with inner stars and a text of the other table that differs only there."""
        found = [
            (place, each)
            for place, form in self.forms.items()
            for each, text in enumerate(other.texts)
            if (each not in other.spans or each in other.stems) and _fit(form, other.stems.get(each), text)
        ]
        both = np.array(found, dtype=np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]


def _fit(form: str, stem: str | None, text: str) -> bool:
    if stem is not None:
        return len(stem) <= len(form) and all(a == b or a == "*" for a, b in zip(form, stem, strict=False))
    return all(a == b or "*" in (a, b) for a, b in zip_longest(form, text))


def compatible_pairs(published: Sequence[str], known: Sequence[str]) -> tuple[Codes, Codes]:
    """Return all pairs of distinct values that can belong to one person, in order, as indices into both lists.

    Args:
        published: The distinct values of the published table.
        known: The distinct values of the table with names.

    Returns:
        Indices into `published`, and indices into `known`.

    Raises:
        InvalidInput: If generalized values agree in too many ways.

    >>> mine, theirs = compatible_pairs(["130**", "14850", "30-39"], ["13053", "14850", "35-44"])
    >>> list(zip(mine.tolist(), theirs.tolist()))
    [(0, 0), (1, 1), (2, 2)]
    """
    # Where there are plain numbers, ranges cover them; otherwise they must look like generalized cells.
    numbers = any(map(_PLAIN.fullmatch, published)) or any(map(_PLAIN.fullmatch, known))
    ranges = numbers or (_is_hierarchy(published) and _is_hierarchy(known))
    one, other = _DistinctValues(published, ranges=ranges), _DistinctValues(known, ranges=ranges)
    places = {text: place for place, text in enumerate(known)}
    equal = np.array([(p, places[t]) for p, t in enumerate(published) if t in places], dtype=np.int64).reshape(-1, 2)
    pairs = [(equal[:, 0], equal[:, 1]), one.overlapping(other)]
    for some, rest, turned in ((one, other, False), (other, one, True)):
        found = [
            some.starting(rest.plain, [rest.texts[place] for place in rest.plain]),
            some.starting([*rest.stems], [*rest.stems.values()]),
            some.numbered(rest),
            some.formed(rest),
        ]
        pairs += [(b, a) for a, b in found] if turned else found
    width = max(len(known), 1)
    keys = np.unique(np.concatenate([a * width + b for a, b in pairs]))
    return keys // width, keys % width
