"""The card of a training run: everything that its pages and files say, each value typed by where it comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from privet.accounting import Meaning, canonical
from privet.core import (
    Canaries,
    Composed,
    Draw,
    Event,
    Evidence,
    Guarantee,
    Internal,
    InvalidInput,
    Public,
    Randomness,
    Release,
    Score,
    Shareable,
    Trial,
    Typed,
)
from privet.report.attack_records import Attacked, Picture, Remembered
from privet.report.card import RunCard, leaves, require_shareable
from privet.report.training_records import BillLine, Charged, Choice, Consensus, Finding, Growth, Series

__all__ = ["TrainingCard", "counts", "internal_fields", "is_tainted", "shareable"]


@dataclass(frozen=True)
class TrainingCard:
    """A training run and everything that it released.

    A card that contradicts itself cannot be made: `privacy.event` covers every release on it (except those in `stored`,
    which belong to other runs), the lines of `bill` add up to that event, and noise from a seeded generator makes the
    whole card seeded.
    """

    command: Public[str]
    """The command that repeats the run."""
    made: Public[str]
    """When the run was made, in UTC."""
    data: Public[str]
    """The data set's name."""
    model: Public[str]
    method: Public[str]
    choices: Shareable[tuple[Choice, ...]]
    """The plan: noise, clip, batch, epochs, learning rate, …, and why each was chosen. It is public, or computed from
    what was released."""
    privacy: RunCard
    """The privacy cost of everything that was released, what it means, and what was assumed (`conditions`)."""
    bill: Public[tuple[BillLine, ...]]
    """What the budget was spent on, line by line; together it is `privacy.event`."""
    growth: Public[Growth] | None
    """ε against epochs; None for methods without epochs."""
    randomness: Public[Randomness]
    versions: Public[tuple[tuple[str, str], ...]]
    ledger: Public[Charged] | None = None
    """None where the run was charged to no ledger."""
    rows: Typed[int] | None = None
    schema: Typed[str] | None = None
    """The schema's TOML."""
    scores: tuple[Typed[Score], ...] = ()
    history: tuple[Typed[Series], ...] = ()
    compared: tuple[Typed[Trial], ...] = ()
    """Other methods on the same split, charged to this run."""
    stored: tuple[Typed[Trial], ...] = ()
    """Runs that were made before, with privacy costs of their own."""
    evidence: tuple[Typed[Evidence], ...] = ()
    teachers: Public[int] | None = None
    """How many voted, where teachers did."""
    consensus: Typed[Consensus] | None = None
    findings: tuple[Typed[Finding], ...] = ()
    """ε that hold for these data alone."""
    attacks: tuple[Internal[Attacked], ...] = ()
    """Membership attacks on the model, scored on real members."""
    canaries: tuple[Typed[Canaries], ...] = ()
    """Synthetic examples among the rows, and the scores that the release gives them."""
    pictures: tuple[Internal[Picture], ...] = ()
    """Images that attacks reconstructed."""
    remembered: Internal[Remembered] | None = None
    """How to find the rows again; for their owner, and on no page."""
    internal_remarks: tuple[Internal[str], ...] = ()
    """Remarks that depend on private facts, such as that δ is large for these data."""

    def __post_init__(self) -> None:
        if not isinstance(self.privacy, RunCard):
            raise InvalidInput("privacy", f"is a {type(self.privacy).__name__}, where a RunCard is wanted")
        require_shareable(self.privacy)
        for name, record in (("event", Event), ("guarantee", Guarantee), ("meaning", Meaning)):
            _require_public(f"privacy.{name}", getattr(self.privacy, name), record)
        if not isinstance(self.choices, (Public, Release)) or not isinstance(self.choices.value, tuple):
            raise InvalidInput("choices", "is neither Public nor a Release of a tuple", "wrap it in what it is")
        for name, (wrappers, held) in _field_types().items():
            value = getattr(self, name)
            for item in value if isinstance(value, tuple) else (value,):
                _require_typed(name, item, wrappers, held)
        for name, kind in (("choices", Choice), ("bill", BillLine), ("versions", tuple)):
            if not all(isinstance(item, kind) for item in getattr(self, name).value):
                raise InvalidInput(name, f"holds something else than a {kind.__name__}")
        self._require_paid()

    def _require_paid(self) -> None:
        draws: dict[str, Draw] = {}
        for name, leaf in leaves(self):
            if not isinstance(leaf, Release) or name == "stored":
                continue
            if leaf.unit != self.privacy.guarantee.value.unit:
                problem = f"was released for {leaf.unit}, and the run is priced for another unit"
                raise InvalidInput(name, problem, "price all of it for one unit")
            draws |= {draw.id: draw for draw in leaf.draws}
        paid = counts([self.privacy.event.value])
        # What is drawn without noise stands in the counts too, so that a price cannot leave it out.
        if counts(draw.event for draw in draws.values()) - paid:
            problem = "does not hold everything that was drawn for this card"
            raise InvalidInput("privacy", problem, "compose the events of all releases on the card, and price that")
        if self.bill.value and counts(line.event for line in self.bill.value) != paid:
            raise InvalidInput("bill", "does not add up to privacy.event", "make both with `priced`")
        if is_tainted(self) and self.randomness.value is Randomness.SECURE:
            raise InvalidInput("randomness", "is said to be secure, and a release on the card used a seeded generator")


