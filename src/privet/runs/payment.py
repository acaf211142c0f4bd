"""The charge of a run: the whole bill, before anything is drawn; and what it is resumed with."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from privet.core.errors import InvalidInput
from privet.core.event import Composed, Event
from privet.core.unit import Unit
from privet.data import NAMES, Number, Table
from privet.data.split import SPLIT_VERSION
from privet.ledger.opening import opened
from privet.runs.directory import InterruptedRun, RunDirectory, RunIdentity, RunRequest, StoredCharge
from privet.runs.inputs import Data, TrainingInputs
from privet.runs.plan import RunPlan
from privet.runs.request import TrainRequest

if TYPE_CHECKING:
    from privet.ledger import Ledger
    from privet.ledger.charge import Charge
    from privet.ledger.fingerprint import Fingerprint

__all__ = ["Payable", "Payment", "file_digest", "identity_of", "public_rows_digest", "reserve_payment", "rows_digest"]

_WAIT = 60.0
_PIECE = 1 << 20
A = TypeVar("A", bound=RunRequest)


class Payable(Protocol):
    """What a run costs."""

    @property
    def unit(self) -> Unit:
        """Whose data is protected."""

    @property
    def lines(self) -> tuple[tuple[str, Event], ...]:
        """What is paid for, in words, and its event."""

    @property
    def first(self) -> int:
        """How many of the lines are drawn before the plan of the others is made."""


@dataclass
class Payment:
    """What a run has reserved: what it learns first, and all the rest; none of them where there is no ledger.

    Two entries, so that a run that learns too little to go on with pays for what it learned, and for nothing else.
    """

    each: tuple[Charge, ...] = ()
    entries: tuple[str, ...] = ()
    head: str | None = None
    place: RunDirectory[Any] | None = field(default=None, repr=False)

    def draw(self, *, first: bool = False) -> None:
        """Tell the ledger, once, that noise may be drawn from now on: all of it, or what is learned first alone.

        Refused where the charge is committed: all that it paid for was drawn, and another draw would be a second one.
        """
        from privet.ledger.records import State

        some = self.each[:1] if first else self.each
        if self.head is not None or (some and some[-1].state is State.COMMITTED):
            problem = "has nothing left to draw: its charge is committed, and what was drawn for it is not in .privet"
            raise InvalidInput("resume", problem, "put the folder back as it was; or train anew, which costs anew")
        for charge in some:
            if charge.state is State.RESERVED:
                charge.draw()

    def commit(self) -> None:
        """Everything was drawn and kept."""
        from privet.ledger.records import State

        for charge in self.each:
            if charge.state is not State.COMMITTED:
                self.head = charge.commit()
        if self.each and self.place is not None and self.head is not None:
            self.place.commit(self.head)

    def give_back(self) -> bool:
        """Give back what was not drawn; whether the rest of the run was among it."""
        from privet.ledger.records import State

        if self.each and self.each[-1].state is not State.RESERVED:
            return False
        for charge in self.each:
            if charge.state is State.RESERVED:
                charge.abort()
            elif charge.state is State.DRAWING:
                charge.commit()
        return True


@contextmanager
def reserve_payment(
    asked: A,
    place: RunDirectory[A],
    command: str,
    bill: Payable,
    now: RunIdentity,
    begun: InterruptedRun[A] | None,
    *,
    stored_plan: str = "",
) -> Iterator[Payment]:
    """The charges of the whole bill, if there is a ledger; given back where the run ends before anything was drawn."""
    with ExitStack() as stack:
        if begun is not None:
            begun.stated.require_same(now)
            yield stack.enter_context(_resumed(asked, place, bill, begun))
            return
        charges = Payment(place=place)
        if asked.budget is not None:
            ledger = stack.enter_context(opened(asked.ledger, None, _WAIT))
            charges.each = _reserved(stack, ledger, asked.budget, asked, bill, command)
            charges.entries = tuple(each.id for each in charges.each)
        stack.push(_Unwound(charges, place))
        stored = tuple(StoredCharge(each.id, each.token or "") for each in charges.each)
        place.begin(asked, command, stored, now, stored_plan)
        yield charges


def _reserved(
    stack: ExitStack, ledger: Ledger, budget: str, asked: RunRequest, bill: Payable, command: str
) -> tuple[Charge, ...]:
    fingerprint = _fingerprint(asked) if ledger.budget(budget).version else None
    found: list[Charge] = []
    with ExitStack() as refused:
        for event in _events(bill):
            charge = ledger.reserve(
                budget, event, unit=bill.unit, purpose=command[:1000], fingerprint=fingerprint, resumable=True
            )
            refused.callback(charge.abort)
            found.append(charge)
        refused.pop_all()
    return tuple(found)


@contextmanager
def _resumed(asked: A, place: RunDirectory[A], bill: Payable, begun: InterruptedRun[A]) -> Iterator[Payment]:
    """The charges of a run that was stopped: those of this very bill, and of no other.

    Where all of them are committed, everything was drawn and kept, and the process ended before it was written down: it
    may be written now, and nothing may be drawn.
    """
    from privet.ledger.records import State

    entries = tuple(each.entry for each in begun.charges)
    if asked.budget is None or begun.head is not None:
        yield Payment(entries=entries, head=begun.head)
        return
    with opened(asked.ledger, None, _WAIT) as ledger:
        budget = ledger.budget(asked.budget)
        charges = tuple(_found(ledger, each) for each in begun.charges)
        wrong = [each for each in charges if each.budget != asked.budget]
        if wrong or budget.unit != bill.unit or tuple(each.event for each in charges) != _events(bill):
            problem = "is not what was charged: the ledger's entries have another budget, unit or event"
            raise InvalidInput("resume", problem, "train anew, which costs anew")
        if all(each.state is State.COMMITTED for each in charges):
            place.commit(budget.head)
            yield Payment(entries=entries, head=budget.head)
            return
        yield Payment(charges, entries, place=place)


def _found(ledger: Ledger, paid: StoredCharge) -> Charge:
    """A charge of a run that was stopped; one that is committed already can be looked at, and no more."""
    from privet.ledger.charge import Charge
    from privet.ledger.records import State

    entry = ledger.entry(paid.entry)
    if entry.state is State.COMMITTED:
        return Charge(ledger, entry.id, entry.budget, entry.event, entry.state)
    return ledger.resume(paid.entry, paid.token)


def _events(bill: Payable) -> tuple[Event, ...]:
    """What is learned first, and all the rest."""
    events = [event for _, event in bill.lines]
    parts = [events[: bill.first], events[bill.first :]] if bill.first else [events]
    return tuple(part[0] if len(part) == 1 else Composed(tuple(part)) for part in parts if part)


@dataclass
class _Unwound:
    """What becomes of a run that has just begun and ends with an error, or by Ctrl-C."""

    charges: Payment
    place: RunDirectory[Any]

    def __enter__(self) -> _Unwound:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            return
        stopped = issubclass(kind, KeyboardInterrupt) and self.place.begun
        if not stopped and not self.place.trained and self.charges.give_back():
            self.place.clear()


def identity_of(asked: TrainRequest, inputs: TrainingInputs, bill: RunPlan, key: str | None = None) -> RunIdentity:
    """Return what a run is started with."""
    facts = inputs.facts
    schema = None if facts.schema is None else facts.schema.without_sources().to_toml()
    public = (schema, facts.classes, facts.shape, facts.peak, facts.rows, str(bill.unit), bill.delta, asked.to_json())
    stated = repr(public if bill.scoring is None else (*public, SPLIT_VERSION))
    key = key or secrets.token_hex(16)
    found = hmac.new(bytes.fromhex(key), b"privet files", hashlib.sha256)
    own = asked.model.rpartition(":")[0] or None
    for path in (asked.data if asked.data not in NAMES else None, asked.test, own):
        found.update(b"none" if path is None else file_digest(Path(path)))
    if asked.data in NAMES:
        found.update(rows_digest(inputs.train) + rows_digest(inputs.test))
    return RunIdentity(bill.event.to_json(), hashlib.sha256(stated.encode()).hexdigest(), found.hexdigest(), key)


def file_digest(path: Path) -> bytes:
    """Of a file."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.digest()


def rows_digest(data: Data | None) -> bytes:
    """Of rows that were read: those of a named set, whose files may change, too."""
    found = hashlib.sha256()
    for part in () if data is None else (data.x, data.y, data.user_keys if isinstance(data, Table) else None):
        if part is not None:
            found.update(repr((part.shape, str(part.dtype))).encode() + part.tobytes())
    return found.digest()


def public_rows_digest(data: Data, classes: tuple[str, ...]) -> str:
    """Return the SHA-256 of public test rows as they were read, with what their labels mean: scores on equal ones can
    be compared."""
    label = data.schema.label if isinstance(data, Table) else None
    target = (label.name, label.low, label.high) if isinstance(label, Number) else classes
    return hashlib.sha256(repr(target).encode() + rows_digest(data)).hexdigest()


def _fingerprint(asked: RunRequest) -> Fingerprint | None:
    """Of the data's file, for a budget that is bound to one."""
    from privet.ledger import fingerprint_of

    return None if not asked.data or asked.data in NAMES else fingerprint_of(Path(asked.data))
