"""Which data set a run was attached to, told by a hash, so that a checkpoint goes on with the same rows."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from privet.training.data import Rows, spread

__all__ = ["Identity"]

_BYTES: Final = 1 << 28
"""So much is hashed at most, which takes a fraction of a second; of larger data sets, rows from all over."""
_PIECE: Final = 1 << 24
"""Bytes that are gathered at once."""


@dataclass(frozen=True, eq=False)
class Identity:
    """The rows of a run, and the users that they belong to. Nothing is read before `keyed` is asked for.

    Of tensors in memory and of lists the rows are compared, of other data sets only how many there are: their rows are
    made when they are read, and may be augmented at random.
    """

    rows: Rows
    users: Any = None

    def keyed(self, key: bytes) -> str:
        """A hash under a key, which tells neither the rows nor how many there are to those who cannot guess them."""
        return hmac.new(key, self._digest, hashlib.sha256).hexdigest()

    @cached_property
    def _digest(self) -> bytes:
        found = hashlib.sha256(f"{len(self.rows)} rows".encode())
        first = self.rows.stored([0]) if len(self.rows) else None
        if first is not None:
            size = max(1, sum(map(len, _told(first))))
            chosen, piece = spread(len(self.rows), max(1, _BYTES // size)), max(1, _PIECE // size)
            for start in range(0, len(chosen), piece):
                _add(found, self.rows.stored(chosen[start : start + piece]))
        if self.users is not None:
            owners = self.users.tolist() if hasattr(self.users, "tolist") else self.users  # a tensor's are numbers then
            _add(found, [f"{owner}" for owner in owners])
        return found.digest()


def _add(found: Any, value: Any) -> None:
    for piece in _told(value):
        found.update(len(piece).to_bytes(8, "little"))
        found.update(piece)


def _told(value: Any) -> Iterator[bytes]:
    """What is there, as bytes: tensors, numbers and texts, in tuples, lists and dicts; of anything else, its class."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield repr(key).encode()
            yield from _told(each)
    elif isinstance(value, (tuple, list)):
        yield f"{len(value)} of".encode()
        for each in value:
            yield from _told(each)
    elif isinstance(value, Tensor):
        plain = value.detach().cpu().contiguous()
        yield f"{plain.dtype} {tuple(plain.shape)}".encode()
        yield plain.reshape(-1).view(torch.uint8).numpy().tobytes()
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        yield f"{value.dtype} {value.shape}".encode()
        yield value.tobytes()
    elif isinstance(value, np.ndarray):
        yield from _told(value.tolist())
    else:
        plain_value = isinstance(value, (str, bytes, bool, int, float, np.generic))
        yield (repr(value) if plain_value else type(value).__name__).encode()
