"""Reports in layers of encryption, one for each server on their way and one for the collector at its end.

A layer is an ephemeral X25519 key, and what is inside under ChaCha20-Poly1305, with a key from HKDF-SHA256 over the
shared secret, both public keys and the batch's own name: a layer that is moved to another batch or another server, or
whose ephemeral key is written differently, does not open. Each key is used once, so that a fixed nonce will do. All
reports are padded to one length, and so are all layers at the same place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from privet.core import InvalidInput, checked

__all__ = ["LAYER", "MixKey", "length_of", "padded", "public_key", "seal", "unpadded"]

_KEY, _TAG, _COUNT = 32, 16, 4
LAYER = _KEY + _TAG
"""How many bytes a layer adds."""
_NONCE = bytes(12)


@dataclass(frozen=True)
class MixKey:
    """The private key of a server or a collector. It is made for one batch; its text is secret and never shown.

    >>> key = MixKey.new()
    >>> MixKey.read(key.secret).public == key.public
    True
    """

    _private: X25519PrivateKey = field(repr=False)

    @staticmethod
    def new() -> MixKey:
        """Make a key from the operating system's randomness."""
        return MixKey(X25519PrivateKey.generate())

    @staticmethod
    def read(secret: str) -> MixKey:
        """Read a key from its `secret`.

        Args:
            secret: The key as text.

        Raises:
            InvalidInput: This is no key.
        """
        return MixKey(X25519PrivateKey.from_private_bytes(_bytes("key", secret)))

    @property
    def secret(self) -> str:
        """The key as text, for a file that nobody else reads."""
        return self._private.private_bytes_raw().hex()

    @property
    def public(self) -> str:
        """What others need to know of it."""
        return self._private.public_key().public_bytes_raw().hex()

    def peel(self, layer: bytes, batch: bytes) -> bytes | None:
        """Return what is inside of a layer that was made for this key and this batch; None for anything else.

        Args:
            layer: The layer.
            batch: The name of the batch.
        """
        if len(layer) < LAYER:
            return None
        ephemeral = layer[:_KEY]
        try:
            secret = self._private.exchange(X25519PublicKey.from_public_bytes(ephemeral))
            cipher = ChaCha20Poly1305(_derived(secret, b"layer", batch, ephemeral, bytes.fromhex(self.public)))
            return cipher.decrypt(_NONCE, layer[_KEY:], batch)
        except (InvalidTag, ValueError):  # a point of low order has no secret
            return None

    def signature(self, body: bytes, batch: bytes, other: str, *, sends: bool) -> bytes:
        """Return a code by which the holders of two keys know that a batch came from the stop before.

        Args:
            body: The batch as it is sent.
            batch: The name of the batch.
            other: The public key of the other stop.
            sends: Whether this stop is the one that sends.
        """
        pair = (self.public, other) if sends else (other, self.public)
        secret = self._private.exchange(public_key(other))
        code = HMAC(_derived(secret, b"batch", batch, *map(bytes.fromhex, pair)), SHA256())
        code.update(body)
        return code.finalize()


def public_key(text: str) -> X25519PublicKey:
    """Read a public key from its text.

    Args:
        text: 64 hexadecimal digits.

    Raises:
        InvalidInput: This is no key.
    """
    return X25519PublicKey.from_public_bytes(_bytes("key", text))


def length_of(payload: int, layers: int) -> int:
    """How long a report of up to `payload` bytes is inside of so many layers."""
    return _COUNT + payload + layers * LAYER


def seal(report: bytes, keys: Sequence[str], payload: int, batch: bytes) -> bytes:
    """Return a report inside of one layer for each public key.

    Args:
        report: The report.
        keys: The public keys; the first is that of the stop that opens it first.
        payload: The length that reports are padded to.
        batch: The name of the batch.

    Raises:
        InvalidInput: The report is too long, or not one line.
    """
    inner = padded(report, payload)
    for key in reversed(keys):
        one = X25519PrivateKey.generate()
        ephemeral = one.public_key().public_bytes_raw()
        secret = one.exchange(public_key(key))
        cipher = ChaCha20Poly1305(_derived(secret, b"layer", batch, ephemeral, bytes.fromhex(key)))
        inner = ephemeral + cipher.encrypt(_NONCE, inner, batch)
    return inner


def padded(report: bytes, payload: int) -> bytes:
    """The report, one line of text, with its length before it and zeros after it."""
    if not _one_line(report):
        raise InvalidInput("report", "is not one line of UTF-8 text", "send each line by itself")
    if len(report) > checked.count("payload", payload):
        advice = "give the plan a larger payload; all reports have the same length on their way"
        raise InvalidInput("report", f"has {len(report)} bytes, above the payload of {payload}", advice)
    return len(report).to_bytes(_COUNT, "big") + report + bytes(payload - len(report))


def unpadded(inner: bytes) -> bytes | None:
    """The report inside of its padding; None where that is not as `padded` makes it."""
    size = int.from_bytes(inner[:_COUNT], "big")
    report = inner[_COUNT : _COUNT + size]
    if len(inner) < _COUNT + size or any(inner[_COUNT + size :]) or not _one_line(report):
        return None
    return report


def _one_line(report: bytes) -> bool:
    """Whether this is one report, and not several that count for more than one sender."""
    try:
        text = report.decode()
    except UnicodeDecodeError:
        return False
    return text.splitlines() == [text]


def _derived(secret: bytes, purpose: bytes, batch: bytes, first: bytes, second: bytes) -> bytes:
    info = b"privet mix 1 " + purpose + len(batch).to_bytes(4, "big") + batch + first + second
    return HKDF(SHA256(), 32, None, info).derive(secret)


def _bytes(argument: str, text: str) -> bytes:
    try:
        key = bytes.fromhex(text.strip())
    except (ValueError, AttributeError):
        key = b""
    if len(key) != _KEY:
        raise InvalidInput(argument, "is no key of 64 hexadecimal digits", "make one with: privet mix key")
    return key
