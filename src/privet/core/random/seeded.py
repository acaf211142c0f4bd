"""Randomness that can be replayed, for tests. It protects nobody."""

from __future__ import annotations

import hashlib
import threading
from typing import Final

from privet.core.errors import InvalidInput, PrivetError
from privet.core.random.keystream import Keystream
from privet.core.random.lineage import here
from privet.core.random.rng import Rng
from privet.core.random.sizes import Bytes
from privet.core.randomness import Randomness

__all__ = ["SeededRng"]

_DOMAIN: Final = b"privet seeded stream, version 1"


class SeededRng(Rng):
    """A stream that a seed decides. **It taints every release it touches**: whoever knows the seed subtracts the noise.

    For tests, demonstrations and debugging. The release records `Randomness.SEEDED` and the report shows it in red.

    - The same seed and labels replay the same bits, words, integers and discrete draws everywhere. Normals may differ
      in their last bit between processors, as the logarithm and the sine do.
    - `child(label)` is an independent stream that depends on the seed and the labels alone, not on what was drawn.
    - A forked child process that inherits one may not draw from it: it would repeat its parent's noise and every
      sibling's. It raises there; `rng.child(worker)` is allowed and gives each process its own stream.
    - Threads may share one: no bit is given twice, but who gets which depends on their timing.

    >>> SeededRng(7).below(1000, 3).tolist() == SeededRng(7).below(1000, 3).tolist()
    True
    >>> SeededRng(7).child("clipping").bits(4) == SeededRng(7).child("sampling").bits(4)
    False
    """

    def __init__(self, seed: int, *labels: int | str) -> None:
        if not isinstance(seed, int) or isinstance(seed, bool):
            problem = f"is a {type(seed).__name__}"
            raise InvalidInput("seed", problem, "give a whole number, or use SecureRng() where noise must protect")
        self._seed, self._labels = seed, labels
        self._stream = Keystream(_key(seed, labels))
        self._home = here()
        self._lock = threading.Lock()

    @property
    def kind(self) -> Randomness:
        """Always seeded."""
        return Randomness.SEEDED

    def child(self, label: int | str) -> SeededRng:
        """Return the independent stream of this name; asking again gives the same stream from its start."""
        return SeededRng(self._seed, *self._labels, label)

    def __repr__(self) -> str:
        return f"SeededRng({', '.join(repr(part) for part in (self._seed, *self._labels))})"

    def _fill(self, out: Bytes) -> None:
        if self._home != here():
            raise PrivetError(
                f"{self!r} was made in another process: drawing from it here would repeat that process's noise; "
                f"{self._instead}"
            )
        with self._lock:
            self._stream.fill(out)

    @property
    def _instead(self) -> str:
        return "give every process its own stream, with rng.child(worker_number) or the seed and labels"


def _key(seed: int, labels: tuple[int | str, ...]) -> bytes:
    """Distinct (seed, labels) hash distinct byte strings: each part carries its type and its length."""
    digest = hashlib.sha256(_DOMAIN)
    for part in (seed, *labels):
        if not isinstance(part, int | str) or isinstance(part, bool):
            raise InvalidInput("label", f"is a {type(part).__name__}", "give a string or a whole number")
        tag, text = ("int", str(int(part)).encode()) if isinstance(part, int) else ("str", part.encode())
        digest.update(f"|{tag}:{len(text)}:".encode() + text)
    return digest.digest()
