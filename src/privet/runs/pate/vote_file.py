"""Vote files: the votes of a silo's teachers on every public row, which only the aggregator may read."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput, write_atomically
from privet.data import Table

__all__ = ["VoteFile", "gather_votes", "key_hash", "people_hashes", "public_digest", "silo_name"]

_FORMAT = 2
_MARK = "PRIVATE: the votes of single teachers; for the centre that adds noise to them, and for nobody else"
_BYTES = 16


@dataclass(frozen=True, eq=False)
class VoteFile:
    """Votes of a silo's teachers: for each public row the label, from 0, that each teacher gives it."""

    cast: npt.NDArray[np.int32] = field(repr=False)
    """[rows, teachers]"""
    classes: tuple[str, ...]
    about: str
    """A hash of the public rows, which are the same for all silos."""
    id: str
    """Random id of the file; or, where a key was given, a keyed hash of the rows, so that a second vote of one silo has
    the same id, as a copy always has. A hash without a key would let the aggregator guess rows of a small silo."""
    user: str | None = None
    """The column by whose values the silo's rows are divided among its teachers; each row by itself without one."""
    people: frozenset[str] = frozenset()
    """Keyed hashes of whose rows were learned from, where a key was given."""
    key: str | None = None
    """A hash of the key that was given, so that silos with different ones are noticed."""

    @property
    def teachers(self) -> int:
        """Number of teachers that voted."""
        return int(self.cast.shape[1])

    def write(self, path: Path) -> None:
        """Write a file that only its owner can read.

        Args:
            path: Path of the file.
        """
        letters = self.cast.astype("<u2").tobytes()
        content = {
            "privet-votes": _FORMAT,
            "sharing": _MARK,
            "classes": list(self.classes),
            "id": self.id,
            "about": self.about,
            "rows": len(self.cast),
            "teachers": self.teachers,
            "votes": base64.b64encode(letters).decode(),
            "user": self.user,
            "key": self.key,
            "people": sorted(self.people) if self.key is not None else None,
        }
        write_atomically(
            path, json.dumps(content | {"sum": _sum(content)}, ensure_ascii=False) + "\n", "out", private=True
        )

    @staticmethod
    def read(path: Path) -> VoteFile:
        """Read a file that `write` wrote.

        Args:
            path: Path of the file.

        Raises:
            InvalidInput: The file cannot be read, is damaged, or is of another version.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
            reason = (error.strerror or "unknown reason").lower() if isinstance(error, OSError) else "it is no JSON"
            problem = f"has {str(path)!r}, which cannot be read: {reason}"
            raise InvalidInput("votes", problem, "name files that `privet pate vote` wrote") from None
        try:
            return _checked(content)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InvalidInput):
                raise InvalidInput("votes", f"has {str(path)!r}, which {error.problem}", error.advice) from None
            problem = f"has {str(path)!r}, which is damaged or was written by something else"
            raise InvalidInput("votes", problem, "let `privet pate vote` write it again") from None


def _checked(content: dict[str, Any]) -> VoteFile:
    if content["privet-votes"] != _FORMAT:
        raise InvalidInput("votes", "is of another version of Privet", "use that version")
    if content.pop("sum") != _sum(content):
        raise InvalidInput("votes", "was changed after it was written", "let `privet pate vote` write it again")
    classes, rows, teachers = tuple(map(str, content["classes"])), content["rows"], content["teachers"]
    for number in (rows, teachers):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise InvalidInput("votes", "has no rows or no teachers", "let `privet pate vote` write it again")
    votes = np.frombuffer(base64.b64decode(content["votes"], validate=True), dtype="<u2")
    if votes.size != rows * teachers:
        problem = f"does not hold one vote of each of its {teachers} teachers for each of {rows} rows"
        raise InvalidInput("votes", problem, "let `privet pate vote` write it again")
    if len(classes) < 2 or votes.max() >= len(classes):
        raise InvalidInput("votes", "holds a vote for no known label", "let `privet pate vote` write it again")
    people, key = content["people"], content["key"]
    if (people is None) is not (key is None):
        raise InvalidInput("votes", "names nobody, and has a key", "let `privet pate vote` write it again")
    return VoteFile(
        votes.reshape(rows, teachers).astype(np.int32),
        classes,
        str(content["about"]),
        str(content["id"]),
        None if content["user"] is None else str(content["user"]),
        frozenset(map(str, people or ())),
        None if key is None else str(key),
    )


def _sum(content: dict[str, Any]) -> str:
    """Return a checksum of the file's content: it detects damage, not forgery."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def gather_votes(
    paths: Sequence[Path], classes: tuple[str, ...], about: str, rows: int, user: str | None
) -> tuple[npt.NDArray[np.int32], bool]:
    """Return the votes of all silos side by side, and whether it was checked that nobody is in two silos.

    Args:
        paths: Vote files, one for each silo.
        classes: Names of the classes, which must be those of all files.
        about: Hash of the public rows, which must be that of all files.
        rows: Number of public rows.
        user: Column of the users who are protected; None where single rows are.

    Raises:
        InvalidInput: Files do not fit together, are copies, or share a user.
    """
    files = [VoteFile.read(path) for path in paths]
    for path, file in zip(paths, files, strict=True):
        if user is not None and file.user != user and (file.teachers > 1 or file.people):
            problem = f"has {str(path)!r}, where rows of one {user!r} may be with several teachers"
            raise InvalidInput("votes", problem, "let all silos and the centre use one schema, or name the user in all")
        if file.classes != classes:
            problem = f"has {str(path)!r}, whose labels are {', '.join(file.classes)}, and not {', '.join(classes)}"
            raise InvalidInput("votes", problem, "let all silos use one schema")
        if file.about != about:
            problem = f"has {str(path)!r}, which is about other public rows"
            raise InvalidInput("votes", problem, "let all silos vote on the file that is given as --public")
        if len(file.cast) != rows:
            problem = f"has {str(path)!r}, with votes on {len(file.cast)} rows, and there are {rows} public ones"
            raise InvalidInput("votes", problem, "let `privet pate vote` write it again")
    if len({file.id for file in files}) < len(files):
        problem = "has two copies of one file, or two votes on the same rows: each row would have two votes"
        raise InvalidInput("votes", problem, "name one of them")
    known: set[str] = set()
    for path, file in zip(paths, files, strict=True):
        if known & file.people:
            problem = f"has {str(path)!r}, whose silo shares a user with another: one person would have several votes"
            raise InvalidInput("votes", problem, "keep each person's records in one silo")
        known |= file.people
    keys = {file.key for file in files}
    if len(keys - {None}) > 1:
        problem = "are of silos with different --people-key, so that nobody in two of them would be noticed"
        raise InvalidInput("votes", problem, "let all silos use one key")
    return np.concatenate([file.cast for file in files], axis=1), None not in keys


