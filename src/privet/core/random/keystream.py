"""The raw bits: AES-256 in counter mode, from OpenSSL."""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR, GCM

from privet.core.random.sizes import Bytes

__all__ = ["KEY_BYTES", "Bytes", "Keystream"]

KEY_BYTES: Final = 32
# Encrypting zeros yields the stream itself. 128 KiB at a time stays in the cache and costs no more than one long call.
_ZEROS: Final = memoryview(bytes(1 << 17))
# Before version 43 the library asked for this much room behind the text even in counter mode.
_ROOM: Final = 15
_TAIL: Final = 16
# Galois/counter mode counts with the last 32 bits of a block's number, and its text begins with block 2 of these.
_STRETCH: Final = 16 << 32
_HEAD: Final = 2 * 16


class Keystream:
    """One key's stream of bytes, each handed out once.

    Every key is used with the counter starting at zero, so two streams of one key are the same stream: the caller makes
    sure that a key is never used twice.

    The bytes are those of counter mode. They come from OpenSSL's Galois/counter mode, which is counter mode with a
    checksum that nobody asks for here, and which runs twice as fast where the processor has wide AES instructions,
    checksum and all. It leaves out the first two of every 2^32 blocks; plain counter mode supplies these.
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = AES(key)
        self._stretch, self._in_head = 0, True
        self._encryptor, self._left = Cipher(self._cipher, CTR(bytes(16))).encryptor(), _HEAD

    def fill(self, out: Bytes) -> None:
        """Overwrite `out` (contiguous) with the next bytes of the stream."""
        view = out.data
        start, end = 0, len(view)
        while start < end:
            if not self._left:
                self._turn()
            size = min(end - start, len(_ZEROS), self._left)
            if end - start < size + _ROOM and size > _TAIL:
                size -= _TAIL  # only the last bytes go the slower way
            self._left -= size
            if end - start >= size + _ROOM:
                self._encryptor.update_into(_ZEROS[:size], view[start:])
            else:
                view[start : start + size] = self._encryptor.update(_ZEROS[:size])
            start += size

    def _turn(self) -> None:
        """Go on from the head of a stretch to its body, or from there to the head of the next stretch."""
        if self._in_head:
            mode: CTR | GCM = GCM(self._stretch.to_bytes(12, "big"))
            left = _STRETCH - _HEAD
        else:
            self._stretch += 1
            mode, left = CTR(self._stretch.to_bytes(12, "big") + bytes(4)), _HEAD
        self._in_head = not self._in_head
        self._encryptor, self._left = Cipher(self._cipher, mode).encryptor(), left
