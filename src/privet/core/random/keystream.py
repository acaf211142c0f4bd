"""The raw bits: AES-256 in counter mode, from OpenSSL."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

__all__ = ["KEY_BYTES", "Bytes", "Keystream"]

Bytes = npt.NDArray[np.uint8]

KEY_BYTES: Final = 32
# Encrypting zeros yields the stream itself. 64 KiB at a time stays in the cache and costs no more than one long call.
_ZEROS: Final = memoryview(bytes(1 << 16))
# Before version 43 the library asked for this much room behind the text even in counter mode.
_ROOM: Final = 15


class Keystream:
    """One key's stream of bytes, each handed out once.

    Every key is used with the counter starting at zero, so two streams of one key are the same stream: the caller makes
    sure that a key is never used twice.
    """

    def __init__(self, key: bytes) -> None:
        self._encryptor = Cipher(AES(key), CTR(bytes(16))).encryptor()

    def fill(self, out: Bytes) -> None:
        """Overwrite `out` (contiguous) with the next bytes of the stream."""
        view = out.data
        start, end = 0, len(view)
        while end - start >= len(_ZEROS) + _ROOM:
            self._encryptor.update_into(_ZEROS, view[start:])
            start += len(_ZEROS)
        while start < end:
            piece = self._encryptor.update(_ZEROS[: end - start])
            view[start : start + len(piece)] = piece
            start += len(piece)