@cache
def _field_types() -> dict[str, tuple[set[Any], type]]:
    """Return, for each typed field, the wrappers that its values may have and the type inside them."""
    types = {}
    for name, hint in get_type_hints(TrainingCard).items():
        inner = get_args(hint)[0] if get_origin(hint) is tuple else hint
        options = get_args(inner) if get_origin(inner) in (Union, UnionType) else (inner,)
        wrapped = [option for option in options if get_origin(option) in (Public, Release, Internal)]
        if wrapped:
            held = get_args(wrapped[0])[0]
            types[name] = {get_origin(option) or option for option in options}, get_origin(held) or held
    return types


def _require_typed(name: str, value: Any, wrappers: set[Any], kind: type) -> None:
    """Raise unless a value says where it comes from, in a way that its field allows, and is of the right type."""
    if value is None and NoneType in wrappers:
        return
    if wrappers - {NoneType} == {Public}:
        _require_public(name, value, kind)
    elif not isinstance(value, (Public, Release, Internal)):
        problem = f"holds a {type(value).__name__}, which does not say where it comes from"
        raise InvalidInput(name, problem, "wrap it in Public, Release or Internal")
    elif not isinstance(value.value, kind):
        raise InvalidInput(name, f"holds a {type(value.value).__name__}, where a {kind.__name__} is wanted")
    elif not isinstance(value, tuple(wrappers)):
        problem = "holds something that is marked for sharing, and it touches private rows"
        raise InvalidInput(name, problem, "wrap it in Internal")


def _require_public(name: str, value: object, kind: type) -> None:
    if not isinstance(value, Public):
        problem = f"is a {type(value).__name__}, and only what is known without the data may stand there"
        raise InvalidInput(name, problem, "wrap it in Public if it is")
    if not isinstance(value.value, kind):
        raise InvalidInput(name, f"holds a {type(value.value).__name__}, where a {kind.__name__} is wanted")


def counts(events: Iterable[Event]) -> Counter[object]:
    """Return how often each mechanism ran, with each way of sampling its rows."""
    whole = canonical(Composed(tuple(events)))
    runs: Counter[object] = Counter({(part.leaf, part.sampling): part.count for part in whole.parts})
    if whole.nonprivate is not None:
        runs["non-private"] = 1
    return runs


def is_tainted(card: TrainingCard) -> bool:
    """Return whether any noise behind the card came from a seeded generator, which protects nobody."""
    seeded = card.randomness.value is not Randomness.SECURE
    return seeded or any(leaf.tainted for _, leaf in leaves(card) if isinstance(leaf, Release))


def shareable(card: TrainingCard) -> TrainingCard:
    """Return the card without its internal values; what remains is public or was released under the budget.

    Args:
        card: The card.

    Raises:
        InvalidInput: A value that remains contains an internal one.
    """
    values: dict[str, Any] = {}
    for field in fields(card):
        value = getattr(card, field.name)
        if isinstance(value, tuple):
            value = tuple(item for item in value if not isinstance(item, Internal))
        values[field.name] = None if isinstance(value, Internal) else value
    shared = TrainingCard(**values)
    require_shareable(shared)
    return shared


def internal_fields(card: TrainingCard) -> tuple[str, ...]:
    """Return the names of the fields that have an internal value.

    Args:
        card: The card.
    """
    return tuple(dict.fromkeys(name for name, leaf in leaves(card) if isinstance(leaf, Internal)))
