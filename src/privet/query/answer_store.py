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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from privet.core import Draw, Guarantee, Interval, InvalidInput, LedgerError, Record, Release, Unit, checked
from privet.core.random import Randomness
from privet.data import Schema
from privet.ledger import Fingerprint, Ledger, State
from privet.query.answers import Answer, Row
from privet.query.questions import Question

__all__ = ["AnswerKey", "AnswerStore", "Kept", "OpenStore"]

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


@dataclass(frozen=True)
class AnswerKey:
    """Everything that makes an answer what it is."""

    question: Question
    schema: Schema
    budget: str
    """The name of the budget that was charged."""
    data: Fingerprint


class AnswerStore:
    """A file of answers, beside a ledger. Several processes may use it at once: one asks, and the others wait."""

    def __init__(self, path: str | os.PathLike[str], *, wait: float = _WAIT) -> None:
        self._path, self._wait = Path(path), checked.nonnegative("wait", wait)
        """How many seconds another process may take with its questions."""

    def __repr__(self) -> str:
        return f"AnswerStore({str(self._path)!r})"

    def find(self, key: AnswerKey, ledger: Ledger) -> Kept | None:
        """Return the answer that was stored, if the ledger was charged for it; does not wait for other processes.

        Args:
            key: Which answer.
            ledger: The ledger of the budget.

        Returns:
            The answer; None if there is none.

        Raises:
            LedgerError: The file is damaged, or does not belong to the ledger.
        """
        if not self._path.exists():
            return None
        with self._open("BEGIN") as connection:
            # Whoever makes the file may not be done yet.
            made = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'secret'").fetchone()
            return None if made is None else OpenStore(connection, self._damaged).find(key, ledger)

    @contextlib.contextmanager
    def held(self) -> Iterator[OpenStore]:
        """Open the file for one process alone, from before a charge until its answers are stored.

        So a question that two processes ask at once is drawn and paid for once: the other one finds the answer. A
        process that dies lets go of the file. What is kept is on the disk when this is left, and not before.

        Raises:
            LedgerError: Another process holds the file for too long, or it is damaged.
        """
        with self._open("BEGIN IMMEDIATE") as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, body TEXT NOT NULL)")
            connection.execute("CREATE TABLE IF NOT EXISTS secret (one INTEGER PRIMARY KEY, value BLOB NOT NULL)")
            made = (1, secrets.token_bytes(32))
            connection.execute("INSERT OR IGNORE INTO secret (one, value) VALUES (?, ?)", made)
            yield OpenStore(connection, self._damaged)

    @contextlib.contextmanager
    def _open(self, begin: str) -> Iterator[sqlite3.Connection]:
        try:
            # For its owner alone: the key would let others try which data an answer is of.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            reason = (error.strerror or "unknown reason").lower()
            problem = f"is {str(self._path)!r}, where no answers can be kept: {reason}"
            raise InvalidInput("stored", problem, "name a file in a folder where you may write") from None
        try:
            connection = sqlite3.connect(self._path, timeout=self._wait, isolation_level=None)
        except sqlite3.Error as error:
            raise self._damaged(str(error)) from None
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(begin)
            yield connection
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                waiting = f"another process is asking, and holds the answers in {str(self._path)!r}"
                raise LedgerError(
                    f"{waiting}; ask again when it is done, or wait longer than {self._wait:g} s"
                ) from None
            raise self._damaged(str(error)) from None
        finally:
            connection.close()

    def _damaged(self, problem: str) -> LedgerError:
        advice = "move it away to begin anew, and answers are paid for again"
        return LedgerError(f"the stored answers in {str(self._path)!r} cannot be used: {problem}; {advice}")


@dataclass(frozen=True)
class OpenStore:
    """An open file of answers."""

    connection: sqlite3.Connection
    damaged: Callable[[str], LedgerError]

    def find(self, key: AnswerKey, ledger: Ledger) -> Kept | None:
        """Return the answer that was stored, if the ledger was charged for it.

        Args:
            key: Which answer.
            ledger: The ledger of the budget.

        Returns:
            The answer; None if there is none.

        Raises:
            LedgerError: The file is damaged, or does not belong to the ledger.
        """
        row = self.connection.execute("SELECT body FROM answers WHERE key = ?", (self._hash(key),)).fetchone()
        if row is None:
            return None
        try:
            answer: Kept = Kept.from_json(str(row[0]))
        except InvalidInput as error:
            raise self.damaged(str(error)) from None
        entry = ledger.entry(answer.entry)
        if entry.budget != key.budget or entry.state not in _PAID:
            raise self.damaged(f"{answer.entry} is no entry of {key.budget!r} that was drawn")
        return answer

    def keep(self, key: AnswerKey, release: Release[Answer], entry: str) -> None:
        """Store an answer, in place of an older one.

        Args:
            key: Which answer.
            release: The answer.
            entry: The ledger's entry that was charged for it.
        """
        paid = release.draws, release.unit, release.randomness, release.guarantee, entry
        answer = Kept(release.value, *paid, datetime.now(UTC).isoformat(timespec="seconds"))
        row = self._hash(key), answer.to_json()
        self.connection.execute("INSERT OR REPLACE INTO answers (key, body) VALUES (?, ?)", row)

    def _hash(self, key: AnswerKey) -> str:
        row = self.connection.execute("SELECT value FROM secret WHERE one = 1").fetchone()
        if row is None or not isinstance(row[0], bytes) or len(row[0]) != 32:
            raise self.damaged("its key is gone")
        schema = key.schema.without_sources().to_toml()
        parts = [_FORMAT, key.budget, key.data.keyed(row[0]), schema, str(key.question)]
        return hmac.digest(row[0], json.dumps(parts).encode(), "sha256").hex()
