"""Reading what was charged: one entry by its id, the last few, or all of them piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import sqlalchemy as sa

from privet.core.errors import InvalidInput, LedgerError
from privet.core.event import Event
from privet.ledger import chain, grid, schema
from privet.ledger.book import Book, found_row, read_body, rows_between
from privet.ledger.records import Entry, Form, State
from privet.ledger.store import Store

__all__ = ["Place", "active_events", "entry_of", "event_in", "last_places", "place_of", "rows_until"]

_PAGE = 5000
_ONE = sa.select(schema.ENTRIES).where(schema.ENTRIES.c.id == sa.bindparam("wanted"))


@dataclass(frozen=True)
class Place:
    """Where an entry stands."""

    id: str
    budget: int
    seq: int
    """The row of its reservation."""
    last: int
    """The row of its last change."""
    state: State
    attempt: int
    """How often it was resumed."""

    def row(self) -> dict[str, Any]:
        """As it stands in the table."""
        return {
            "id": self.id,
            "budget": self.budget,
            "seq": self.seq,
            "last": self.last,
            "state": self.state.value,
            "attempt": self.attempt,
        }


def _place(row: Any) -> Place:
    try:
        return Place(row.id, row.budget, row.seq, row.last, State(row.state), row.attempt)
    except ValueError:
        raise LedgerError(f"the row of entry {row.id} is damaged; run: privet ledger verify") from None


def place_of(connection: sa.Connection, id_: str) -> Place:
    """An entry's place, by its id."""
    row = connection.execute(_ONE, {"wanted": str(id_)}).one_or_none()
    if row is None:
        raise LedgerError(f"there is no entry {id_!r}; see: privet ledger show NAME")
    return _place(row)


def last_places(connection: sa.Connection, budget: int, most: int, *, open_only: bool) -> list[Place]:
    """The entries that were reserved last, newest first."""
    table, log = schema.ENTRIES, schema.CHAIN
    if open_only:
        states = (State.RESERVED.value, State.DRAWING.value)
        query = sa.select(table).where(table.c.budget == budget, table.c.state.in_(states)).order_by(table.c.seq.desc())
    else:
        # From the end of the chain backwards, so that a long history is not sorted.
        latest = (
            sa.select(log.c.entry)
            .where(log.c.budget == budget, log.c.kind == State.RESERVED.value)
            .order_by(log.c.seq.desc())
            .limit(most)
        )
        query = sa.select(table).where(table.c.id.in_(latest)).order_by(table.c.seq.desc())
    return [_place(row) for row in connection.execute(query.limit(most))]


def entry_of(connection: sa.Connection, book: Book, place: Place) -> Entry:
    """An entry in full."""
    first = found_row(connection, book.id, place.seq)
    last = first if place.last == place.seq else found_row(connection, book.id, place.last)
    body = read_body(first)
    try:
        block, offset = body["block"], int(body["offset"])
        return Entry(
            id=place.id,
            budget=book.terms.name,
            state=place.state,
            event=event_in(body),
            purpose=body["purpose"],
            form=Form(body["form"]),
            epsilon=block[0] if block else None,
            delta=grid.value(offset, book.rules.delta_bits),
            version=body["version"],
            resumable=body["resume"] is not None,
            reserved=first.at,
            changed=last.at,
        )
    except (KeyError, TypeError, ValueError):
        raise LedgerError(f"entry {place.id} cannot be read; run: privet ledger verify") from None


def event_in(body: dict[str, Any]) -> Event:
    """The event of a reservation's row."""
    try:
        event = Event.from_json(json.dumps(body["event"]))
    except (KeyError, InvalidInput):
        raise LedgerError(
            "an entry's event cannot be read; a later Privet may have written it: upgrade privet"
        ) from None
    return cast("Event", event)


def rows_until(store: Store, budget: int, last: int) -> Iterator[chain.Row]:
    """The chain up to row `last`, in short transactions, so that others can write meanwhile."""
    for first in range(1, last + 1, _PAGE):
        with store.reading() as connection:
            rows = rows_between(connection, budget, first, min(first + _PAGE - 1, last))
        yield from rows


def active_events(store: Store, budget: int, last: int) -> list[tuple[Event, int]]:
    """The distinct events that count, each with how often, up to row `last`."""
    counts: dict[str, int] = {}
    waiting: dict[str, str] = {}
    for row in rows_until(store, budget, last):
        if row.kind == State.RESERVED.value:
            event = json.dumps(read_body(row).get("event"), sort_keys=True)
            waiting[row.entry] = event
            counts[event] = counts.get(event, 0) + 1
        elif row.kind == State.DRAWING.value:
            waiting.pop(row.entry, None)
        elif row.kind == State.ABORTED.value:
            counts[waiting.pop(row.entry)] -= 1
    return [(event_in({"event": json.loads(text)}), times) for text, times in counts.items() if times]
