"""Records of attacks on tables for the internal page: numbers, and no row or name.

They were counted on real people and not released under a budget. A folder holds them in `internal-tables.json`, for its
owner alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from privet.core import InvalidInput, Record, checked
from privet.report.attack_records import Estimate

if TYPE_CHECKING:
    from privet.attacks import BitReconstruction, ConfidenceInterval, Linkage

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
        """Return the numbers of a linkage.

        Args:
            found: The linkage.
            published: The name of the table without names.
            known: The name of the table with names.
            scored: Whether rows were scored, or had to agree.
            confidence: The confidence of the intervals.
            inside: The prior probability that a person is in the published table, if rows were scored.
            person: The column by which claims were checked.
            files: A digest of where both files are.
        """
        counts = ("on", "people", "unique", "smallest", "single", "absent", "claimed", "present", "guess")
        record = Linked(
            **{name: getattr(found, name) for name in (*counts, "unmet", "left_out")},
            published=published,
            known=known,
            rows=found.published,
            scored=scored,
            confidence=confidence,
            right=_estimate(found.right),
            found=_estimate(found.found),
            inside=inside,
            person=person,
            files=files,
        )
        learned = found.learned
        if learned is None:
            return record
        return replace(
            record,
            sensitive=learned.column,
            learned=learned.people,
            unmatched=learned.unmatched,
            commonest=learned.commonest,
            learned_right=_estimate(learned.right),
            learned_tried=learned.tried,
        )

    @property
    def settings(self) -> tuple[object, ...]:
        """What was looked for, and how: a linkage with the same settings replaces an earlier one."""
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
    def of(found: BitReconstruction, what: str, answers: int, epsilon: float, delta: float = 0.0) -> Recovered:
        """Return the record of a reconstruction; without a limit from a guarantee, the limit is 1.

        Args:
            found: The reconstruction.
            what: Which answers, and how they were fitted.
            answers: The number of answers.
            epsilon: The ε of all answers together; infinite if there is no guarantee.
            delta: The δ of all answers together.

        Raises:
            InvalidInput: A number is out of range, or `what` is empty.
        """
        limit = 1.0 if found.limit is None else found.limit
        share, people = Estimate(found.share.value, found.share.lower, found.share.upper), len(found.right)
        return Recovered(what, people, answers, epsilon, delta, share, found.baseline, limit, found.confidence)

    @property
    def settings(self) -> tuple[object, ...]:
        """What was tried, and on how much: a reconstruction with the same settings replaces an earlier one."""
        return (self.what, self.people, self.answers, self.epsilon, self.delta, self.confidence)

    @property
    def exceeds(self) -> bool:
        """Whether more was found than the guarantee and the more frequent value allow (see `BitReconstruction`)."""
        return self.share.lower > max(self.limit, self.baseline)


@dataclass(frozen=True)
class Tables(Record):
    """All attacks on tables in a folder."""

    linked: tuple[Linked, ...] = ()
    recovered: tuple[Recovered, ...] = ()

    def plus(self, other: Tables) -> Tables:
        """Return the attacks of both records; one with the same settings replaces an earlier one.

        Args:
            other: The later attacks.
        """
        linked = {each.settings: each for each in (*self.linked, *other.linked)}
        recovered = {each.settings: each for each in (*self.recovered, *other.recovered)}
        return Tables(tuple(linked.values()), tuple(recovered.values()))


def _estimate(found: ConfidenceInterval | None) -> Estimate | None:
    return None if found is None else Estimate(found.value, found.lower, found.upper)
