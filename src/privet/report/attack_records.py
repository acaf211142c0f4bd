"""What attacks and audits put on a card: curves of attacks, canaries, pictures, and where a run's rows lie.

None of them says whether it is private: that is said by what it is wrapped in. Whatever was scored on real members is
`Internal`; canaries that were made up are nobody's data, so that what a release shows of them is a part of the release.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from privet.core import checked
from privet.core.codec import Record
from privet.core.errors import InvalidInput

__all__ = ["Attacked", "Estimate", "Picture", "Point", "Remembered"]

_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Estimate(Record):
    """A rate and its confidence interval."""

    value: float
    lower: float
    upper: float
    at: float | None = None
    """The part of the outsiders that is wrongly accused, for a rate of members that are found."""

    def __post_init__(self) -> None:
        for name in ("value", "lower", "upper"):
            checked.finite(name, getattr(self, name))
        if not 0 <= self.lower <= self.value <= self.upper <= 1:
            raise InvalidInput("value", f"is {self.value:g}, outside of its interval, or that is no interval of shares")


@dataclass(frozen=True)
class Point(Record):
    """One point of an attack's curve."""

    alarms: float
    """The part of the outsiders that is wrongly accused."""
    hits: float
    """The part of the members that is found."""
    lower: float
    """`hits` is at least this, for all points of all curves of the report at once."""


@dataclass(frozen=True)
class Attacked(Record):
    """How well one membership attack did against the model of a run."""

    attack: str
    members: int
    outsiders: int
    shadows: int
    """How many shadow models it used."""
    hits: tuple[Estimate, ...]
    """The part of the members that is found, where so many outsiders are accused: the lowest rate first."""
    auc: Estimate
    confidence: float
    """Of each interval by itself."""
    together: float
    """Of the lower bounds of all curves of the report at once."""
    curve: tuple[Point, ...]
    note: str = ""
    """How it was done, where that matters."""

    def __post_init__(self) -> None:
        checked.text("attack", self.attack)
        for name in ("members", "outsiders"):
            checked.count(name, getattr(self, name))
        checked.count("shadows", self.shadows, least=0)
        for name in ("confidence", "together"):
            checked.share(name, getattr(self, name))


@dataclass(frozen=True)
class Picture(Record):
    """A picture that an attack made, as a PNG in base64."""

    title: str
    about: str
    """What one would see: the text that stands for the picture."""
    png: str

    def __post_init__(self) -> None:
        checked.text("title", self.title)
        checked.text("about", self.about)
        try:
            found = base64.b64decode(checked.text("png", self.png), validate=True)
        except binascii.Error:
            found = b""
        if not found.startswith(_PNG):
            raise InvalidInput("png", "is no PNG in base64", "give base64.b64encode(png).decode()")


@dataclass(frozen=True)
class Remembered(Record):
    """What a run keeps for its owner, so that its rows can be found again and known for the same."""

    asked: str
    """All that was typed, as JSON."""
    rows: str
    """A keyed hash of the rows: it tells nothing of them to those who cannot guess them whole."""
    key: str

    def __post_init__(self) -> None:
        for name in ("asked", "rows", "key"):
            checked.text(name, getattr(self, name))
