"""Reading what was charged: one entry by its id, the last few, or all of them piece by piece."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, cast

import sqlalchemy as sa

from privet.core import Event, LedgerError
from privet.ledger import chain, grid, schema
from privet.ledger.budget_state import PAGE, BudgetState, fields_of, found_row, read_body, rows_between
from privet.ledger.records import Entry, Form, State
from privet.ledger.store import Store
from privet.ledger.stored_values import number, shown, text

__all__ = [
    "LAST",
    "EntryPlace",
    "active_events",
    "entry_of",
    "event_in",
    "last_places",
    "page_after",
    "place_of",
    "rows_until",
    "whole_id",
]

LAST = (1 << 63) - 1
"""No row has a greater number."""
_ONE = sa.select(schema.ENTRIES).where(schema.ENTRIES.c.id == sa.bindparam("wanted"))
_SHORT = re.compile("[0-9a-f]{6,15}")
"""The beginning of an id that is long enough to be one entry's alone, and not all of it."""


@dataclass(frozen=True)
class EntryPlace:
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
        """Return the row of the table."""
        return asdict(self) | {"state": self.state.value}


def _place(row: Any) -> EntryPlace:
    what = f"the row of entry {shown(row.id)}"
    budget, seq, last, attempt = (number(value, what) for value in (row.budget, row.seq, row.last, row.attempt))
    try:
        return EntryPlace(text(row.id, what), budget, seq, last, State(row.state), attempt)
    except ValueError:
        raise LedgerError(f"{what} is damaged; run: privet ledger verify") from None


def place_of(connection: sa.Connection, id_: str) -> EntryPlace:
    """Return an entry's place, by its id."""
    # Every id is plain ASCII, and what else was typed may be no text that a database could look for.
    row = connection.execute(_ONE, {"wanted": str(id_)}).one_or_none() if str(id_).isascii() else None
    if row is None:
        raise LedgerError(f"there is no entry {id_!r}; see: privet ledger show NAME")
    return _place(row)


def whole_id(connection: sa.Connection, beginning: str) -> str:
    """Return the id of the one entry whose id begins with these characters; a whole id is its own beginning."""
    if not _SHORT.fullmatch(beginning):
        return beginning  # as it is: it will be found, or said not to be there
    ids = schema.ENTRIES.c.id
    query = sa.select(ids).where(sa.func.substr(ids, 1, len(beginning)) == beginning).limit(2)
    found = connection.execute(query).scalars().all()
    if len(found) > 1:
        raise LedgerError(f"several entries begin with {beginning!r}; give more of the id, or all of it")
    return text(found[0], "the id of an entry") if found else beginning


def last_places(connection: sa.Connection, budget: int, most: int, *, open_only: bool) -> list[EntryPlace]:
    """Return the entries that were reserved last, newest first."""
    table, log = schema.ENTRIES, schema.CHAIN
    if open_only:
        states = (State.RESERVED.value, State.DRAWING.value)
        query = sa.select(table).where(table.c.budget == budget, table.c.state.in_(states)).order_by(table.c.seq.desc())
    else:
        # From the end of the chain backward, so that a long history is not sorted.
        latest = (
            sa.select(log.c.entry)
            .where(log.c.budget == budget, log.c.kind == State.RESERVED.value)
            .order_by(log.c.seq.desc())
            .limit(most)
        )
        query = sa.select(table).where(table.c.id.in_(latest)).order_by(table.c.seq.desc())
    return [_place(row) for row in connection.execute(query.limit(most))]


def entry_of(connection: sa.Connection, book: BudgetState, place: EntryPlace) -> Entry:
    """Return an entry in full."""
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
    except (KeyError, TypeError, ValueError, OverflowError):
        raise LedgerError(f"entry {place.id} cannot be read; run: privet ledger verify") from None


def event_in(body: dict[str, Any]) -> Event:
    """Return the event of a reservation's row."""
    try:
        event = Event.from_json(json.dumps(body["event"]))
    except (KeyError, ValueError, RecursionError):
        raise LedgerError(
            "an entry's event cannot be read; a later Privet may have written it: upgrade privet"
        ) from None
    return cast("Event", event)


def rows_until(store: Store, budget: int, last: int) -> Iterator[chain.ChainRow]:
    """Yield the chain up to row `last`, in short transactions, so that others can write meanwhile."""
    after = 0
    while after < last:
        with store.reading() as connection:
            rows = page_after(connection, budget, after, last)
        yield from rows
        if len(rows) < PAGE:
            return
        after = rows[-1].seq


def page_after(connection: sa.Connection, budget: int, after: int, last: int) -> list[chain.ChainRow]:
    """Return the next page of a chain's rows after one and up to another; fewer than a page are all that there are."""
    rows = rows_between(connection, budget, after + 1, last)
    if [row.seq for row in rows] != sorted({row.seq for row in rows if row.seq > after}):
        # In a damaged file a page may follow itself.
        raise LedgerError("the rows of a chain are out of order, which is damage; restore a backup")
    return rows


def active_events(store: Store, budget: int, last: int) -> list[tuple[Event, int]]:
    """Return the distinct events that count, each with how often, up to row `last`."""
    counts: dict[str, int] = {}
    waiting: dict[str, str] = {}
    previous = chain.START
    for row in rows_until(store, budget, last):
        if row.hash != chain.row_hash(previous, *fields_of(row)):
            raise LedgerError(f"row {row.seq} of the chain was changed; run: privet ledger verify")
        previous = row.hash
        if row.kind == State.RESERVED.value:
            event = json.dumps(read_body(row).get("event"), sort_keys=True)
            waiting[row.entry] = event
            counts[event] = counts.get(event, 0) + 1
        elif row.kind == State.DRAWING.value:
            waiting.pop(row.entry, None)
        elif row.kind == State.ABORTED.value and row.entry in waiting:
            counts[waiting.pop(row.entry)] -= 1
    return [(event_in({"event": json.loads(found)}), times) for found, times in counts.items() if times]
