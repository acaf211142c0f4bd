"""The two streams: where their bits come from, what they refuse, and what follows from bits alone.

Seeded tests give the same answer on every run; the false-alarm rate stated is the chance that a correct generator fails
under a seed picked at random. Tests of the secure stream do draw anew each time, and fail by chance once in 10^11.
"""

from __future__ import annotations

import copy
import hashlib
import operator
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from scipy import stats

from privet.core.errors import InvalidInput, PrivetError
from privet.core.random import Randomness, Rng, SecureRng, SeededRng, default_rng, secure
from privet.core.random.keystream import Bytes, Keystream

GENERATORS: list[Callable[[], Rng]] = [SecureRng, lambda: SeededRng(1)]


class Scripted(Rng):
    """A stream that says what the test wants, word by word, and then stops."""

    def __init__(self, words: Iterable[int]) -> None:
        self._words = iter(words)

    @property
    def kind(self) -> Randomness:
        return Randomness.SEEDED

    @property
    def _instead(self) -> str:
        return ""

    def _fill(self, out: Bytes) -> None:
        words = out.view("<u8")
        for i in range(len(words)):
            words[i] = next(self._words)


def test_the_keystream_is_aes_in_counter_mode() -> None:
    """Catches a wrong cipher, key length or counter start, and pieces that do not join: NIST's AES-256 of zeros."""
    whole = np.empty(200_000, dtype=np.uint8)
    Keystream(bytes(32)).fill(whole)
    assert whole[:16].tobytes().hex() == "dc95c078a2408989ad48a21492842087"
    block = Cipher(AES(bytes(32)), ECB()).encryptor().update((9_999).to_bytes(16, "big"))  # noqa: S305
    assert whole[16 * 9_999 : 16 * 10_000].tobytes() == block
    pieces, stream = [], Keystream(bytes(32))
    for size in (0, 1, 15, 16, 17, 65_535, 65_536, 65_551, 3_000):
        piece = np.empty(size, dtype=np.uint8)
        stream.fill(piece)
        pieces.append(piece)
    joined = np.concatenate(pieces)
    assert np.array_equal(joined, whole[: len(joined)])


def test_the_keystream_goes_on_after_64_gigabytes() -> None:
    """Catches a counter of 32 bits that starts again, and blocks that are left out where it carries over."""
    stream = Keystream(bytes(32))
    stream._left, stream._in_head = 0, False  # as after 2^32 blocks
    found = np.empty(160, dtype=np.uint8)
    stream.fill(found)
    blocks = b"".join((2**32 + i).to_bytes(16, "big") for i in range(10))
    assert found.tobytes() == Cipher(AES(bytes(32)), ECB()).encryptor().update(blocks)  # noqa: S305


@pytest.mark.parametrize("make", GENERATORS)
def test_bits_are_filled_in_place(make: Callable[[], Rng]) -> None:
    """Catches bytes that are left as they were, and memory that would be filled only in part or in a copy."""
    out = np.zeros(100_000, dtype=np.uint8)
    make().fill_bits(out)
    assert stats.chisquare(np.bincount(out, minlength=256)).pvalue > 1e-11
    for wrong in (np.zeros(4, dtype=np.int8), np.zeros((2, 2), dtype=np.uint8), np.zeros(8, dtype=np.uint8)[::2]):
        with pytest.raises(InvalidInput, match="out"):
            make().fill_bits(wrong)  # type: ignore[arg-type]
    assert SeededRng(1).bits(5) == bytes(_filled(SeededRng(1), 5))


def _filled(rng: Rng, size: int) -> Bytes:
    out = np.zeros(size, dtype=np.uint8)
    rng.fill_bits(out)
    return out


def test_a_seeded_stream_is_keyed_by_a_hash_of_its_name() -> None:
    """Catches a change of the derivation, which would silently change every seeded test in every project."""
    key = hashlib.sha256(b"privet seeded stream, version 1|int:2:-7|str:1:a|int:1:5").digest()
    block = Cipher(AES(key), ECB()).encryptor().update(bytes(16))  # noqa: S305
    assert SeededRng(-7, "a", 5).bits(16) == block
    assert SeededRng(0).bits(16).hex() == "2bc82dfbe6b2584d789dc2fc37bff15b"


def test_a_seeded_stream_replays_exactly() -> None:
    """Catches hidden state: a buffer, a clock, a global generator."""

    def draws(rng: SeededRng) -> list[bytes]:
        arrays = (rng.words(5), rng.uniform((2, 3)), rng.normal(7), rng.normal(9, dtype=np.float32), rng.below(10, 9))
        return [rng.bits(3), *(array.tobytes() for array in arrays)]

    assert draws(SeededRng(3)) == draws(SeededRng(3))
    assert draws(SeededRng(3)) != draws(SeededRng(4))


