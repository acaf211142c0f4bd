"""Checking a budget from its first row: the chain, the states, the sums, the seals, and what is derived from them."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field, replace

import sqlalchemy as sa

from privet.core import LedgerError
from privet.ledger import chain, orders, schema
from privet.ledger.budget_state import Running, Terms, amount_in, fields_of, read_body
from privet.ledger.filter import Amount, Sums
from privet.ledger.history import LAST, page_after, rows_until
from privet.ledger.records import State, Verification
from privet.ledger.store import Store
from privet.ledger.stored_values import shown
from privet.ledger.transitions import PREDECESSORS, RESUMED

__all__ = ["ADVICE", "verify_budget"]

_MOST_PROBLEMS = 20
_MODULUS = 1 << 256
_PLACES = 5000
"""How many entries are read at once."""
ADVICE = "; run: privet ledger verify"
"""What others' messages advise, which is no advice here."""
_WITHOUT_SEALS = (
    "made without a key, or rewritten since, which the given key cannot tell apart; if you made it without one, verify "
    "it without one, or with a head that was kept"
)
_OTHER_SEALS = (
    "sealed with another key, or rewritten since, which the given key cannot tell apart; if you made it with another, "
    "verify it with that, or with a head that was kept"
)
_PREDECESSORS = {state.value: before for state, before in PREDECESSORS.items()} | {RESUMED: State.DRAWING}
"""The state in which an entry must be for each kind of row."""


@dataclass
class _Open:
    """An entry that may still change, while the chain is replayed."""

    seq: int
    amount: Amount
    state: State = State.RESERVED
    last: int = 0
    attempt: int = 0


