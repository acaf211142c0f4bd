"""A value that may be published, and the record of its privacy cost."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from privet.core import checked
from privet.core.codec import VERSION, Record, encode
from privet.core.errors import InvalidInput
from privet.core.event import Composed, Event
from privet.core.guarantee import Guarantee
from privet.core.randomness import Randomness
from privet.core.rendering import html_of
from privet.core.unit import Unit

__all__ = ["Draw", "Release", "Unpublishable"]

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Draw(Record):
    """One run of a mechanism: which data, what was done, and an id, so that it counts once however often it is used."""

    source: str
    event: Event
    id: str

    def __post_init__(self) -> None:
        checked.text("source", self.source)
        checked.text("id", self.id)
        if not isinstance(self.event, Event):
            raise InvalidInput("event", f"is a {type(self.event).__name__}, which is not an event")


def _distinct(draws: Iterable[Draw]) -> tuple[Draw, ...]:
    """Return each draw once. Different draws under one id are refused: the cost of one of them would be lost."""
    found: dict[str, Draw] = {}
    for draw in draws:
        if found.setdefault(draw.id, draw) != draw:
            problem = f"hold two different draws with the id {draw.id!r}"
            raise InvalidInput("draws", problem, "leave it to the mechanism to give each draw an id of its own")
    return tuple(found.values())


class Unpublishable:
    """What was computed from private data without a mechanism, such as a price for this very data set: no release, no
    card and no guarantee takes it, whoever wraps it."""

    __slots__ = ()


@dataclass(frozen=True, eq=False)
class Release(Generic[T]):
    """A value that may be published, with every draw behind it, the unit it protects and the randomness it used.

    >>> from privet.core.event import Laplace
    >>> noisy = Release.of(42.0, Laplace(1.0), unit=Unit(), source="clinic", randomness=Randomness.SECURE)
    >>> twice = Release.join(noisy.map(round), noisy.map(lambda x: x > 40))
    >>> twice.value, twice.event == noisy.event
    ((42, True), True)
    """

    value: T
    draws: tuple[Draw, ...]
    unit: Unit
    randomness: Randomness
    guarantee: Guarantee | None = None
    """What the draws cost, where whoever made the release has priced them."""

    def __post_init__(self) -> None:
        if isinstance(self.value, Unpublishable):
            problem = f"is a {type(self.value).__name__}, which depends on the data and must not leave"
            raise InvalidInput("value", problem, "release it through a mechanism of its own")
        if not self.draws:
            raise InvalidInput("draws", "is empty", "a value that no mechanism made is not a release")
        if not isinstance(self.unit, Unit):
            raise InvalidInput("unit", f"is a {type(self.unit).__name__}, where a Unit is wanted")
        if not isinstance(self.randomness, Randomness):
            raise InvalidInput("randomness", f"is {self.randomness!r}, which is no kind of randomness")
        _distinct(self.draws)
        if self.guarantee is not None and not isinstance(self.guarantee, Guarantee):
            raise InvalidInput("guarantee", f"is a {type(self.guarantee).__name__}, where a Guarantee is wanted")
        if self.guarantee is not None and self.guarantee.unit != self.unit:
            raise InvalidInput("guarantee", f"is for {self.guarantee.unit}, and the release for {self.unit}")

    @staticmethod
    def of(
        value: U,
        event: Event,
        *,
        unit: Unit,
        source: str,
        randomness: Randomness,
        guarantee: Guarantee | None = None,
    ) -> Release[U]:
        """Return the release of one fresh draw; only mechanisms and plans call this.

        Args:
            value: The value that the mechanism drew.
            event: What was done to draw it.
            unit: Whose data is protected.
            source: The name of the data, for the ledger.
            randomness: Whether the noise came from a secure or a seeded generator.
            guarantee: The privacy cost of the event for `unit`, if the caller has computed it.

        Guarantee: what the event is priced at for `unit`; the caller has just done exactly that event.

        Raises:
            InvalidInput: The value is one that must not be published, an argument has the wrong type, or the guarantee
                is for another unit.
        """
        return Release(value, (Draw(source, event, secrets.token_hex(16)),), unit, randomness, guarantee)

    @property
    def event(self) -> Event:
        """Everything that was done to make this value, each draw once."""
        if len(self.draws) == 1:
            return self.draws[0].event
        return Composed(tuple(draw.event for draw in self.draws))

    @property
    def source(self) -> tuple[str, ...]:
        """The data sets behind this value."""
        return tuple(sorted({draw.source for draw in self.draws}))

    @property
    def tainted(self) -> bool:
        """Whether any of the noise came from a seeded generator, which protects nobody."""
        return self.randomness is not Randomness.SECURE

    def map(self, function: Callable[[T], U]) -> Release[U]:
        """Apply a function to the value. Post-processing has no privacy cost.

        Args:
            function: A function of the value that reads no private data.

        Returns:
            A release of the result, with the same draws.

        Guarantee: the same as this release's (post-processing, Dwork & Roth 2014, Prop. 2.1), provided that
        `function` reads no private data.

        Raises:
            InvalidInput: The result is a value that must not be published.
        """
        return Release(function(self.value), self.draws, self.unit, self.randomness, self.guarantee)

    @staticmethod
    def join(first: Release[T], second: Release[U]) -> Release[tuple[T, U]]:
        """Join two releases into a release of the pair; a draw that is behind both is counted once.

        Args:
            first: One release.
            second: The other release, for the same unit.

        Guarantee: the composition of the distinct draws, for the one unit that both must share. Nobody has
        priced that yet, and the new release says nothing of its guarantee.

        Raises:
            InvalidInput: The releases protect different units.
        """
        if first.unit != second.unit:
            problem = f"differ: {first.unit} and {second.unit}"
            raise InvalidInput("units", problem, "only releases that protect the same unit can be joined")
        draws = _distinct((*first.draws, *second.draws))
        kinds = {first.randomness, second.randomness}
        randomness = Randomness.SEEDED if Randomness.SEEDED in kinds else Randomness.SECURE
        return Release((first.value, second.value), draws, first.unit, randomness)

    def _repr_html_(self) -> str:
        return html_of(self)

    def to_json(self) -> str:
        """Return everything except the value as JSON."""
        record: dict[str, Any] = {
            "is": "Release",
            "draws": encode(self.draws),
            "unit": encode(self.unit),
            "randomness": self.randomness.value,
            "tainted": self.tainted,
            "guarantee": None if self.guarantee is None else encode(self.guarantee),
        }
        return json.dumps({"privet": VERSION, "record": record}, sort_keys=True, allow_nan=False)
