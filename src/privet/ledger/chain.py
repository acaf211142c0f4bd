"""The hash chain: every change of a budget is a row whose hash covers the row, the sums after it, and the past."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from privet.core import InvalidInput

__all__ = ["START", "ChainHead", "ChainRow", "key_name", "read_key", "row_hash", "seal", "state_hash"]

START = bytes(32)
"""What stands before a budget's first row."""
_FORMAT = b"privet ledger 1"
_LEAST_KEY = 16
_MAKE = "make one with: python -c 'import secrets; print(secrets.token_hex(32))' > ledger.key"


@dataclass(frozen=True)
class ChainRow:
    """One row of a budget's chain, as it stands in the database."""

    seq: int
    kind: str
    entry: str
    at: str
    body: str
    state: bytes
    """The hash of the budget's terms and running state after this row."""
    hash: bytes
    seal: bytes | None
    """An HMAC of the hash, under a key that is not in the database."""


@dataclass(frozen=True)
class ChainHead:
    """The end of a chain: how many rows it has, and the hash of the last. Goes into every card.

    >>> ChainHead.parse("3:" + "ab" * 32).length
    3
    """

    length: int
    hash: bytes

    def __str__(self) -> str:
        return f"{self.length}:{self.hash.hex()}"

    @classmethod
    def parse(cls, text: str) -> ChainHead:
        """Parse a head, as `str` writes it.

        Args:
            text: The head, as ROWS:HASH.

        Raises:
            InvalidInput: The text is not a head.
        """
        found = re.fullmatch(r"([1-9][0-9]{0,17}):([0-9a-f]{64})", str(text).strip())
        if found is None:
            raise InvalidInput("head", f"is {text!r}, which is no head", "copy it whole, as ROWS:HASH, from a card")
        return cls(int(found[1]), bytes.fromhex(found[2]))


def _hash(parts: Sequence[bytes]) -> bytes:
    """SHA-256 of parts after all their lengths, so that no two lists of parts give the same bytes."""
    lengths = struct.pack(f">{len(parts)}Q", *map(len, parts))
    return hashlib.sha256(b"".join((_FORMAT, len(parts).to_bytes(8, "big"), lengths, *parts))).digest()


def state_hash(terms: str, state: str) -> bytes:
    """Return the hash of what a budget's own row says: its terms, which never change, and its running state."""
    return _hash((b"state", _bytes(terms), _bytes(state)))


def row_hash(previous: bytes, seq: int, kind: str, entry: str, at: str, body: str, state: bytes) -> bytes:
    """Return the hash of one row; every field of the row is in it, and so is the row before."""
    number = seq.to_bytes(8, "big")
    return _hash((b"row", previous, number, _bytes(kind), _bytes(entry), _bytes(at), _bytes(body), state))


def _bytes(text: str) -> bytes:
    """A text as it stands in the file: bytes there that are no text were read as escapes (`sqlite_connection`)."""
    return text.encode("utf-8", "surrogateescape")


def seal(key: bytes, hash_: bytes) -> bytes:
    """Return the HMAC of a row's hash: a rewritten chain cannot have it without the key."""
    return hmac.digest(key, b"privet ledger seal" + hash_, "sha256")


def key_name(key: bytes) -> str:
    """Return a short name for a key, by which a wrong key is recognized; it reveals nothing about the key."""
    return hmac.digest(key, b"privet ledger key name", "sha256").hex()[:16]


def read_key(key: bytes | str | os.PathLike[str] | None) -> bytes | None:
    """Return the key itself, from bytes, from a file, or from the file that PRIVET_LEDGER_KEY_FILE names."""
    source = key if key is not None else os.environ.get("PRIVET_LEDGER_KEY_FILE") or None
    if source is None:
        return None
    if isinstance(source, bytes):
        found = source
    else:
        try:
            found = Path(source).read_bytes().strip()
        except OSError as error:
            reason = (error.strerror or "unknown reason").lower()
            problem, advice = f"names the file {str(source)!r}, which cannot be read: {reason}", "check its path"
            raise InvalidInput("key", problem, f"{advice}, or {_MAKE}") from None
    if len(found) < _LEAST_KEY:
        raise InvalidInput("key", f"has {len(found)} bytes, and at least {_LEAST_KEY} are needed", _MAKE)
    return found