@dataclass
class _Replay:
    """What the chain says, row by row."""

    name: str
    key: bytes | None
    wanted: chain.ChainHead | None
    problems: list[str] = field(default_factory=list)
    more: int = 0
    """How many problems were only counted."""
    terms: Terms | None = None
    written: str = ""
    """The terms, as the first row has them."""
    running: Running | None = None
    previous: bytes = chain.START
    length: int = 0
    open: dict[str, _Open] = field(default_factory=dict)
    places: int = 0
    """The sum of the hashes of all entries' places, to be compared with that of the table."""
    hashed: tuple[Running, bytes] | None = None
    """The state that was hashed last: most rows leave it as it is."""
    tags: set[str] = field(default_factory=set)
    named: str | None = None
    """The name of the given key."""
    vouched: bool = False
    """Whether the chain has the row that the given head names."""

    def report(self, problem: str, *, follows: bool = False) -> None:
        """Keep a problem; count it only, if there are many or if it may follow from an earlier one."""
        if len(self.problems) >= _MOST_PROBLEMS or (follows and self.problems):
            self.more += 1
        else:
            self.problems.append(f"{shown(self.name)}: {problem}")

    def found(self) -> tuple[str, ...]:
        """Every problem that was kept, and how many were not."""
        if not self.more:
            return tuple(self.problems)
        what = "1 more problem, which" if self.more == 1 else f"{self.more:,} more problems, which"
        return (*self.problems, f"{shown(self.name)}: {what} may follow from what is said above")

    def take(self, row: chain.ChainRow) -> None:
        """One more row: is it the next one, is it unchanged, is it allowed, and what does it do to the sums?"""
        which = f"row {row.seq} ({shown(row.kind)})"
        whole = row.seq == self.length + 1
        if not whole:
            gap = (
                f"row {self.length + 1} is"
                if row.seq == self.length + 2
                else f"rows {self.length + 1} to {row.seq - 1} are"
            )
            self.report(f"{gap} missing")
        if row.hash != chain.row_hash(self.previous, *fields_of(row)):
            self.report(
                f"{which} was changed or moved: its hash does not follow from the row before",
                follows=not whole,
            )
        self.length, self.previous = row.seq, row.hash
        try:
            self._apply(row)
        except LedgerError as error:
            self.report(f"{which}: {str(error).removesuffix(ADVICE)}", follows=True)
        if self.key is not None and self.is_sealed:
            self._sealed(row, self.key)
        if row.state != self._state_hash():
            wrong = "the sums after it are not what its entries add up to"
            self.report(f"{which}: {wrong}", follows=True)
        if self.wanted is not None and row.seq == self.wanted.length:
            self.vouched = row.hash == self.wanted.hash
            if not self.vouched:
                self.report(f"row {row.seq} is not the one that the given head names")

    def _state_hash(self) -> bytes:
        if self.terms is None or self.running is None:
            return b""
        if self.hashed is None or self.hashed[0] is not self.running:
            self.hashed = self.running, chain.state_hash(self.written, self.running.text())
        return self.hashed[1]

    def _sealed(self, row: chain.ChainRow, key: bytes) -> None:
        if row.seal is None or not hmac.compare_digest(row.seal, chain.seal(key, row.hash)):
            self.report(f"row {row.seq} ({shown(row.kind)}) does not have the seal of the key: it was rewritten")

    def _apply(self, row: chain.ChainRow) -> None:
        body = {} if row.body == "{}" else read_body(row)
        if row.kind == "created":
            self._created(row, body)
            return
        if self.terms is None or self.running is None:
            raise LedgerError("stands before the row that creates the budget")
        running, entry = self.running, self.open.get(row.entry)
        if row.kind == "bound":
            tag = str(body.get("fingerprint"))
            self.running = replace(running, version=running.version + 1, fingerprint=tag)
            self.tags.add(tag)
        elif row.kind == State.RESERVED.value:
            amount = amount_in(body)
            if entry is not None:
                raise LedgerError("an entry is reserved twice")
            if len(amount.orders) != len(running.sums.orders) or min(*amount.orders, amount.offset) < 0:
                raise LedgerError("the charge is not one that this budget can have")
            if running.sums.order_for(amount, self.terms.rules) is None:
                self.report(f"row {row.seq}: an entry was admitted that does not fit", follows=True)
            self.running = replace(running, sums=running.sums.after(amount), entries=running.entries + 1)
            self.open[row.entry] = _Open(row.seq, amount, last=row.seq)
        elif entry is None:
            raise LedgerError("changes an entry that is not open")
        else:
            self._moved(row, entry, self.terms, running)

    def _created(self, row: chain.ChainRow, body: dict[str, object]) -> None:
        if row.seq != 1 or self.terms is not None:
            raise LedgerError("a budget is created only once")
        self.written = str(body.get("terms"))
        self.terms = Terms.parse(self.written)
        rules = self.terms.rules
        tag = body.get("fingerprint")
        self.running = Running(Sums.empty(rules), version=int(tag is not None), fingerprint=str(tag) if tag else None)
        if tag is not None:
            self.tags.add(str(tag))
        bounds = [
            orders.limit(order, rules.epsilon, share, rules.delta_bits, rules.epsilon_bits)
            for order, share in zip(rules.orders, rules.shares, strict=True)
        ]
        if any(have > most for have, most in zip(rules.limits, bounds, strict=True)):
            self.report("its limits are above what its ε and δ allow")
        if self.terms.name != self.name:
            self.report(f"its first row creates a budget for {self.terms.name!r}")

    @property
    def is_sealed(self) -> bool:
        """Whether the chain says that it has the seals of the given key."""
        return self.terms is not None and self.named is not None and self.terms.key == self.named

    def without_proof(self) -> str:
        """Why the given key says nothing about this chain, where it does not; empty otherwise.

        Whoever can write the database can make a sealed budget anew without seals: what its first row says about a key
        is no proof. A head is one, if it was kept elsewhere: it is the hash of everything up to its row.
        """
        if self.key is None or self.terms is None or self.is_sealed or self.vouched:
            return ""
        return f"{shown(self.name)}: {_WITHOUT_SEALS if self.terms.key is None else _OTHER_SEALS}"

    def _moved(self, row: chain.ChainRow, entry: _Open, terms: Terms, running: Running) -> None:
        if _PREDECESSORS.get(row.kind) is not entry.state:
            raise LedgerError(f"is not allowed for an entry that is {entry.state.value}")
        entry.last = row.seq
        if row.kind == RESUMED:
            entry.attempt += 1
            return
        entry.state = State(row.kind)
        if entry.state is State.ABORTED:
            self.running = replace(running, sums=running.sums.without(entry.amount, terms.rules))
        if entry.state in (State.ABORTED, State.COMMITTED):
            # Kept no longer than it can change, so that memory does not grow with the history.
            self.places += _weight(row.entry, entry.seq, entry.last, entry.state.value, entry.attempt)
            del self.open[row.entry]


