"""What attacks on tables leave for the internal page: numbers, and no row or name.

They were counted on real people and not paid for. A folder keeps them in `internal-tables.json`, for its owner alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from privet.core import checked
from privet.core.codec import Record
from privet.core.errors import InvalidInput
from privet.report.attack_records import Estimate

if TYPE_CHECKING:
    from privet.attacks.linkage import Linkage
    from privet.attacks.outcome import ConfidenceInterval
    from privet.attacks.reconstruction import Rebuilt

__all__ = ["Linked", "Recovered", "Tables"]


@dataclass(frozen=True)
class Linked(Record):
    """How many people of one table were found in another."""

    published: str
    """What the table without names is called."""
    known: str
    on: tuple[str, ...]
    rows: int
    people: int
    unique: int
    """Published rows that no other one is like."""
    smallest: int
    """The smallest group of rows that are alike."""
    single: int
    """People with one candidate."""
    absent: int
    claimed: int
    scored: bool
    """Whether rows were scored, or had to agree."""
    confidence: float
    present: int | None = None
    right: Estimate | None = None
    found: Estimate | None = None
    guess: float | None = None
    sensitive: str | None = None
    """The column of which something was learned."""
    learned: int | None = None
    unmatched: int | None = None
    """Of those, people with several candidates."""
    commonest: float | None = None
    learned_right: Estimate | None = None
    learned_tried: int | None = None
    """Of those of whom it is known, people who are in both tables."""
    inside: float | None = None
    """Where rows were scored, how probable it was beforehand that somebody is in the published table."""
    person: str | None = None
    """The column by which claims were checked."""
    unmet: tuple[int, ...] = ()
    """For each column, published cells that can be of nobody in the other table."""
    left_out: tuple[str, ...] = ()
    """Columns that were not scored, as they follow from others."""
    files: str = ""
    """A digest of where both files are, so that others of the same name are told apart."""

    def __post_init__(self) -> None:
        for name in ("published", "known"):
            checked.text(name, getattr(self, name))
        checked.texts("on", self.on)
        checked.confidence("confidence", self.confidence)
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int) and not isinstance(value, bool):
                checked.count(field.name, value, least=0)
        if max(self.single, self.absent, self.claimed) > self.people or max(self.unique, self.smallest) > self.rows:
            raise InvalidInput("people", f"are {self.people} and rows {self.rows}, and more of them are counted")

    @staticmethod
    def of(
        found: Linkage,
        published: str,
        known: str,
        *,
        scored: bool = False,
        confidence: float = 0.95,
        inside: float | None = None,
        person: str | None = None,
        files: str = "",
    ) -> Linked:
        """The numbers of a linkage."""
        learned = found.learned
        return Linked(
            published,
            known,
            found.on,
            found.published,
            found.people,
            found.unique,
            found.smallest,
            found.single,
            found.absent,
            found.claimed,
            scored,
            confidence,
            found.present,
            _estimate(found.right),
            _estimate(found.found),
            found.guess,
            None if learned is None else learned.column,
            None if learned is None else learned.people,
            None if learned is None else learned.unmatched,
            None if learned is None else learned.commonest,
            None if learned is None else _estimate(learned.right),
            None if learned is None else learned.tried,
            inside,
            person,
            found.unmet,
            found.left_out,
            files,
        )

    @property
    def asked(self) -> tuple[object, ...]:
        """What was looked for, and how: one that asks the same takes the place of an earlier one."""
        how = (self.scored, self.inside, self.person, self.sensitive, self.confidence)
        return (self.published, self.known, self.files, self.on, *how)


@dataclass(frozen=True)
class Recovered(Record):
    """How many secret bits were found from answers about them, at an ε."""

    what: str
    """Which answers, and how they were fitted: those of one text are one line of the figure."""
    people: int
    answers: int
    epsilon: float
    """Of all answers together; infinite where nothing was promised."""
    delta: float
    share: Estimate
    baseline: float
    limit: float
    confidence: float

    def __post_init__(self) -> None:
        checked.text("what", self.what)
        for name in ("people", "answers"):
            checked.count(name, getattr(self, name))
        if self.epsilon != float("inf"):
            checked.nonnegative("epsilon", self.epsilon)
        checked.share("delta", self.delta)
        for name in ("baseline", "limit"):
            if not 0 <= checked.finite(name, getattr(self, name)) <= 1:
                raise InvalidInput(name, f"is {getattr(self, name):g}, which is no share")
        checked.confidence("confidence", self.confidence)

    @staticmethod
    def of(found: Rebuilt, what: str, answers: int, epsilon: float, delta: float = 0.0) -> Recovered:
        """The numbers of a reconstruction; without a claim, everything may be found."""
        limit = 1.0 if found.limit is None else found.limit
        share = Estimate(found.share.value, found.share.lower, found.share.upper)
        return Recovered(
            what, len(found.right), answers, epsilon, delta, share, found.baseline, limit, found.confidence
        )

    @property
    def asked(self) -> tuple[object, ...]:
        """What was tried, and on how much: one that tries the same takes the place of an earlier one."""
        return (self.what, self.people, self.answers, self.epsilon, self.delta, self.confidence)

    @property
    def exceeds(self) -> bool:
        """Whether more was found than the guarantee leaves, and than the commoner value alone: see `Rebuilt`."""
        return self.share.lower > max(self.limit, self.baseline)


@dataclass(frozen=True)
class Tables(Record):
    """All attacks on tables that a folder keeps."""

    linked: tuple[Linked, ...] = ()
    recovered: tuple[Recovered, ...] = ()

    def plus(self, other: Tables) -> Tables:
        """Both; a linkage that asks the same of the same files, and a reconstruction of the same, take its place."""
        linked = {each.asked: each for each in (*self.linked, *other.linked)}
        recovered = {each.asked: each for each in (*self.recovered, *other.recovered)}
        return Tables(tuple(linked.values()), tuple(recovered.values()))


def _estimate(found: ConfidenceInterval | None) -> Estimate | None:
    return None if found is None else Estimate(found.value, found.lower, found.upper)
