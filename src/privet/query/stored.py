"""Answers that were paid for once and are given again for nothing.

An answer is kept under a keyed hash of everything that makes it what it is: the budget's name, the data's fingerprint,
the schema (with whose rows are protected) and the question. Other data, another schema or another budget give another
key, so that no answer is ever given for something else. What is kept is only what was released, and the ledger must
know the entry that paid for it. The key of the hash is the file's own.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from privet.core import checked
from privet.core.codec import Record
from privet.core.errors import InvalidInput, LedgerError
from privet.core.guarantee import Guarantee, Interval
from privet.core.random import Randomness
from privet.core.release import Draw, Release
from privet.core.unit import Unit
from privet.data.schema import Schema
from privet.ledger import Fingerprint, Ledger, State
from privet.query.answers import Answer, Row
from privet.query.questions import Question

__all__ = ["Kept", "Stored"]

_FORMAT = 1
_WAIT = 60.0
_PAID = (State.DRAWING, State.COMMITTED)


@dataclass(frozen=True)
class Kept(Record):
    """An answer with everything that makes a release of it."""

    answer: Answer
    draws: tuple[Draw, ...]
    unit: Unit
    randomness: Randomness
    guarantee: Guarantee | None
    entry: str
    """The ledger's entry that paid for it."""
    at: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "randomness", checked.member("randomness", self.randomness, Randomness))

    @classmethod
    def kinds(cls) -> Mapping[str, type[Record]]:
        """Everything that it is made of."""
        parts: dict[str, type[Record]] = {"Kept": Kept, "Answer": Answer, "Row": Row, "Unit": Unit}
        return parts | {"Guarantee": Guarantee, "Interval": Interval} | dict(Draw.kinds())

    def release(self) -> Release[Answer]:
        """The same release again.

        Guarantee: that of the release that was stored; nothing is drawn, so that it is free (post-processing).
        """
        return Release(self.answer, self.draws, self.unit, self.randomness, self.guarantee)


class Stored:
    """A file of answers, beside a ledger. Several processes may use it at once."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def __repr__(self) -> str:
        return f"Stored({str(self._path)!r})"

    def find(self, question: Question, schema: Schema, budget: str, data: Fingerprint, ledger: Ledger) -> Kept | None:
        """The answer that was stored, if the ledger says that it was paid for."""
        if not self._path.exists():
            return None
        with self._open() as connection:
            wanted = self._key(connection, question, schema, budget, data)
            found = connection.execute("SELECT body FROM answers WHERE key = ?", (wanted,)).fetchone()
        if found is None:
            return None
        try:
            kept: Kept = Kept.from_json(str(found[0]))
        except InvalidInput as error:
            raise self._damaged(str(error)) from None
        entry = ledger.entry(kept.entry)
        if entry.budget != budget or entry.state not in _PAID:
            raise self._damaged(f"{kept.entry} is no entry of {budget!r} that was drawn")
        return kept

    def keep(
        self, question: Question, schema: Schema, budget: str, data: Fingerprint, release: Release[Answer], entry: str
    ) -> None:
        """Keep an answer; one that another process stored in the meantime is replaced."""
        kept = Kept(
            release.value,
            release.draws,
            release.unit,
            release.randomness,
            release.guarantee,
            entry,
            datetime.now(UTC).isoformat(timespec="seconds"),
        )
        with self._open() as connection:
            key = self._key(connection, question, schema, budget, data)
            connection.execute("INSERT OR REPLACE INTO answers (key, body) VALUES (?, ?)", (key, kept.to_json()))

    def ready(self) -> None:
        """Make the file, or find that it cannot be used, before anything is charged."""
        with self._open():
            pass

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            # For its owner alone: the key would let others try which data an answer is of.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            connection = sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise self._damaged(str(error)) from None
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, body TEXT NOT NULL)")
            connection.execute("CREATE TABLE IF NOT EXISTS secret (one INTEGER PRIMARY KEY, value BLOB NOT NULL)")
            made = (1, secrets.token_bytes(32))
            connection.execute("INSERT OR IGNORE INTO secret (one, value) VALUES (?, ?)", made)
            yield connection
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._damaged(str(error)) from None
        finally:
            connection.close()

    def _key(
        self, connection: sqlite3.Connection, question: Question, schema: Schema, budget: str, data: Fingerprint
    ) -> str:
        (secret,) = connection.execute("SELECT value FROM secret WHERE one = 1").fetchone()
        if not isinstance(secret, bytes) or len(secret) != 32:
            raise self._damaged("its key is gone")
        parts = [_FORMAT, budget, data.keyed(secret), schema.to_toml(), str(question)]
        return hmac.digest(secret, json.dumps(parts).encode(), "sha256").hex()

    def _damaged(self, problem: str) -> LedgerError:
        advice = "move it away to begin anew, and answers are paid for again"
        return LedgerError(f"the stored answers in {str(self._path)!r} cannot be used: {problem}; {advice}")
