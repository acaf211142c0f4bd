"""One budget inside one transaction: read it, check that its row belongs to the end of its chain, and add to the chain.

None of this reads the history: a budget's row and the last two rows of its chain are found by their keys.
"""

from __future__ import annotations

import hmac
import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from typing import Any

import sqlalchemy as sa

from privet.core import LedgerError, PrivetError, Unit, checked
from privet.ledger import chain, schema
from privet.ledger.filter import Amount, Rules, Sums
from privet.ledger.stored_values import number, row_of

__all__ = [
    "PAGE",
    "BudgetState",
    "Running",
    "Terms",
    "amount_in",
    "append",
    "fields_of",
    "found_row",
    "load",
    "read_body",
    "rows_between",
    "text_of",
]

_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, PrivetError)
"""What reading a text raises that is not what was written."""
PAGE = 5000
"""How many rows of a chain are read at once, at most."""
_MOST_BITS = 1200
"""No grid is finer: the smallest positive number has 1,138 bits."""


def text_of(data: object) -> str:
    """Return JSON with sorted keys and no spaces: equal data, equal text, equal hash."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _text_or_none(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError("neither a text nor nothing")
    return value


@dataclass(frozen=True)
class Terms:
    """What a budget is: fixed by its first row."""

    name: str
    unit: Unit
    rules: Rules
    key: str | None
    """The name of the key that seals the chain."""
    nonce: str
    salt: str | None = None
    """The name of the ledger's salt, by which another one is noticed; None in budgets of before it was kept."""

    def text(self) -> str:
        """Return the JSON that is stored in the database and hashed."""
        rules = self.rules
        named = {} if self.salt is None else {"salt": self.salt}
        return text_of(
            named
            | {
                "name": self.name,
                "unit": self.unit.to_json(),
                "epsilon": rules.epsilon,
                "delta": rules.delta,
                "finite_orders": rules.orders[:-1],
                "shares": rules.shares,
                "limits": rules.limits,
                "epsilon_bits": rules.epsilon_bits,
                "delta_bits": rules.delta_bits,
                "key": self.key,
                "nonce": self.nonce,
            }
        )

    @staticmethod
    @lru_cache(maxsize=256)
    def parse(text: str) -> Terms:
        """Parse what `text` returned; raise an error if the text is damaged."""
        try:
            data = json.loads(text)
            orders = (*(float(order) for order in data["finite_orders"]), float("inf"))
            shares, limits = tuple(map(int, data["shares"])), tuple(map(int, data["limits"]))
            bits = int(data["epsilon_bits"]), int(data["delta_bits"])
            epsilon, delta = checked.positive("epsilon", data["epsilon"]), checked.share("delta", data["delta"])
            rules = Rules(epsilon, delta, orders, shares, limits, *bits)
            name, unit, nonce = checked.text("name", data["name"]), Unit.from_json(data["unit"]), data["nonce"]
            key, salt = _text_or_none(data["key"]), _text_or_none(data.get("salt"))
            terms = Terms(name, unit, rules, key, checked.text("nonce", nonce), salt)
        except _UNREADABLE:
            raise LedgerError("a budget's terms cannot be read; run: privet ledger verify") from None
        sound = len(orders) == len(shares) == len(limits) and min(limits) > 0 and min(shares) >= 0
        rising = all(low < high for low, high in pairwise((1.0, *orders)))
        if not sound or not rising or not all(0 <= each <= _MOST_BITS for each in bits) or sum(shares) > rules.whole:
            raise LedgerError("a budget's terms contradict themselves; run: privet ledger verify")
        return terms


