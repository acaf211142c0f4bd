"""The charge of a run: its whole plan, before anything is drawn; and what it is resumed with."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from privet.core import Composed, Event, InvalidInput
from privet.data import NAMES, SPLIT_VERSION, Number, Table
from privet.ledger import opened
from privet.runs.directory import InterruptedRun, RunDirectory, RunIdentity, StoredCharge
from privet.runs.inputs import Data, TrainingInputs
from privet.runs.plan import RunPlan
from privet.runs.request import TrainRequest

if TYPE_CHECKING:
    from privet.ledger import Charge, Fingerprint, Ledger

__all__ = ["Payment", "identity_of", "public_rows_digest", "reserve_payment", "rows_digest"]

_WAIT = 60.0


@dataclass
class Payment:
    """What a run has reserved: what it learns first, and all the rest; none of them where there is no ledger.

    Two entries, so that a run that learns too little to continue pays for what it learned, and for nothing else.
    """

    each: tuple[Charge, ...] = ()
    entries: tuple[str, ...] = ()
    head: str | None = None
    directory: RunDirectory | None = field(default=None, repr=False)

    def draw(self, *, first: bool = False) -> None:
        """Record in the ledger, once, that noise may be drawn from now on.

        Args:
            first: Whether only the stage that precedes the complete plan draws; otherwise all stages do.

        Raises:
            InvalidInput: The charge is committed: everything was drawn, and it does not cover a second draw.
        """
        from privet.ledger import State

        some = self.each[:1] if first else self.each
        if self.head is not None or (some and some[-1].state is State.COMMITTED):
            problem = "has nothing left to draw: its charge is committed, and what was drawn for it is not in .privet"
            raise InvalidInput("resume", problem, "put the folder back as it was; or train anew, which costs anew")
        for charge in some:
            if charge.state is State.RESERVED:
                charge.draw()

    def commit(self) -> None:
        """Record in the ledger that everything was drawn and stored."""
        from privet.ledger import State

        for charge in self.each:
            if charge.state is not State.COMMITTED:
                self.head = charge.commit()
        if self.each and self.directory is not None and self.head is not None:
            self.directory.commit(self.head)

    def give_back(self) -> bool:
        """Refund what was not drawn. Return whether this includes the main part of the run."""
        from privet.ledger import State

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
    request: TrainRequest,
    directory: RunDirectory,
    command: str,
    plan: RunPlan,
    identity: RunIdentity,
    interrupted: InterruptedRun | None,
) -> Iterator[Payment]:
    """Reserve the cost of the whole plan, if there is a ledger; it is given back where nothing was drawn.

    Args:
        request: Of the run.
        directory: Where the charge and the plan are stored.
        command: What the ledger and the card say of the run.
        plan: What is charged.
        identity: What the run is started with now.
        interrupted: The run that is resumed under its own charge; None for a new one.

    Raises:
        InvalidInput: The run that is resumed is not the one that was charged.
        BudgetExceeded: The budget refuses the plan; nothing was charged.
    """
    with ExitStack() as stack:
        if interrupted is not None:
            interrupted.identity.require_same(identity)
            yield stack.enter_context(_resumed(request, directory, plan, interrupted))
            return
        payment = Payment(directory=directory)
        if request.budget is not None:
            ledger = stack.enter_context(opened(request.ledger, None, _WAIT))
            payment.each = _reserved(ledger, request.budget, request, plan, command)
            payment.entries = tuple(charge.id for charge in payment.each)
        stack.push(_Unwound(payment, directory))
        charges = tuple(StoredCharge(charge.id, charge.token or "") for charge in payment.each)
        directory.start(request, command, charges, identity, plan.to_json())
        yield payment


def _reserved(ledger: Ledger, budget: str, request: TrainRequest, plan: RunPlan, command: str) -> tuple[Charge, ...]:
    fingerprint = _fingerprint(request) if ledger.budget(budget).version else None
    charges: list[Charge] = []
    with ExitStack() as refused:
        for event in _events(plan):
            charge = ledger.reserve(
                budget, event, unit=plan.unit, purpose=command[:1000], fingerprint=fingerprint, resumable=True
            )
            refused.callback(charge.abort)
            charges.append(charge)
        refused.pop_all()
    return tuple(charges)


@contextmanager
def _resumed(
    request: TrainRequest, directory: RunDirectory, plan: RunPlan, interrupted: InterruptedRun
) -> Iterator[Payment]:
    """The charges of an interrupted run: those of this very plan, and of no other.

    Where all of them are committed, everything was drawn and stored, and the process ended before it was written down:
    it may be written now, and nothing may be drawn.
    """
    from privet.ledger import State

    entries = tuple(charge.entry for charge in interrupted.charges)
    if request.budget is None or interrupted.head is not None:
        yield Payment(entries=entries, head=interrupted.head)
        return
    with opened(request.ledger, None, _WAIT) as ledger:
        budget = ledger.budget(request.budget)
        charges = tuple(_resume_charge(ledger, charge) for charge in interrupted.charges)
        wrong = [charge for charge in charges if charge.budget != request.budget]
        if wrong or budget.unit != plan.unit or tuple(charge.event for charge in charges) != _events(plan):
            problem = "is not what was charged: the ledger's entries have another budget, unit or event"
            raise InvalidInput("resume", problem, "train anew, which costs anew")
        if all(charge.state is State.COMMITTED for charge in charges):
            directory.commit(budget.head)
            yield Payment(entries=entries, head=budget.head)
            return
        yield Payment(charges, entries, directory=directory)


def _resume_charge(ledger: Ledger, stored: StoredCharge) -> Charge:
    """A charge of an interrupted run; one that is committed already can be looked at, and no more."""
    from privet.ledger import Charge, State

    entry = ledger.entry(stored.entry)
    if entry.state is State.COMMITTED:
        return Charge(ledger, entry.id, entry.budget, entry.event, entry.state)
    return ledger.resume(stored.entry, stored.token)


def _events(plan: RunPlan) -> tuple[Event, ...]:
    """What is learned first, and all the rest."""
    events = [event for _, event in plan.lines]
    parts = [events[: plan.first], events[plan.first :]] if plan.first else [events]
    return tuple(part[0] if len(part) == 1 else Composed(tuple(part)) for part in parts if part)


@dataclass
class _Unwound:
    """What becomes of a run that has just started and ends with an error, or by Ctrl-C."""

    payment: Payment
    directory: RunDirectory

    def __enter__(self) -> _Unwound:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            return
        can_resume = issubclass(kind, KeyboardInterrupt) and self.directory.can_resume
        if not can_resume and not self.directory.trained and self.payment.give_back():
            self.directory.clear()


def identity_of(request: TrainRequest, inputs: TrainingInputs, plan: RunPlan, key: str | None = None) -> RunIdentity:
    """Return what a run is started with, so that a resumed run can be compared with it.

    Args:
        request: Of the run.
        inputs: Its data.
        plan: What is charged.
        key: Of the hash of the files, from an interrupted run; by default a new one.
    """
    facts = inputs.facts
    schema = None if facts.schema is None else facts.schema.without_sources().to_toml()
    public = (schema, facts.classes, facts.shape, facts.peak, facts.rows, str(plan.unit), plan.delta, request.to_json())
    text = repr(public if plan.scoring is None else (*public, SPLIT_VERSION))
    key = key or secrets.token_hex(16)
    files = hmac.new(bytes.fromhex(key), b"privet files", hashlib.sha256)
    own_model = request.model.rpartition(":")[0] or None
    data = request.data if request.data not in (*NAMES, "") else None
    unlabeled = [path for path in (request.public, *request.votes) if path is not None]
    for path in (data, request.test, own_model, *unlabeled):
        files.update(b"none" if path is None else _file_digest(Path(path)))
    if request.data in NAMES:
        files.update(rows_digest(inputs.train) + rows_digest(inputs.test))
    return RunIdentity(plan.event.to_json(), hashlib.sha256(text.encode()).hexdigest(), files.hexdigest(), key)


def _file_digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def rows_digest(data: Data | None) -> bytes:
    """Return the SHA-256 of rows as they were read; this also covers named data sets, whose files may change.

    Args:
        data: The rows, or None.
    """
    digest = hashlib.sha256()
    for part in () if data is None else (data.x, data.y, data.user_keys if isinstance(data, Table) else None):
        if part is not None:
            digest.update(repr((part.shape, str(part.dtype))).encode() + part.tobytes())
    return digest.digest()


def public_rows_digest(data: Data, classes: tuple[str, ...]) -> str:
    """Return the SHA-256 of public test rows and of the meaning of their labels: scores on equal ones are comparable.

    Args:
        data: The test rows.
        classes: Names of the classes; none for regression.
    """
    label = data.schema.label if isinstance(data, Table) else None
    target = (label.name, label.low, label.high) if isinstance(label, Number) else classes
    return hashlib.sha256(repr(target).encode() + rows_digest(data)).hexdigest()


def _fingerprint(request: TrainRequest) -> Fingerprint | None:
    """Of the data's file, for a budget that is bound to one."""
    from privet.ledger import fingerprint_of

    return None if not request.data or request.data in NAMES else fingerprint_of(Path(request.data))
