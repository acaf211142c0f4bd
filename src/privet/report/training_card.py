"""The card of a training run: everything that its pages and files say, each value typed by where it comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from privet.accounting.canonical import canonical
from privet.accounting.meaning import Meaning
from privet.core.disclosure import Internal, Public, Shareable, Typed
from privet.core.errors import InvalidInput
from privet.core.event import Composed, Event
from privet.core.guarantee import Evidence, Guarantee
from privet.core.randomness import Randomness
from privet.core.release import Draw, Release
from privet.core.scores import Canaries, Score, Trial
from privet.report.attack_records import Attacked, Picture, Remembered
from privet.report.card import RunCard, leaves, require_shareable
from privet.report.training_records import BillLine, Charged, Choice, Consensus, Finding, Growth, Series

__all__ = ["TrainingCard", "counts", "is_tainted", "left_out", "shareable"]


@dataclass(frozen=True)
class TrainingCard:
    """A training run and everything that it released.

    A card that is not true to itself cannot be made: every release on it is paid for by `privacy.event` (but for those
    in `stored`, which other runs paid for), the bill adds up to that event, and noise from a seeded generator makes
    the whole card seeded.
    """

    command: Public[str]
    """What to type to do it again."""
    made: Public[str]
    """When, in UTC."""
    data: Public[str]
    """The data set's name."""
    model: Public[str]
    method: Public[str]
    choices: Shareable[tuple[Choice, ...]]
    """The plan: noise, clip, batch, epochs, learning rate, …, and why each was chosen. It is public, or was made of
    what was released."""
    privacy: RunCard
    """The price of everything that was paid for, what it means, and what was assumed (`conditions`)."""
    bill: Public[tuple[BillLine, ...]]
    """What was paid for, line by line; together it is `privacy.event`."""
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
    """Other methods on the same split, paid for by this run."""
    stored: tuple[Typed[Trial], ...] = ()
    """Runs that were made before and have bills of their own."""
    evidence: tuple[Typed[Evidence], ...] = ()
    teachers: Public[int] | None = None
    """How many voted, where teachers did."""
    consensus: Typed[Consensus] | None = None
    findings: tuple[Typed[Finding], ...] = ()
    """What it cost these data."""
    attacks: tuple[Internal[Attacked], ...] = ()
    """Membership attacks on the model, by real members."""
    canaries: tuple[Typed[Canaries], ...] = ()
    """Made-up examples among the rows, and how what was released scores them."""
    pictures: tuple[Internal[Picture], ...] = ()
    """What attacks rebuilt."""
    remembered: Internal[Remembered] | None = None
    """Where the rows lie; for their owner, and on no page."""
    internal_remarks: tuple[Internal[str], ...] = ()
    """What depends on private facts and must not be shared: that δ is large for these data, for instance."""

    def __post_init__(self) -> None:
        for name, kind in _PUBLIC.items():
            _require_public(name, getattr(self, name), kind)
        for name, kind in _OPTIONAL.items():
            if getattr(self, name) is not None:
                _require_public(name, getattr(self, name), kind)
        if not isinstance(self.privacy, RunCard):
            raise InvalidInput("privacy", f"is a {type(self.privacy).__name__}, where a RunCard is wanted")
        require_shareable(self.privacy)
        for name, kind in (("event", Event), ("guarantee", Guarantee), ("meaning", Meaning)):
            _require_public(f"privacy.{name}", getattr(self.privacy, name), kind)
        if not isinstance(self.choices, (Public, Release)) or not isinstance(self.choices.value, tuple):
            raise InvalidInput("choices", "is neither Public nor a Release of a tuple", "wrap it in what it is")
        for name, kind in (("choices", Choice), ("bill", BillLine), ("versions", tuple)):
            if not all(isinstance(each, kind) for each in getattr(self, name).value):
                raise InvalidInput(name, f"holds something else than a {kind.__name__}")
        for name, kind in _TYPED.items():
            for each in _several(getattr(self, name)):
                if not isinstance(each, (Public, Release, Internal)):
                    problem = f"holds a {type(each).__name__}, which does not say where it comes from"
                    raise InvalidInput(name, problem, "wrap it in Public, Release or Internal")
                if not isinstance(each.value, kind):
                    problem = f"holds a {type(each.value).__name__}, where a {kind.__name__} is wanted"
                    raise InvalidInput(name, problem)
                if name in _INTERNAL and not isinstance(each, Internal):
                    problem = "holds something that is said to be for sharing, and it touches private rows"
                    raise InvalidInput(name, problem, "wrap it in Internal")
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


_PUBLIC: dict[str, type] = {
    "command": str,
    "made": str,
    "data": str,
    "model": str,
    "method": str,
    "bill": tuple,
    "randomness": Randomness,
    "versions": tuple,
}
_OPTIONAL: dict[str, type] = {"growth": Growth, "ledger": Charged, "teachers": int}
_TYPED: dict[str, type] = {
    "rows": int,
    "schema": str,
    "scores": Score,
    "history": Series,
    "compared": Trial,
    "stored": Trial,
    "evidence": Evidence,
    "consensus": Consensus,
    "findings": Finding,
    "attacks": Attacked,
    "canaries": Canaries,
    "pictures": Picture,
    "remembered": Remembered,
    "internal_remarks": str,
}
_INTERNAL = ("attacks", "pictures", "remembered", "internal_remarks")
"""What no one but the rows' owner may see, whatever it is wrapped in."""


def _several(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else () if value is None else (value,)


def _require_public(name: str, value: object, kind: type) -> None:
    if not isinstance(value, Public):
        problem = f"is a {type(value).__name__}, and only what is known without the data may stand there"
        raise InvalidInput(name, problem, "wrap it in Public if it is")
    if not isinstance(value.value, kind):
        raise InvalidInput(name, f"holds a {type(value.value).__name__}, where a {kind.__name__} is wanted")


def counts(events: Iterable[Event]) -> Counter[object]:
    """How often each mechanism ran, with each way of drawing its rows."""
    whole = canonical(Composed(tuple(events)))
    found: Counter[object] = Counter({(part.leaf, part.sampling): part.count for part in whole.parts})
    if whole.nonprivate is not None:
        found["non-private"] = 1
    return found


def is_tainted(card: TrainingCard) -> bool:
    """Whether any noise behind the card came from a seeded generator, which protects nobody."""
    seeded = card.randomness.value is not Randomness.SECURE
    return seeded or any(leaf.tainted for _, leaf in leaves(card) if isinstance(leaf, Release))


def shareable(card: TrainingCard) -> TrainingCard:
    """The same card without what is internal; what remains is public or paid for."""
    kept: dict[str, Any] = {}
    for field in fields(card):
        value = getattr(card, field.name)
        if isinstance(value, tuple):
            value = tuple(each for each in value if not isinstance(each, Internal))
        kept[field.name] = None if isinstance(value, Internal) else value
    shared = TrainingCard(**kept)
    require_shareable(shared)
    return shared


def left_out(card: TrainingCard) -> tuple[str, ...]:
    """The names of the fields of which something is internal."""
    return tuple(dict.fromkeys(name for name, leaf in leaves(card) if isinstance(leaf, Internal)))
