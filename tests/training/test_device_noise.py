"""Noise made on the device: the cipher is ChaCha20, bit for bit, and the numbers are normal. Run on the CPU alone."""

from __future__ import annotations

import os
import struct

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from scipy import stats

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng, default_rng
from privet.training import device_noise
from privet.training.device_noise import STRENGTH, blocks, fill

CPU = torch.device("cpu")
RFC_BLOCK = bytes.fromhex(
    "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
    "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
)
ZERO_BLOCK = bytes.fromhex(
    "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
)


def stream(key: bytes, nonce: bytes, first: int, count: int) -> bytes:
    return blocks(key, nonce, first, count, CPU).numpy().tobytes()


def openssl(key: bytes, nonce: bytes, first: int, count: int) -> bytes:
    cipher = Cipher(algorithms.ChaCha20(key, struct.pack("<I", first) + nonce), mode=None)
    return cipher.encryptor().update(bytes(64 * count))


def test_the_vectors_of_the_standard() -> None:
    """RFC 8439, section 2.3.2 and appendix A.1, vector 1. Catches a wrong rotation, order of words or final sum."""
    assert stream(bytes(range(32)), bytes.fromhex("000000090000004a00000000"), 1, 1) == RFC_BLOCK
    assert stream(bytes(32), bytes(12), 0, 1) == ZERO_BLOCK


@pytest.mark.parametrize("first", [0, 1, 2**31 - 3, 2**31, 2**32 - 7])
def test_many_blocks_under_random_keys(first: int) -> None:
    """Against OpenSSL. Catches counters that are the same for all blocks of a pass, or that go wrong at a sign."""
    for _ in range(3):
        key, nonce = os.urandom(32), os.urandom(12)
        assert stream(key, nonce, first, 7) == openssl(key, nonce, first, 7)


@pytest.mark.parametrize(("key", "nonce", "first", "count"), [(31, 12, 0, 1), (32, 8, 0, 1), (32, 12, 2**32 - 1, 2)])
def test_what_is_refused(key: int, nonce: int, first: int, count: int) -> None:
    with pytest.raises(InvalidInput):
        blocks(bytes(key), bytes(nonce), first, count, CPU)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_numbers_are_normal(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """In several passes, of an odd length. Catches a wrong deviation, numbers left over, and a pass that repeats the
    one before. False alarms: 1e-6 each, for deviation, shape and lag.
    """
    monkeypatch.setattr(device_noise, "_PASS", 1 << 8)
    tensor = torch.full((100_003,), torch.nan, dtype=dtype)
    fill(tensor, 2.5, SeededRng(4))
    found = tensor.double().numpy() / 2.5
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], len(found))
    assert low < np.square(found).sum() < high
    assert stats.kstest(found, "norm").pvalue > 1e-6
    a_pass = 2 * ((1 << 8) * 64 // (8 + (4 if dtype == torch.float32 else 8)))
    for lag in (1, a_pass // 2, a_pass):
        product = (found[lag:] * found[:-lag]).sum()
        assert abs(product) < stats.norm.isf(5e-7) * np.sqrt(len(found) - lag)


def test_no_two_calls_share_a_key() -> None:
    """Catches a key that is kept. A seeded stream gives the same again; the system's never does."""
    first, second, third, again = (torch.empty(64) for _ in range(4))
    seeded = SeededRng(1)
    fill(first, 1.0, seeded)
    fill(second, 1.0, seeded)
    fill(third, 1.0, default_rng())
    fill(again, 1.0, SeededRng(1))
    assert torch.equal(first, again)
    assert not set(first.tolist()) & set(second.tolist())
    assert not set(first.tolist()) & set(third.tolist())


@pytest.mark.parametrize("tensor", [torch.zeros(4, dtype=torch.float16), torch.zeros(4, 4).T[:2]])
def test_tensors_that_it_cannot_fill(tensor: torch.Tensor) -> None:
    with pytest.raises(InvalidInput, match=r"tensor is (of|not)"):
        fill(tensor, 1.0, SeededRng(1))


def test_nothing_and_no_noise() -> None:
    fill(torch.empty(0), 1.0, SeededRng(1))
    tensor = torch.ones(5)
    fill(tensor, 0.0, SeededRng(1))
    assert tensor.tolist() == [0.0] * 5
    assert "not run on a GPU" in STRENGTH
