"""What happens to entries inside one transaction: admitted, moved to the next state, bound to data."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import sqlalchemy as sa

from privet.core import Event, InvalidInput, LedgerError
from privet.ledger import chain, schema
from privet.ledger.budget_state import BudgetState, Running, amount_in, append, found_row, load, read_body, text_of
from privet.ledger.entry_forms import PricedForm
from privet.ledger.fingerprint import Fingerprint
from privet.ledger.history import EntryPlace, place_of
from privet.ledger.records import State
from privet.ledger.store import Store

__all__ = ["PREDECESSORS", "RESUMED", "admit", "bound", "changing", "move", "recognise", "require_from", "token_hash"]

RESUMED = "resumed"
"""The kind of row that says that an interrupted run resumes; the state stays drawing."""
PREDECESSORS = {
    State.DRAWING: State.RESERVED,
    State.COMMITTED: State.DRAWING,
    State.ABORTED: State.RESERVED,
}
"""The only state from which each state is reached."""
_WHY = {
    (State.DRAWING, State.DRAWING): "is drawing already, and its noise may exist; reserve anew, or resume the run",
    (State.DRAWING, State.COMMITTED): "is committed; reserve a new charge for a new release",
    (State.DRAWING, State.ABORTED): "was aborted, so nothing may be drawn; reserve anew",
    (State.COMMITTED, State.RESERVED): "has not been drawn; call draw() before the noise",
    (State.ABORTED, State.DRAWING): "is drawing, so its noise may have been seen: the whole charge stays",
    (State.ABORTED, State.COMMITTED): "is committed: the whole charge stays",
}

_NEWEST = sa.select(sa.func.max(schema.CHAIN.c.seq)).where(
    schema.CHAIN.c.budget == sa.bindparam("budget"), schema.CHAIN.c.entry == sa.bindparam("entry")
)
_ENTER = sa.insert(schema.ENTRIES)
_PLACE = (
    sa.update(schema.ENTRIES)
    .where(schema.ENTRIES.c.id == sa.bindparam("wanted"))
    .values(state=sa.bindparam("state"), last=sa.bindparam("last"), attempt=sa.bindparam("attempt"))
)


def token_hash(token: str) -> str:
    """Return the hash of a token, which is all that is stored of it."""
    return hashlib.sha256(token.encode()).hexdigest()


def admit(
    connection: sa.Connection,
    book: BudgetState,
    key: bytes | None,
    event: Event,
    purpose: str,
    offer: PricedForm,
    token: str | None,
) -> EntryPlace:
    """Write an entry that fits, and count it."""
    id_, running = secrets.token_hex(8), book.running
    body = {
        "event": json.loads(event.to_json()),
        "purpose": purpose,
        "form": offer.form.value,
        "block": offer.block,
        "orders": offer.amount.orders,
        "offset": offer.amount.offset,
        "version": running.version,
        "resume": token_hash(token) if token is not None else None,
    }
    after = replace(running, sums=running.sums.after(offer.amount), entries=running.entries + 1)
    book = append(connection, book, key, State.RESERVED.value, id_, text_of(body), after)
    place = EntryPlace(id_, book.id, book.head.length, book.head.length, State.RESERVED, 0)
    connection.execute(_ENTER, place.row())
    return place


@contextmanager
def changing(store: Store, id_: str) -> Iterator[tuple[sa.Connection, BudgetState, EntryPlace]]:
    """Open a writing transaction, and yield it with an entry and its budget, locked."""
    with store.writing() as connection:
        book = load(connection, place_of(connection, id_).budget, lock=True)
        place = place_of(connection, id_)
        last = found_row(connection, book.id, place.last)
        kinds = {place.state.value} | ({RESUMED} if place.state is State.DRAWING else set())
        newest = connection.execute(_NEWEST, {"budget": book.id, "entry": id_}).scalar_one()
        if last.entry != id_ or last.kind not in kinds or newest != place.last:
            raise LedgerError(f"the row of entry {id_} was changed outside the ledger; run: privet ledger verify")
        yield connection, book, place


def require_from(place: EntryPlace, to: State, attempt: int | None) -> None:
    """Raise unless the entry may move from its state to this one, by this attempt."""
    if place.state is not PREDECESSORS.get(to):
        raise LedgerError(f"entry {place.id} {_WHY.get((to, place.state), f'is {place.state.value} already')}")
    if attempt is not None and attempt != place.attempt:
        raise LedgerError(f"entry {place.id} was resumed by another process, which alone may finish it")


def move(
    connection: sa.Connection, book: BudgetState, key: bytes | None, place: EntryPlace, kind: str
) -> tuple[BudgetState, EntryPlace]:
    """Append a change of an entry; an abort takes its charge out of the sums."""
    running, body = book.running, "{}"
    if kind == RESUMED:
        place = replace(place, attempt=place.attempt + 1)
        body = text_of({"attempt": place.attempt})
    else:
        place = replace(place, state=State(kind))
    if place.state is State.ABORTED:
        amount = amount_in(read_body(found_row(connection, book.id, place.seq)))
        running = replace(running, sums=running.sums.without(amount, book.rules))
    book = append(connection, book, key, kind, place.id, body, running)
    place = replace(place, last=book.head.length)
    new = {"wanted": place.id, "state": place.state.value, "last": place.last, "attempt": place.attempt}
    connection.execute(_PLACE, new)
    return book, place


def bound(connection: sa.Connection, book: BudgetState, fingerprint: Fingerprint) -> Running:
    """Return the running state with other data bound to it; data of another budget is refused."""
    tag, table = _tag(connection, book, fingerprint), schema.FINGERPRINTS
    owner = connection.execute(sa.select(table.c.budget).where(table.c.tag == tag)).scalar_one_or_none()
    if owner is not None and owner != book.id:
        other = load(connection, owner).terms.name
        raise LedgerError(f"this data belongs to budget {other!r} already; charge it there, for the bills add up")
    if owner is None:
        connection.execute(sa.insert(table), [{"tag": tag, "budget": book.id}])
    return replace(book.running, version=book.running.version + 1, fingerprint=tag)


def recognise(connection: sa.Connection, book: BudgetState, fingerprint: Fingerprint | None) -> None:
    """Raise unless the data is what the budget is bound to."""
    name, have = book.terms.name, book.running.fingerprint
    if fingerprint is None:
        if have is not None:
            raise LedgerError(f"budget {name!r} is bound to data: pass its fingerprint, so that it is recognised")
        return
    if have is None or not hmac.compare_digest(have, _tag(connection, book, fingerprint)):
        what = "has no fingerprint yet" if have is None else "is bound to other data"
        advice = "if this is a new version of the same data set, a person binds it with ledger.bind"
        raise LedgerError(f"budget {name!r} {what}; {advice}, and nothing is refunded")


def _tag(connection: sa.Connection, book: BudgetState, fingerprint: Fingerprint) -> str:
    """The fingerprint under the ledger's own salt alone: with another seal key, the same data is still the same."""
    if not isinstance(fingerprint, Fingerprint):
        raise InvalidInput("fingerprint", f"is a {type(fingerprint).__name__}", "make it with fingerprint_of(data)")
    salt = schema.salt_of(connection)
    if book.terms.salt not in (None, chain.key_name(salt)):
        raise LedgerError("the ledger's salt was changed, so that no data is recognised; restore a backup")
    return fingerprint.keyed(salt)
