"""Records of attacks and audits on a card: ROC curves, reconstructed images, and how to find a run's rows again.

The wrapper of a record says whether it is private. Whatever was scored on real members is `Internal`; synthetic
canaries are nobody's data, so that their scores are a part of the release.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from privet.core import InvalidInput, Record, checked

__all__ = ["Attacked", "Estimate", "Picture", "Point", "Remembered"]

_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Estimate(Record):
    """A rate and its confidence interval."""

    value: float
    lower: float
    upper: float
    at: float | None = None
    """The false-positive rate (FPR), if this is a true-positive rate."""

    def __post_init__(self) -> None:
        for name in ("value", "lower", "upper"):
            checked.finite(name, getattr(self, name))
        if not 0 <= self.lower <= self.value <= self.upper <= 1:
            raise InvalidInput("value", f"is {self.value:g}, outside of its interval, or that is no interval of shares")


@dataclass(frozen=True)
class Point(Record):
    """One point of an attack's curve."""

    alarms: float
    """The false-positive rate (FPR)."""
    hits: float
    """The true-positive rate (TPR): members identified."""
    lower: float
    """`hits` is at least this, for all points of all curves of the report at once."""


@dataclass(frozen=True)
class Attacked(Record):
    """The result of one membership attack on the model of a run."""

    attack: str
    members: int
    outsiders: int
    shadows: int
    """The number of shadow models."""
    hits: tuple[Estimate, ...]
    """The TPR at several FPR, the lowest FPR first."""
    auc: Estimate
    confidence: float
    """The confidence of each interval by itself."""
    together: float
    """The confidence of the lower bounds of all curves of the report at once."""
    curve: tuple[Point, ...]
    note: str = ""
    """How the attack was done, if that matters."""

    def __post_init__(self) -> None:
        checked.text("attack", self.attack)
        for name in ("members", "outsiders"):
            checked.count(name, getattr(self, name))
        checked.count("shadows", self.shadows, least=0)
        for name in ("confidence", "together"):
            checked.share(name, getattr(self, name))


@dataclass(frozen=True)
class Picture(Record):
    """An image that an attack reconstructed, as a PNG in base64."""

    title: str
    about: str
    """The text alternative to the image."""
    png: str

    def __post_init__(self) -> None:
        checked.text("title", self.title)
        checked.text("about", self.about)
        try:
            content = base64.b64decode(checked.text("png", self.png), validate=True)
        except binascii.Error:
            content = b""
        if not content.startswith(_PNG):
            raise InvalidInput("png", "is no PNG in base64", "give base64.b64encode(png).decode()")


@dataclass(frozen=True)
class Remembered(Record):
    """What a run stores for its owner, so that its rows can be found again and recognized."""

    asked: str
    """The request, as JSON."""
    rows: str
    """A keyed hash of the rows: it reveals nothing to anyone who cannot guess all of them."""
    key: str

    def __post_init__(self) -> None:
        for name in ("asked", "rows", "key"):
            checked.text(name, getattr(self, name))
