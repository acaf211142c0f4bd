"""Fingerprints: recognize a data set without storing anything of it that a stranger could use."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from privet.core import InvalidInput, reason_of

__all__ = ["Fingerprint", "fingerprint_of"]

_PIECE = 1 << 20


class Fingerprint:
    """A digest of a data set, in memory only; what a ledger keeps of it is an HMAC.

    It refuses to be shown, pickled or written as JSON: the digest of a small data set can be guessed by trying.

    >>> fingerprint_of(b"age,sex\\n41,f\\n")
    Fingerprint(<private>)
    """

    __slots__ = ("_digest",)

    def __init__(self, digest: bytes) -> None:
        if not isinstance(digest, bytes) or len(digest) != 32:
            raise InvalidInput("digest", "is not 32 bytes of SHA-256", "use fingerprint_of(data)")
        self._digest = digest

    def keyed(self, key: bytes) -> str:
        """Return the form that a ledger stores: HMAC-SHA256 under the ledger's own key.

        Args:
            key: The key; a ledger uses its salt.
        """
        return hmac.digest(key, b"privet fingerprint" + self._digest, "sha256").hex()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fingerprint) and hmac.compare_digest(self._digest, other._digest)

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        return "Fingerprint(<private>)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Fingerprint is private and cannot be pickled or copied; make it again from the data")

    def __getstate__(self) -> NoReturn:
        # Every object has one since Python 3.11, which would hand out the digest.
        raise TypeError("a Fingerprint is private and has no state to take out; make it again from the data")


def fingerprint_of(data: bytes | str | os.PathLike[str] | Iterable[bytes | str]) -> Fingerprint:
    """Return the fingerprint of a data set.

    Rows and files are read piece by piece, so that neither needs to fit into memory. The same records as bytes and as
    rows have different fingerprints: use the same form for a data set every time.

    Args:
        data: Bytes, the path of a file, or rows in their order, each of them bytes or text.

    Raises:
        InvalidInput: The data is empty, the file cannot be read, or a row is neither bytes nor text.
    """
    hasher = hashlib.sha256()
    some = False
    if isinstance(data, bytes):
        hasher.update(b"bytes\0")
        hasher.update(data)
        some = bool(data)
    elif isinstance(data, (str, os.PathLike)):
        hasher.update(b"bytes\0")
        try:
            with Path(data).open("rb") as file:
                while piece := file.read(_PIECE):
                    hasher.update(piece)
                    some = True
        except OSError as error:
            problem = f"names the file {str(data)!r}, which cannot be read: {reason_of(error)}"
            advice = "check the path" if isinstance(data, os.PathLike) else "check the path, for a text is taken as one"
            raise InvalidInput("data", problem, advice) from None
    elif isinstance(data, Iterable):
        hasher.update(b"rows\0")
        for row in data:
            if not isinstance(row, (bytes, str)):
                raise InvalidInput("data", f"has a row of type {type(row).__name__}", "give each row as bytes or text")
            piece = row.encode() if isinstance(row, str) else row
            hasher.update(len(piece).to_bytes(8, "big"))
            hasher.update(piece)
            some = True
    else:
        raise InvalidInput("data", f"is a {type(data).__name__}", "give bytes, a path, or rows")
    if not some:
        named = f"names the file {str(data)!r}, which is" if isinstance(data, (str, os.PathLike)) else "is"
        raise InvalidInput("data", f"{named} empty, and so is every data set without rows", "give the data itself")
    return Fingerprint(hasher.digest())