@dataclass(frozen=True)
class Running:
    """What changes with every entry."""

    sums: Sums
    entries: int = 0
    version: int = 0
    fingerprint: str | None = None

    def text(self) -> str:
        """Return the JSON that is stored in the database and hashed."""
        sums = self.sums
        return text_of(
            {
                "sums": sums.orders,
                "offset": sums.offset,
                "active": sums.active,
                "basic": sums.basic,
                "entries": self.entries,
                "version": self.version,
                "fingerprint": self.fingerprint,
            }
        )

    @staticmethod
    def parse(text: str) -> Running:
        """Parse what `text` returned; raise an error if the text is damaged."""
        try:
            data = json.loads(text)
            orders = tuple(map(int, data["sums"]))
            sums = Sums(orders, int(data["offset"]), int(data["active"]), bool(data["basic"]))
            return Running(sums, int(data["entries"]), int(data["version"]), _text_or_none(data["fingerprint"]))
        except _UNREADABLE:
            raise LedgerError("a budget's state cannot be read; run: privet ledger verify") from None


@dataclass(frozen=True)
class BudgetState:
    """A budget as one transaction sees it."""

    id: int
    terms: Terms
    running: Running
    head: chain.ChainHead
    seal: bytes | None = None
    """The seal of the last row."""

    @property
    def rules(self) -> Rules:
        """The filter's fixed part."""
        return self.terms.rules

    @property
    def sums(self) -> Sums:
        """The filter's running part."""
        return self.running.sums


# Statements that every charge needs are built once.
_BY_NAME = sa.select(schema.BUDGETS).where(schema.BUDGETS.c.name == sa.bindparam("wanted"))
_BY_ID = sa.select(schema.BUDGETS).where(schema.BUDGETS.c.id == sa.bindparam("wanted"))
_LOCKED = {_BY_NAME: _BY_NAME.with_for_update(), _BY_ID: _BY_ID.with_for_update()}
_ROWS = (
    sa.select(schema.CHAIN)
    .where(
        schema.CHAIN.c.budget == sa.bindparam("wanted"),
        schema.CHAIN.c.seq >= sa.bindparam("first"),
        schema.CHAIN.c.seq <= sa.bindparam("last"),
    )
    .order_by(schema.CHAIN.c.seq)
    .limit(PAGE)
)
_ADD = sa.insert(schema.CHAIN)
_CARRY = (
    sa.update(schema.BUDGETS)
    .where(schema.BUDGETS.c.id == sa.bindparam("wanted"), schema.BUDGETS.c.length == sa.bindparam("before"))
    .values(state=sa.bindparam("state"), length=sa.bindparam("length"), head=sa.bindparam("head"))
)


def load(connection: sa.Connection, budget: str | int, *, lock: bool = False) -> BudgetState:
    """Return a budget by name or number; with `lock`, no other transaction can change it before this one ends."""
    query, wanted = (_BY_NAME, budget) if isinstance(budget, str) else (_BY_ID, budget)
    known = not isinstance(wanted, str) or wanted.isprintable()  # no other name can be created
    found = connection.execute(_LOCKED[query] if lock else query, {"wanted": wanted}).one_or_none() if known else None
    if found is None:
        raise LedgerError(f"there is no budget for {budget!r}; create it first, or see: privet ledger list")
    id_, length = number(found.id, "the number of a budget"), number(found.length, "the length of a budget's chain")
    last = found_row(connection, id_, length)
    said = isinstance(found.terms, str) and isinstance(found.state, str)
    # Compared before they are read: of a text that was changed nothing is believed.
    if not said or last.hash != found.head or last.state != chain.state_hash(found.terms, found.state):
        raise _changed(found.name)
    terms, running = Terms.parse(found.terms), Running.parse(found.state)
    if terms.name != found.name or len(running.sums.orders) != len(terms.rules.orders):
        raise _changed(found.name)
    return BudgetState(id_, terms, running, chain.ChainHead(length, last.hash), last.seal)


def _changed(name: object) -> LedgerError:
    return LedgerError(f"the row of budget {name!r} was changed outside the ledger; run: privet ledger verify")


