"""Fetching a published file, only where the user asked for it, and only if it is the very file."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from privet.core import InvalidInput

__all__ = ["Remote", "fetch"]

_LARGEST = 1 << 28


@dataclass(frozen=True)
class Remote:
    """One file that somebody publishes, and what it must be."""

    url: str
    sha256: str
    """Of the file as it is published, or of what is packed in it."""
    unpacked: bool = False
    """Whether `sha256` is of what is packed in it, so that any packing of the same content will do."""

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.url.rpartition("/")[2]


def fetch(remote: Remote, to: Path, *, mirror: str | None = None, convert: Callable[[bytes], bytes] = bytes) -> None:
    """Download a file, compare its checksum, convert it, and write it to its place; or leave everything unchanged.

    Args:
        remote: The address of the file, and its checksum.
        to: Where to write the file.
        mirror: Another address to download it from.
        convert: Converts the downloaded bytes to those that are written.

    Raises:
        InvalidInput: The address is not one of HTTP, the download fails, or its checksum differs.
    """
    url = remote.url if mirror is None else f"{mirror.rstrip('/')}/{remote.name}"
    if not url.startswith(("https://", "http://")):
        raise InvalidInput("mirror", f"is {mirror!r}", "give an address that begins with https://")
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - the address was checked above
            content = answer.read(_LARGEST)
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise InvalidInput(
            "download", f"of {url} failed: {reason}", "try again, or put the file there by hand"
        ) from None
    if _digest(content, remote) != remote.sha256:
        raise InvalidInput("download", f"of {url} is not the published file", "its SHA-256 differs; nothing was kept")
    to.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=to.parent, prefix=".", suffix=to.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(convert(content))
        Path(name).replace(to)
    finally:
        Path(name).unlink(missing_ok=True)


def _digest(content: bytes, remote: Remote) -> str:
    try:
        return hashlib.sha256(gzip.decompress(content) if remote.unpacked else content).hexdigest()
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return ""
