"""`Ledger`: budgets in a database, which survive the process."""

from __future__ import annotations

import hmac
import os
import secrets
import shlex
from typing import Self

import sqlalchemy as sa

from privet.core import (
    Composed,
    Event,
    Guarantee,
    InvalidInput,
    LedgerError,
    NotProven,
    Repeated,
    Unit,
    checked,
    html_of,
)
from privet.ledger import advice, chain, entry_forms, pricing, schema, transitions
from privet.ledger.budget_state import BudgetState, Running, Terms, append, found_row, load, read_body, text_of
from privet.ledger.charge import Charge
from privet.ledger.filter import Sums, largest_block, rules_for
from privet.ledger.fingerprint import Fingerprint
from privet.ledger.history import active_events, entry_of, event_in, last_places, place_of, whole_id
from privet.ledger.orphans import next_id, orphans, require_new
from privet.ledger.records import NOT_A_GUARANTEE, Budget, Entry, State, Statement, Verification
from privet.ledger.store import Store
from privet.ledger.stored_values import number, shown
from privet.ledger.verify import ADVICE, verify_budget

__all__ = ["Ledger"]

_MOST_EVENTS = 1000
"""How many different events are priced as one plan, at most."""


class Ledger:
    """The budgets in one SQLite file or one PostgreSQL database.

    Methods also raise `LedgerError` if the ledger cannot be used: it is missing, locked for too long, or damaged.

    Guarantee: everything drawn under the charges of a budget is (ε, δ)-differentially private for the budget's unit,
    although every event may be chosen after seeing all earlier results (a privacy filter; `docs/explanation` has the
    proof). This needs every release from the data set to be charged here, and `Charge`'s rules to be kept.

    Args:
        url: A path, or a URL such as sqlite:///clinic.db or postgresql://user@host/database.
        key: Bytes, or the path of a file (by default the one that PRIVET_LEDGER_KEY_FILE names), to seal new budgets:
            keep it away from the database.
        timeout: How long to wait for other processes, in seconds.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        key: bytes | str | os.PathLike[str] | None = None,
        timeout: float = 60.0,
    ) -> None:
        self._store = Store(url, timeout)
        self._location = os.fspath(url)
        self._key = chain.read_key(key)

    def __repr__(self) -> str:
        return f"Ledger({self._store.where!r})"

    def _repr_html_(self) -> str:
        return html_of(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close this process's connections; the ledger may be used again."""
        self._store.close()

    def create(
        self,
        name: str,
        *,
        epsilon: float,
        delta: float,
        unit: Unit | None = None,
        orders: tuple[float, ...] | None = None,
        fingerprint: Fingerprint | None = None,
    ) -> Budget:
        """Create a budget for a data set and return it; creates the ledger's file or tables if there are none.

        Args:
            name: The name of the budget, which is that of its data set: at most 200 printable characters.
            epsilon: The ε of everything that will be released.
            delta: The δ of everything that will be released.
            unit: Whose data is protected; one example, added or removed, by default.
            orders: The Rényi orders of the filter (∞ is always among them); the default depends on ε and δ.
            fingerprint: The data to bind the budget to; without it, the budget is not bound to any data.

        Raises:
            InvalidInput: An argument is out of range or has the wrong type.
            LedgerError: There is a budget of this name already, or another budget is bound to this data.
        """
        _words("name", name, 200)
        rules = rules_for(epsilon, delta, orders)
        unit = Unit() if unit is None else unit
        if not isinstance(unit, Unit):
            raise InvalidInput("unit", f"is a {type(unit).__name__}, where a Unit is wanted")
        key = chain.key_name(self._key) if self._key is not None else None
        with self._store.writing(create=True) as connection:
            salt = chain.key_name(schema.salt_of(connection))
            terms = Terms(name, unit, rules, key, secrets.token_hex(16), salt)
            table = schema.BUDGETS
            if connection.execute(sa.select(table.c.id).where(table.c.name == name)).first():
                look = f"see: privet ledger show {shlex.quote(name)}"
                raise LedgerError(f"there is a budget for {name!r} already, and it cannot be made anew; {look}")
            require_new(connection, name, salt)
            book = BudgetState(next_id(connection), terms, Running(Sums.empty(rules)), chain.ChainHead(0, chain.START))
            running = book.running
            if fingerprint is not None:
                running = transitions.bound(connection, book, fingerprint)
            body = text_of({"terms": terms.text(), "fingerprint": running.fingerprint})
            return _budget(append(connection, book, self._key, "created", "", body, running))

    def bind(self, name: str, fingerprint: Fingerprint, *, note: str) -> Budget:
        """Bind a budget to a new version of its data set and return it. Its limits stay the same; nothing is refunded.

        A person decides this: the same people are in both versions, so that releases from both are charged to one
        budget.

        Args:
            name: The name of the budget.
            fingerprint: The fingerprint of the new version.
            note: Why this is a new version of the same data: at most 1,000 printable characters.

        Raises:
            InvalidInput: The note is empty or too long, or the fingerprint has the wrong type.
            LedgerError: There is no such budget, it is bound to this data already, or another budget is.
        """
        _words("note", note, 1000)
        with self._store.writing() as connection:
            book = load(connection, name, lock=True)
            running = transitions.bound(connection, book, fingerprint)
            if running.fingerprint == book.running.fingerprint:
                was = f"version {book.running.version} of {name!r} is bound to this data already"
                raise LedgerError(f"{was}; nothing was changed")
            body = text_of({"note": note, "fingerprint": running.fingerprint})
            return _budget(append(connection, book, self._key, "bound", "", body, running))

    def reserve(
        self,
        name: str,
        event: Event,
        *,
        unit: Unit | None = None,
        purpose: str = "",
        fingerprint: Fingerprint | None = None,
        as_block: bool | None = None,
        resumable: bool = False,
    ) -> Charge:
        """Admit an event and return its charge: call the charge's `draw` before drawing, or use `drawing`.

        Args:
            name: The name of the budget.
            event: What will be drawn.
            unit: The unit that the event was made for. An event does not state its unit, and one that bounds the effect
                of a *replaced* row says too little about a row that is added or removed: pass the unit, so that a
                budget of another unit refuses the event.
            purpose: What the event is for: at most 1,000 printable characters.
            fingerprint: The fingerprint of the data; required if the budget is bound to data, and refused if it is not.
            as_block: True fixes the entry as one (ε, δ) block, False as its Rényi curve, None as the first that fits.
            resumable: Whether the charge can be resumed after an interruption, for runs with checkpoints; see `resume`.

        Raises:
            BudgetExceeded: The event does not fit, or is not private; the message says what is left and what would fit.
            InvalidInput: An argument has the wrong type, or the unit is not that of the budget.
            LedgerError: There is no such budget, or the data is not the one that it is bound to.
            NotProven: No theorem covers the event for the budget's unit in the form that `as_block` asks for.
        """
        _words("purpose", purpose, 1000, empty=True)
        _private(event)
        token = secrets.token_hex(16) if resumable else None
        while True:
            with self._store.reading() as connection:
                book = load(connection, name)
                transitions.recognise(connection, book, fingerprint)
            if unit is not None and unit != book.terms.unit:
                problem = f"is {unit}, and the budget {name!r} protects {book.terms.unit}"
                raise InvalidInput("unit", problem, "make the event for the budget's unit, or use another budget")
            # Priced outside the lock, because pricing may take long; whether it fits is asked again under the lock.
            offer = entry_forms.choose(book.rules, book.terms.unit, book.sums, event, as_block)
            if offer is None:
                raise advice.refusal(book, event, purpose, as_block)
            with self._store.writing() as connection:
                book = load(connection, name, lock=True)
                transitions.recognise(connection, book, fingerprint)
                if book.sums.order_for(offer.amount, book.rules) is None:
                    continue  # another process was faster
                place = transitions.admit(connection, book, self._key, event, purpose, offer, token)
            return Charge(self, place.id, name, event, place.state, token=token)

    def admits(self, name: str, event: Event, *, as_block: bool | None = None) -> bool:
        """Return whether a budget would admit an event now; reserves nothing.

        Args:
            name: The name of the budget.
            event: What would be drawn.
            as_block: True asks for one (ε, δ) block, False for its Rényi curve, None for the first that fits.

        Raises:
            BudgetExceeded: The event is not private, so that no budget admits it.
            InvalidInput: The event has the wrong type.
            LedgerError: There is no such budget.
            NotProven: No theorem covers the event for the budget's unit in the form that `as_block` asks for.
        """
        _private(event)
        with self._store.reading() as connection:
            book = load(connection, name)
        return entry_forms.choose(book.rules, book.terms.unit, book.sums, event, as_block) is not None

    def resume(self, id_: str, token: str) -> Charge:
        """Resume an interrupted run under the charge that it was started with, and return the charge.

        The caller must ensure that the run continues from its checkpoint, and that nobody has seen what was drawn after
        it: the charge covers its event once. Whoever held the charge before can no longer commit it.

        Args:
            id_: The id of the entry, in full.
            token: The token of the charge, from the run's checkpoint.

        Raises:
            LedgerError: There is no such entry, it was not reserved as resumable, the token is not its own, or it has
                ended.
        """
        with transitions.changing(self._store, id_) as (connection, book, place):
            body = read_body(found_row(connection, book.id, place.seq))
            if body.get("resume") is None:
                raise LedgerError(
                    f"entry {id_} was not reserved as resumable; its charge stays, and a new one is needed"
                )
            if not hmac.compare_digest(transitions.token_hash(str(token)), str(body["resume"])):
                raise LedgerError(f"the token is not that of entry {id_}; it lies in the run's checkpoint")
            if place.state not in (State.RESERVED, State.DRAWING):
                raise LedgerError(f"entry {id_} is {place.state.value}, so there is nothing to resume")
            if place.state is State.DRAWING:
                _, place = transitions.move(connection, book, self._key, place, transitions.RESUMED)
            event = event_in(body)
        return Charge(self, id_, book.terms.name, event, place.state, attempt=place.attempt, token=token)

    def step(self, id_: str, to: State, attempt: int | None = None) -> str:
        """Move an entry to its next state, on disk, and return the head of the chain. `Charge` calls this.

        Args:
            id_: The id of the entry, in full.
            to: The next state.
            attempt: The attempt that the caller holds: refused if the entry was resumed since. None skips this check.

        Raises:
            LedgerError: There is no such entry, it cannot move to this state, or another process has resumed it.
        """
        with transitions.changing(self._store, id_) as (connection, book, place):
            transitions.require_from(place, to, attempt)
            book, _ = transitions.move(connection, book, self._key, place, to.value)
        return str(book.head)

    def release(self, id_: str) -> Entry:
        """Abort a reservation that nobody will use and return its entry; refused once anything may have been drawn.

        Args:
            id_: The id of the entry, or its first six characters or more if no other entry begins with them.

        Raises:
            LedgerError: There is no such entry, several begin with these characters, or its state is not reserved.
        """
        with self._store.reading() as connection:
            id_ = whole_id(connection, id_)
        self.step(id_, State.ABORTED)
        return self.entry(id_)

    def list(self) -> tuple[Budget, ...]:
        """Return all budgets, sorted by name."""
        table = schema.BUDGETS
        with self._store.reading() as connection:
            ids = connection.execute(sa.select(table.c.id).order_by(table.c.name)).scalars().all()
            return tuple(_budget(load(connection, number(id_, "the number of a budget"))) for id_ in ids)

    def budget(self, name: str) -> Budget:
        """Return one budget without its entries. It knows where its ledger is, so that a run can be charged to it.

        Args:
            name: The name of the budget.

        Raises:
            LedgerError: There is no such budget.
        """
        with self._store.reading() as connection:
            budget = _budget(load(connection, name))
        budget.__dict__.update(_location=self._location, _ledger=self)
        return budget

    def entry(self, id_: str) -> Entry:
        """Return one entry.

        Args:
            id_: The id of the entry, or its first six characters or more if no other entry begins with them.

        Raises:
            LedgerError: There is no such entry, or several begin with these characters.
        """
        with self._store.reading() as connection:
            place = place_of(connection, whole_id(connection, id_))
            return entry_of(connection, load(connection, place.budget), place)

    def show(self, name: str, *, last: int = 20, open_only: bool = False, planned: bool = True) -> Statement:
        """Return a budget with its last entries and the price of its history.

        The price is what everything would have cost as one fixed plan. It is for information: no charge depends on it.

        Args:
            name: The name of the budget.
            last: How many entries to return at most, newest first.
            open_only: Whether to return only entries that are reserved or drawing.
            planned: Whether to compute the price of the history as one plan.

        Raises:
            InvalidInput: `last` is negative or not a whole number.
            LedgerError: There is no such budget.
        """
        with self._store.reading() as connection:
            book = load(connection, name)
            places = last_places(connection, book.id, checked.count("last", last, 0), open_only=open_only)
            entries = tuple(entry_of(connection, book, place) for place in places)
        price, note = self._planned(book) if planned else (None, "the price as one plan was not asked for")
        return Statement(_budget(book), entries, price, note)

    def head(self, name: str) -> str:
        """Return the head of a budget's chain, for cards: with it, `verify` detects a truncated chain.

        Args:
            name: The name of the budget.

        Raises:
            LedgerError: There is no such budget.
        """
        with self._store.reading() as connection:
            return str(load(connection, name).head)

    def verify(self, name: str | None = None, *, head: str | None = None) -> Verification:
        """Recompute the chain and the sums of one budget, or of all, and return every difference from what is stored.

        With the ledger's key, it also detects a rewritten chain. A budget without seals of that key is not proven by
        it, unless a head of it is given.

        Args:
            name: The name of the budget; None for all budgets.
            head: The head on a card of this budget, to detect a truncated chain; requires `name`.

        Raises:
            InvalidInput: The head is malformed, or is given without a budget.
            LedgerError: There is no such budget, or the ledger is too damaged to be verified.
        """
        if head is not None and name is None:
            raise InvalidInput("head", "belongs to one budget", "name the budget too")
        wanted = chain.ChainHead.parse(head) if head is not None else None
        try:
            return self._verified(name, wanted)
        except LedgerError as error:
            # What is too damaged to be looked at; to run this again is no advice.
            said = str(error)
            if not said.endswith(ADVICE):
                raise
            raise LedgerError(f"{said.removesuffix(ADVICE)}; restore a backup") from error

    def _verified(self, name: str | None, wanted: chain.ChainHead | None) -> Verification:
        table = schema.BUDGETS
        with self._store.reading() as connection:
            query = sa.select(table.c.id, table.c.name).order_by(table.c.name)
            rows = connection.execute(query).all()
            salt = chain.key_name(schema.salt_of(connection))
            lost = [orphan for orphan in orphans(connection) if name is None or orphan.name == name]
        found = [(number(id_, "the number of a budget"), shown(this)) for id_, this in rows if name in (None, this)]
        if name is not None and not found and not lost:
            raise LedgerError(f"there is no budget for {name!r}; see: privet ledger list")
        checks = [verify_budget(self._store, id_, this, salt, self._key, wanted) for id_, this in found]
        damage = self._store.damage()
        problems = (*map(str, lost), *(problem for check in checks for problem in check.problems))
        if damage is not None:
            problems = (f"the file is damaged: {damage}", *problems)
        sealed = bool(checks) and all(check.sealed for check in checks)
        gone = tuple(dict.fromkeys(orphan.name for orphan in lost if orphan.name is not None))
        broken = (*gone, *(this for check in checks for this in check.broken if this not in gone))
        unproven = tuple(this for check in checks for this in check.unproven)
        names = tuple(this for _, this in found)
        return Verification(names, sum(check.rows for check in checks), problems, sealed, broken, unproven)

    def _planned(self, book: BudgetState) -> tuple[Guarantee | None, str]:
        """What everything that counts would have cost as one plan, and what that means."""
        counts = active_events(self._store, book.id, book.head.length)
        if len(counts) > _MOST_EVENTS:
            return None, f"no price as one plan: the history has {len(counts):,} different events"
        plan = Composed(tuple(Repeated(event, times) for event, times in counts))
        try:
            return pricing.planned(plan, book.terms.unit, book.rules.delta), NOT_A_GUARANTEE
        except NotProven as error:
            return None, f"no price as one plan: {error}"


def _private(event: Event) -> None:
    if not isinstance(event, Event):
        raise InvalidInput("event", f"is a {type(event).__name__}, which is not an event")
    pricing.refuse_nonprivate(event)


def _budget(book: BudgetState) -> Budget:
    rules, running = book.rules, book.running
    epsilon_left, delta_left = largest_block(rules, running.sums)
    used = tuple(total / most for total, most in zip(running.sums.orders, rules.limits, strict=True))
    return Budget(
        name=book.terms.name,
        unit=book.terms.unit,
        epsilon=rules.epsilon,
        delta=rules.delta,
        orders=rules.orders,
        used=used,
        basic=running.sums.basic,
        epsilon_left=epsilon_left,
        delta_left=delta_left,
        entries=running.entries,
        active=running.sums.active,
        version=running.version,
        keyed=book.terms.key is not None,
        head=str(book.head),
    )


def _words(argument: str, text: str, most: int, *, empty: bool = False) -> None:
    """Text that every database can hold and every terminal can show."""
    if not (empty and text == ""):
        checked.text(argument, text)
    if len(text) > most or not text.isprintable():
        raise InvalidInput(argument, f"is longer than {most:,} characters or has unprintable ones", "use plain words")