def _weight(*place: object) -> int:
    """A number for one place; equal sums of these mean equal sets of places (a multiset hash).

    Of the values' own notation, in which a number is never a text, and what is no text has a form, too.
    """
    return int.from_bytes(hashlib.sha256(ascii(place).encode()).digest(), "big")


def verify_budget(
    store: Store, budget: int, name: str, salt: str, key: bytes | None, wanted: chain.ChainHead | None = None
) -> Verification:
    """Replay one budget's chain and compare; problems are reported in words, and nothing is changed.

    `salt` is the name of the ledger's salt.
    """
    replay = _Replay(name, key, wanted, named=chain.key_name(key) if key is not None else None)
    # What is there is read, whatever the budget's row says about its length.
    for row in rows_until(store, budget, LAST):
        replay.take(row)
    with store.reading() as connection:
        # What was added meanwhile, and then everything that is derived from the chain, in one consistent view.
        while rows := page_after(connection, budget, replay.length, LAST):
            for row in rows:
                replay.take(row)
        _compare_budget(connection, budget, replay)
        _compare_places(connection, budget, replay)
    if wanted is not None and replay.length < wanted.length:
        replay.report(
            f"the head names row {wanted.length}, and the chain ends at row {replay.length}: its tail was cut"
        )
    if replay.terms is not None and replay.terms.salt not in (None, salt):
        replay.report("the ledger's salt is another than when it was made: its data would not be recognised")
    if replay.length == 0:
        replay.report("the chain has no rows")
    problems, unproven = replay.found(), replay.without_proof()
    broken = (name,) if problems else ()
    found = (*problems, unproven) if unproven else problems
    return Verification((name,), replay.length, found, replay.is_sealed, broken, (name,) if unproven else ())


def _compare_budget(connection: sa.Connection, budget: int, replay: _Replay) -> None:
    row = connection.execute(sa.select(schema.BUDGETS).where(schema.BUDGETS.c.id == budget)).one()
    if row.length == replay.length and row.head != replay.previous:
        replay.report(f"the budget's row names another hash for row {row.length}, the last, than the chain has")
    elif row.length != replay.length:
        replay.report(f"the budget's row ends at row {row.length!r} of the chain, which ends at row {replay.length}")
    if replay.terms is not None and row.terms != replay.written:
        replay.report("the budget's row has other terms than the chain")
    if replay.running is not None and row.state != replay.running.text():
        replay.report("the budget's row has other sums than the chain adds up to", follows=True)


def _compare_places(connection: sa.Connection, budget: int, replay: _Replay) -> None:
    table, tags = schema.ENTRIES, schema.FINGERPRINTS
    for id_, entry in replay.open.items():
        replay.places += _weight(id_, entry.seq, entry.last, entry.state.value, entry.attempt)
    query = sa.select(table.c.id, table.c.seq, table.c.last, table.c.state, table.c.attempt)
    total = 0
    for row in connection.execute(query.where(table.c.budget == budget).execution_options(yield_per=_PLACES)):
        total += _weight(*row)
    if total % _MODULUS != replay.places % _MODULUS:
        wrong = "a state was changed, or an entry added or dropped"
        replay.report(f"the table of entries differs from the chain: {wrong}", follows=True)
    known = connection.execute(sa.select(tags.c.tag).where(tags.c.budget == budget)).scalars()
    if set(known) != replay.tags:
        replay.report("the table of fingerprints differs from the chain", follows=True)