def test_labels_name_independent_streams() -> None:
    """Catches names that collide when glued together, and children that depend on what the parent drew.

    False-alarm rate of the correlations: 28 pairs at 6 deviations, 6e-8.
    """
    parent = SeededRng(3)
    before = parent.child("a").bits(32)
    parent.bits(1000)
    assert parent.child("a").bits(32) == before == SeededRng(3, "a").bits(32)
    assert parent.child("a").child("b").bits(32) == SeededRng(3, "a", "b").bits(32) != parent.child("b").bits(32)
    names: list[tuple[int | str, ...]] = [(), ("a", "b"), ("ab",), ("b", "a"), (1,), ("1",), ("a", ""), ("",)]
    streams = [SeededRng(3, *name).normal(40_000) for name in names]
    correlations = np.asarray(np.corrcoef(streams))[np.triu_indices(len(streams), 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(40_000)


def test_successive_calls_are_uncorrelated() -> None:
    """Catches a call that repeats part of an earlier one. False-alarm rate: 190 pairs at 6 deviations, 4e-7."""
    rng = SeededRng(5)
    calls = np.array([rng.normal(10_001) for _ in range(20)])
    correlations = np.asarray(np.corrcoef(calls))[np.triu_indices(len(calls), 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(calls.shape[1])
    words = np.concatenate([rng.words(n) for n in range(200)])
    assert len(np.unique(words)) == len(words)


@pytest.mark.parametrize("make", GENERATORS)
def test_bits_are_uniform(make: Callable[[], Rng]) -> None:
    """Catches stuck bits, a biased byte and repeated neighbours. False-alarm rate 4e-11: three tests at 1e-11."""
    data = np.frombuffer(make().bits(1 << 20), dtype=np.uint8)
    bits = np.unpackbits(data)
    ones = abs(int(bits.sum()) - bits.size / 2) / np.sqrt(bits.size / 4)
    turns = abs(np.count_nonzero(bits[1:] != bits[:-1]) - (bits.size - 1) / 2) / np.sqrt((bits.size - 1) / 4)
    assert max(ones, turns) < 6.9
    assert stats.chisquare(np.bincount(data, minlength=256)).pvalue > 1e-11


def test_the_secure_stream_never_repeats_a_seeded_one() -> None:
    """Catches a secure generator that falls back to a fixed key, and one that is a seeded one in disguise."""
    rng = default_rng()
    assert rng.kind is Randomness.SECURE
    assert SeededRng(0).kind is Randomness.SEEDED
    drawn = {SecureRng().bits(32) for _ in range(50)} | {rng.bits(32) for _ in range(50)}
    assert len(drawn) == 100
    assert drawn.isdisjoint({SeededRng(seed).bits(32) for seed in range(100)})
    others: list[object] = [SeededRng(1), SecureRng()]
    assert rng not in others
    assert SeededRng(1) not in others


def test_without_entropy_the_secure_stream_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a quiet fallback to something weaker when the operating system gives nothing."""

    def nothing(_: int) -> bytes:
        raise NotImplementedError("no source of entropy")

    monkeypatch.setattr(os, "urandom", nothing)
    with pytest.raises(NotImplementedError):
        SecureRng().bits(1)


def test_keys_are_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a key that is used for ever, and bytes that are lost or repeated where one key follows another."""
    keys = [bytes([i]) * 32 for i in range(4)]
    given = iter(keys)
    monkeypatch.setattr(os, "urandom", lambda _: next(given))
    monkeypatch.setattr(secure, "BYTES_PER_KEY", 64)
    rng = SecureRng()
    drawn = b"".join(rng.bits(n) for n in (10, 54, 1, 100, 64))
    expected = [np.empty(64, dtype=np.uint8) for _ in keys]
    for key, part in zip(keys, expected, strict=True):
        Keystream(key).fill(part)
    assert drawn == b"".join(part.tobytes() for part in expected)[: len(drawn)]


def test_global_seeds_change_nothing() -> None:
    """Catches any draw that goes through the generators that user code can seed."""

    def draw() -> tuple[bytes, bytes]:
        torch.manual_seed(0)
        np.random.seed(0)
        noise = torch.empty(64)
        default_rng().fill_normal(noise, 1.0)
        return noise.numpy().tobytes(), default_rng().normal(64).tobytes()

    first, second = draw(), draw()
    assert first[0] != second[0]
    assert first[1] != second[1]
    np.random.seed(0)
    expected = np.random.standard_normal()
    np.random.seed(0)
    default_rng().normal(10)
    assert np.random.standard_normal() == expected, "drawing must not advance the global generator either"


@pytest.mark.parametrize("make", GENERATORS)
def test_copies_are_refused(make: Callable[[], Rng]) -> None:
    """Catches a generator that reaches another process, or a deep-copied plan, together with its next bits."""
    rng = make()
    rng.bits(1)
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy, operator.methodcaller("__getstate__")):
        with pytest.raises(TypeError, match=r"would draw the same noise.*; (call|give) "):
            duplicate(rng)


def test_uniform_has_53_bits_and_stays_below_one() -> None:
    """Catches a rounding up to 1, missing low bits and a skewed law. False-alarm rate 1e-6."""
    assert Scripted([0, 2**64 - 1, 1 << 11]).uniform(3).tolist() == [0.0, 1 - 2.0**-53, 2.0**-53]
    drawn = SeededRng(2).uniform((500, 400))
    assert drawn.shape == (500, 400)
    assert stats.kstest(drawn.reshape(-1), "uniform").pvalue > 1e-6
    assert (drawn * 2.0**53 % 2 == 1).any(), "the last of the 53 bits is never set"


@pytest.mark.parametrize("bound", [2, 3, 7, 10, 100])
def test_below_is_uniform(bound: int) -> None:
    """Catches an off-by-one at either end and a favoured remainder. False-alarm rate 1e-6 for each bound."""
    counts = np.bincount(SeededRng(2).below(bound, 200_000), minlength=bound)
    assert len(counts) == bound
    assert stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.parametrize("bound", [3, 10, 2**62 + 1, 2**63 - 1])
def test_below_rejects_exactly_the_words_that_would_bias_it(bound: int) -> None:
    """Catches plain `word % bound`, and a rejection that starts one word early or late.

    The words kept are [2^64 mod bound, 2^64), a multiple of `bound` of them, so every remainder occurs equally often.
    """
    spare = 2**64 % bound
    assert (2**64 - spare) % bound == 0
    assert Scripted([spare - 1, 0, 2**64 - 1]).below(bound) == (2**64 - 1) % bound
    assert Scripted([spare]).below(bound) == spare % bound
    drawn = Scripted([2**64 - 1, spare - 1, spare, spare - 1, spare + 1]).below(bound, 3)
    assert drawn.tolist() == [(2**64 - 1) % bound, (spare + 1) % bound, spare % bound]


def test_below_takes_arrays_of_bounds() -> None:
    """Catches bounds that are mixed up between elements. False-alarm rate 1e-6 for the mean."""
    bounds = np.array([[1, 2, 5], [1000, 2**40, 2**63]], dtype=np.uint64)
    drawn = np.array([SeededRng(2, i).below(bounds) for i in range(2000)])
    assert drawn.dtype == np.int64
    assert drawn.shape == (2000, 2, 3)
    assert (drawn >= 0).all()
    assert (drawn.astype(np.uint64) < bounds).all()
    assert np.abs((drawn / bounds.astype(float)).mean(axis=0)[1] - 0.5).max() < 5 / np.sqrt(12 * 2000)
    assert SeededRng(2).below(bounds[0], (7, 3)).shape == (7, 3)
    assert isinstance(SeededRng(2).below(2**63), int)
    assert SeededRng(2).below(1) == 0


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("n", lambda rng: rng.bits(-1)),
        ("n", lambda rng: rng.words(2.5)),
        ("size", lambda rng: rng.uniform((3, -1))),
        ("size", lambda rng: rng.normal("3")),
        ("dtype", lambda rng: rng.normal(3, dtype=np.float16)),
        ("bound", lambda rng: rng.below(0)),
        ("bound", lambda rng: rng.below(2**63 + 1)),
        ("bound", lambda rng: rng.below(np.array([3, 0]))),
        ("bound", lambda rng: rng.below(np.array([3.5]))),
        ("bound", lambda rng: rng.below(2.5)),
        ("size", lambda rng: rng.below(np.array([3, 4]), 3)),
        ("seed", lambda rng: SeededRng(0.5)),  # type: ignore[arg-type]
        ("seed", lambda rng: SeededRng(None)),  # type: ignore[arg-type]
        ("label", lambda rng: rng.child(Fraction(1, 2))),
    ],
)
def test_bad_arguments_are_named(argument: str, call: Callable[[SeededRng], object]) -> None:
    """Catches an argument that is let through, or an error that does not say which one it was."""
    with pytest.raises(InvalidInput) as caught:
        call(SeededRng(1))
    assert caught.value.argument == argument


def test_a_constant_source_is_noticed() -> None:
    """Catches a loop of rejection that never ends when a source is stuck."""

    def stuck() -> Iterable[int]:
        while True:
            yield 0

    with pytest.raises(PrivetError, match="repeats itself"):
        Scripted(stuck()).below(3)


def test_both_generators_are_rngs() -> None:
    """Catches a method that drifts away from the protocol; mypy checks the signatures of these two lines."""
    generators: list[Rng] = [SecureRng(), SeededRng(1)]
    assert [rng.kind.value for rng in generators] == ["secure", "seeded"]


def test_the_kind_costs_no_import() -> None:
    """Catches a record that pays for NumPy, torch or a cipher because it names a kind of randomness."""
    code = (
        "import sys, privet.core.random as r; r.Randomness.SECURE; dir(r);"
        "print([m for m in ('numpy', 'torch', 'cryptography') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_torch_is_needed_only_for_tensors() -> None:
    """Catches a draw that quietly needs torch, which is an extra."""
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from privet.core.random import default_rng, discrete_gaussian\n"
        "rng = default_rng(); print(rng.normal(3).size, rng.below(1), discrete_gaussian(0.01, None, rng))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "3 0 0"