def found_row(connection: sa.Connection, budget: int, seq: int) -> chain.ChainRow:
    """Return one row of a chain, after checking its hash against itself and the row before it."""
    rows = {row.seq: row for row in rows_between(connection, budget, seq - 1, seq)}
    row, before = rows.get(seq), rows.get(seq - 1)
    previous = chain.START if seq == 1 else before.hash if before else None
    if row is None or previous is None or row.hash != chain.row_hash(previous, *fields_of(row)):
        raise LedgerError(f"row {seq} of the chain is missing or was changed; run: privet ledger verify")
    return row


def fields_of(row: chain.ChainRow) -> tuple[int, str, str, str, str, bytes]:
    """Return the fields that a row's hash covers, besides the row before it."""
    return row.seq, row.kind, row.entry, row.at, row.body, row.state


def rows_between(connection: sa.Connection, budget: int, first: int, last: int) -> list[chain.ChainRow]:
    """Return the rows of a chain from `first` to `last` in order, but no more than the first `PAGE` of them."""
    query = {"wanted": budget, "first": first, "last": last}
    return [row_of(found) for found in connection.execute(_ROWS, query)]


def read_body(row: chain.ChainRow) -> dict[str, Any]:
    """Return the content of a row's body."""
    try:
        body = json.loads(row.body)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise LedgerError(f"row {row.seq} of the chain cannot be read; run: privet ledger verify")
    return body


def amount_in(body: dict[str, Any]) -> Amount:
    """Return the charge in a reservation's row."""
    try:
        orders = tuple(map(int, body["orders"]))
        return Amount(orders, int(body["offset"]), body["form"] == "whole budget")
    except _UNREADABLE:
        raise LedgerError("the charge of an entry cannot be read; run: privet ledger verify") from None


def append(
    connection: sa.Connection, book: BudgetState, key: bytes | None, kind: str, entry: str, body: str, running: Running
) -> BudgetState:
    """Add one row to the chain and carry the budget's own row along; both or neither are written."""
    _require_seal(book, key)
    seq, at = book.head.length + 1, datetime.now(UTC).isoformat(timespec="milliseconds")
    terms, state = book.terms.text(), running.text()
    state_hash = chain.state_hash(terms, state)
    row_hash = chain.row_hash(book.head.hash, seq, kind, entry, at, body, state_hash)
    sealed = chain.seal(key, row_hash) if key is not None else None
    row = chain.ChainRow(seq, kind, entry, at, body, state_hash, row_hash, sealed)
    connection.execute(_ADD, {"budget": book.id} | asdict(row))
    if seq == 1:
        new = {"id": book.id, "name": book.terms.name, "terms": terms, "state": state, "length": 1, "head": row_hash}
        connection.execute(sa.insert(schema.BUDGETS), new)
    else:
        new = {"wanted": book.id, "before": seq - 1, "state": state, "length": seq, "head": row_hash}
        if connection.execute(_CARRY, new).rowcount != 1:
            raise LedgerError("another process changed the budget at the same time; nothing was changed; try again")
    return replace(book, running=running, head=chain.ChainHead(seq, row_hash), seal=sealed)


def _require_seal(book: BudgetState, key: bytes | None) -> None:
    """Raise unless the chain goes on as the key says: whoever rewrote it could not seal its last row."""
    name = f"budget {book.terms.name!r}"
    if key is None and book.terms.key is None:
        return
    if key is not None and book.terms.key is None:
        advice = "if you made it without one, open the ledger without a key"
        raise LedgerError(f"{name} has no seals: it was made without a key, or rewritten since; {advice}")
    if key is None or chain.key_name(key) != book.terms.key:
        have = "another key was given" if key else "none was given"
        raise LedgerError(f"{name} is sealed with a key, and {have}; pass its key")
    sealed = chain.seal(key, book.head.hash)
    if book.head.length and (book.seal is None or not hmac.compare_digest(book.seal, sealed)):
        raise LedgerError(f"the last row of {name} does not have the seal of the key; run: privet ledger verify")
