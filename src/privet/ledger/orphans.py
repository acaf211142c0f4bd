"""What remains of budgets whose own row is gone: found by `verify`, and never continued or made anew by `create`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sqlalchemy as sa

from privet.core import LedgerError
from privet.ledger import schema
from privet.ledger.budget_state import Terms, read_body, rows_between
from privet.ledger.stored_values import number, shown

__all__ = ["Orphan", "next_id", "orphans", "require_new"]

_TABLES = (
    (schema.CHAIN, "of its chain's rows"),
    (schema.ENTRIES, "of its entries"),
    (schema.FINGERPRINTS, "of its fingerprints"),
)
"""Everything that names a budget by its number."""
_NUMBER = "the number of a budget"


@dataclass(frozen=True)
class Orphan:
    """A budget without a row of its own."""

    id: int
    name: str | None
    """As the first row of its chain has it, if that can be read."""
    remains: str

    def __str__(self) -> str:
        named = self.name is not None
        who = f"{shown(self.name)}: the budget's row" if named else f"the row of budget number {self.id}"
        return f"{who} was deleted, and {self.remains} remain"


def orphans(connection: sa.Connection) -> list[Orphan]:
    """Return every budget whose row is gone while other records of it remain."""
    known = {number(id_, _NUMBER) for id_ in connection.execute(sa.select(schema.BUDGETS.c.id)).scalars()}
    lost = sorted({id_ for table, _ in _TABLES for id_ in _ids(connection, table)} - known)
    first = {id_: _first_terms(connection, id_) for id_ in lost}
    return [Orphan(id_, terms.name if terms else None, _remains(connection, id_)) for id_, terms in first.items()]


def require_new(connection: sa.Connection, name: str, salt: str) -> None:
    """Raise if a chain was ever started for this name, whatever the table of budgets says now.

    Nor is anything made beside budgets of another salt: data that is charged to them would not be recognized.
    """
    begun = [_first_terms(connection, id_) for id_ in _ids(connection, schema.CHAIN)]
    if any(terms is not None and terms.salt not in (None, salt) for terms in begun):
        raise LedgerError("the ledger's salt was changed; nothing else was changed now; restore a backup")
    if any(terms is not None and terms.name == name for terms in begun):
        raise LedgerError(
            f"there was a budget for {name!r}, and its row was deleted or renamed; what it spent is spent, so it "
            "cannot be made anew; restore a backup"
        )
    if any(orphan.name is None for orphan in orphans(connection)):
        # It may be this one: better no new budget than a spent one made anew.
        raise LedgerError(
            f"the ledger holds entries of a budget whose row and name are gone, which may be {name!r}; "
            "nothing was changed; restore a backup"
        )


def next_id(connection: sa.Connection) -> int:
    """Return a number that nothing in the ledger names, so that no budget continues what another has left behind."""
    columns = [schema.BUDGETS.c.id, *(table.c.budget for table, _ in _TABLES)]
    found = (connection.execute(sa.select(sa.func.max(column))).scalar_one() for column in columns)
    return 1 + max(number(id_ or 0, _NUMBER) for id_ in found)


def _ids(connection: sa.Connection, table: sa.Table) -> Iterator[int]:
    """The budgets that a table names, each found by a step along the index: the history is not read."""
    if table is schema.FINGERPRINTS:
        found = connection.execute(sa.select(table.c.budget).distinct().order_by(table.c.budget)).scalars().all()
        yield from (number(id_, _NUMBER) for id_ in found)
        return
    following, last = sa.select(sa.func.min(table.c.budget)), -1
    next_ = connection.execute(following).scalar_one()
    while next_ is not None:
        if number(next_, _NUMBER) <= last:
            # In a damaged file the index may lead back.
            raise LedgerError(f"{_NUMBER} is damaged; run: privet ledger verify")
        last = next_
        yield last
        next_ = connection.execute(following.where(table.c.budget > last)).scalar_one()


def _first_terms(connection: sa.Connection, budget: int) -> Terms | None:
    """The terms in the first row of a chain, if they can be read."""
    try:
        return next(
            (Terms.parse(str(read_body(row).get("terms"))) for row in rows_between(connection, budget, 1, 1)), None
        )
    except LedgerError:
        return None


def _remains(connection: sa.Connection, budget: int) -> str:
    query = [sa.select(sa.func.count()).select_from(table).where(table.c.budget == budget) for table, _ in _TABLES]
    counts = [int(connection.execute(one).scalar_one()) for one in query]
    return ", ".join(f"{count:,} {what}" for count, (_, what) in zip(counts, _TABLES, strict=True) if count)