def key_hash(key: bytes) -> str:
    """Return a hash that distinguishes keys without revealing them.

    Args:
        key: The key.
    """
    return hmac.new(key, b"privet people key", hashlib.sha256).hexdigest()[: 2 * _BYTES]


def silo_name(key: bytes | None, rows: bytes) -> str:
    """Return an id for a vote file: random, or a keyed hash of the silo's rows.

    Args:
        key: Key that all silos share, or None.
        rows: Digest of the silo's rows.
    """
    return secrets.token_hex(16) if key is None else hmac.new(key, b"rows" + rows, hashlib.sha256).hexdigest()


def people_hashes(table: Table, key: bytes) -> frozenset[str]:
    """Return a keyed hash of each user and of the column's name, which reveals nothing to those without the key.

    Args:
        table: The rows of the silo.
        key: Key that all silos share.

    Raises:
        InvalidInput: The schema names no user.
    """
    if table.user_keys is None or table.schema.user is None:
        problem = "is given, and the schema names no user: there is nothing to compare"
        raise InvalidInput("people_key", problem, "name the user's column, or leave it out")
    named = table.schema.user.encode() + b"\0"
    return frozenset(
        hmac.new(key, named + int(each).to_bytes(8, "little"), hashlib.sha256).hexdigest()[: 2 * _BYTES]
        for each in table.user_keys
    )


def public_digest(public: npt.NDArray[Any], classes: tuple[str, ...]) -> str:
    """Return a hash of the public rows, as the schema reads them, and of the classes.

    Args:
        public: The public rows.
        classes: Names of the classes.
    """
    digest = hashlib.sha256(repr((public.shape, public.dtype.str, classes)).encode())
    digest.update(np.ascontiguousarray(public).data)
    return digest.hexdigest()
