"""Normal noise made where the sums are: ChaCha20 (RFC 8439) in torch's integer operations, then Box–Muller.

Noise for sums on a GPU would otherwise be drawn on the CPU and carried over. Here only a key of 256 bits is: each call
takes a fresh one from the run's stream, which the operating system keyed, so that there is no state to keep, to copy,
to fork or to replay, and a seeded stream gives the same numbers again. The transform is that of
`privet.training.noise`.

Tested against the RFC's vectors and OpenSSL, on the CPU; no GPU was at hand, so that there it has not been run.
"""

from __future__ import annotations

import math
import struct
from typing import Final

import torch
from torch import Tensor

from privet.core import InvalidInput, checked
from privet.core.random import Rng
from privet.training.noise import ANGLES, transform

__all__ = ["STRENGTH", "blocks", "fill"]

STRENGTH: Final = "ChaCha20 on the device, under a fresh 256-bit key for each call; not run on a GPU by its tests"
"""What the noise rests on, for those who read a report."""

_CONSTANTS: Final = struct.unpack("<4I", b"expand 32-byte k")
_KEY_BYTES, _NONCE_BYTES, _WORDS = 32, 12, 16
_ROUNDS: Final = 20
_MOST: Final = 1 << 32
"""Blocks under one key and nonce: the counter has 32 bits."""
_PASS: Final = 1 << 16
"""Blocks in one pass: 4 MB of random bits."""


def blocks(key: bytes, nonce: bytes, first: int, count: int, device: torch.device) -> Tensor:
    """The key stream's blocks `first`, …, `first + count - 1`: (count, 16) words of 32 bits (RFC 8439, section 2.3).

    >>> words = blocks(bytes(range(32)), bytes.fromhex("000000090000004a00000000"), 1, 1, torch.device("cpu"))
    >>> hex(int(words[0, 0]) % 2**32)
    '0xe4e7f110'
    """
    if len(key) != _KEY_BYTES or len(nonce) != _NONCE_BYTES:
        problem = f"has {len(key)} bytes, and the nonce {len(nonce)}"
        raise InvalidInput("key", problem, f"give {_KEY_BYTES} and {_NONCE_BYTES}")
    if not 0 <= first <= first + count <= _MOST:
        raise InvalidInput("count", "goes beyond the counter's 32 bits", "take another key")
    given = [*_CONSTANTS, *struct.unpack("<8I", key), 0, *struct.unpack("<3I", nonce)]
    start = torch.tensor([_signed(word) for word in given], dtype=torch.int32, device=device)
    state = start[:, None].repeat(1, count)
    state[12] = torch.arange(first, first + count, dtype=torch.int64, device=device).to(torch.int32)
    a, b, c, d = (each.clone() for each in state.view(4, 4, count))
    for turn in range(_ROUNDS):
        # Four quarter rounds at once: on the columns, and on the diagonals, which become columns when rows are rolled.
        steps = (0, 0, 0) if turn % 2 == 0 else (1, 2, 3)
        b, c, d = (each if not step else each.roll(-step, 0) for each, step in zip((b, c, d), steps, strict=True))
        a += b
        d = _rotated(d ^ a, 16)
        c += d
        b = _rotated(b ^ c, 12)
        a += b
        d = _rotated(d ^ a, 8)
        c += d
        b = _rotated(b ^ c, 7)
        b, c, d = (each if not step else each.roll(step, 0) for each, step in zip((b, c, d), steps, strict=True))
    return state.add_(torch.cat([a, b, c, d])).T.contiguous()


def fill(tensor: Tensor, std: float, rng: Rng) -> None:
    """Overwrite a contiguous float32 or float64 tensor, on whatever device, with normals of deviation `std`.

    They reach beyond 9σ and are independent, as far as anyone can tell who cannot tell ChaCha20 from randomness.
    """
    checked.nonnegative("std", std)
    if tensor.dtype not in ANGLES or not tensor.is_contiguous():
        problem = f"is of {tensor.dtype}" if tensor.dtype not in ANGLES else "is not contiguous"
        raise InvalidInput("tensor", problem, "give a contiguous one of float32 or float64")
    key, flat = rng.bits(_KEY_BYTES), tensor.detach().view(-1)
    turn = ANGLES[tensor.dtype]
    pairs_per_pass = _PASS * _WORDS * 4 // (8 + turn.itemsize)
    used = 0
    with torch.no_grad():
        for start in range(0, len(flat), 2 * pairs_per_pass):
            chunk = flat[start : start + 2 * pairs_per_pass]
            pairs = (len(chunk) + 1) // 2
            size = pairs * (8 + turn.itemsize)
            count = math.ceil(size / (4 * _WORDS))
            bits = blocks(key, bytes(_NONCE_BYTES), used, count, tensor.device).view(-1).view(torch.uint8)
            used += count
            radius, angle = bits[: 8 * pairs].view(torch.int64), bits[8 * pairs : size].view(turn)
            transform(radius, angle, std, chunk[:pairs], chunk[pairs:], chunk.new_empty(3, pairs))


def _rotated(words: Tensor, by: int) -> Tensor:
    """To the left; a shift to the right brings in copies of the sign, which are masked."""
    return (words << by) | ((words >> (32 - by)) & ((1 << by) - 1))


def _signed(word: int) -> int:
    return word - (1 << 32) if word >= 1 << 31 else word
