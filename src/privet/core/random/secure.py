"""The default randomness: unpredictable, never repeated, never shared."""

from __future__ import annotations

import os
import threading
from typing import Final

from privet.core.random.keystream import KEY_BYTES, Keystream
from privet.core.random.lineage import Home, here
from privet.core.random.rng import Rng
from privet.core.random.sizes import Bytes
from privet.core.randomness import Randomness

__all__ = ["BYTES_PER_KEY", "SecureRng", "default_rng"]

# A key makes 2^24 blocks of 16 bytes. What tells so few blocks of AES from true randomness is that none repeats: an
# advantage below 2^48 / 2^129 (the PRP/PRF switching lemma). And a stolen key explains at most this much of the past.
BYTES_PER_KEY: Final = 1 << 28


class _ThreadState(threading.local):
    """One thread's stream. Every thread sees these class attributes until it sets its own."""

    stream: Keystream | None = None
    home: Home = (0, 0)
    left: int = 0


class SecureRng(Rng):
    """Bits from AES-256 in counter mode, keyed by the operating system.

    - Each thread has its own key, so threads neither wait for each other nor share bits.
    - A forked child draws a new key before its first bit; so does a thread after 256 MiB.
    - There is no seed, no state to read or set, and no copy: `pickle` and `copy` are refused.

    What it trusts: the operating system's generator, AES, and that nobody reads this process's memory. Restoring a
    snapshot of a *running* virtual machine twice would replay the stream until the next key; no library can see that.

    >>> rng = SecureRng()
    >>> rng.kind, len(rng.bits(5)), rng.normal((2, 3)).shape
    (<Randomness.SECURE: 'secure'>, 5, (2, 3))
    """

    def __init__(self) -> None:
        self._state = _ThreadState()

    @property
    def kind(self) -> Randomness:
        """Always secure."""
        return Randomness.SECURE

    def _fill(self, out: Bytes) -> None:
        state, start = self._state, 0
        while start < len(out):
            if state.stream is None or state.left <= 0 or state.home != here():
                state.stream, state.home, state.left = Keystream(os.urandom(KEY_BYTES)), here(), BYTES_PER_KEY
            end = min(len(out), start + state.left)
            # Counted before it is drawn: an interrupt in between wastes bits and never repeats any.
            state.left -= end - start
            state.stream.fill(out[start:end])
            start = end

    @property
    def _instead(self) -> str:
        return "call privet.core.random.default_rng() in the other process, which keys itself there"


_DEFAULT: Final = SecureRng()


def default_rng() -> SecureRng:
    """Return the one secure generator that everything uses unless it is given another.

    >>> default_rng() is default_rng()
    True
    """
    return _DEFAULT
