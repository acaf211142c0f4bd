"""Hundreds of damaged ledgers: every command says one clear line or shows what it can; `verify` is never deceived."""

from __future__ import annotations

import contextlib
import random
import re
import secrets
import sqlite3
from pathlib import Path

import pytest

from privet.core.event import Gaussian, Laplace, Repeated
from privet.ledger import Ledger, fingerprint_of
from tests.cli.conftest import Run

CASES, EACH = 12, 20
"""Twelve tests with twenty places each."""
TABLES = ("privet_ledger", "privet_budgets", "privet_chain", "privet_entries", "privet_fingerprints")
WORDS = re.compile(rb"patients|reserved|committed|drawing|clinic|privet_|epsilon|sums|ward|version|salt|CREATE")
COMMANDS = (
    "ledger list",
    "ledger show clinic",
    "ledger show ward --json",
    "ledger release 0000000000000007",
    "ledger bind ward --fingerprint-of data.csv --note new",
    "ledger create clinic --epsilon 1 --delta 1e-6",
    "ledger create school --epsilon 1 --delta 1e-6",
)


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch, privet: Run) -> bytes:
    """The bytes of a good ledger; ids are counted, so that only times differ from run to run."""
    numbers = iter(range(1, 1000))
    monkeypatch.setattr(secrets, "token_hex", lambda size: f"{next(numbers):0{2 * size}x}")
    Path("data.csv").write_bytes(b"new rows")
    with Ledger("good.db") as ledger:
        ledger.create("clinic", epsilon=3.0, delta=1e-6)
        for age in (50, 60, 70):
            with ledger.reserve("clinic", Laplace(float(age)), purpose=f"patients over {age}").drawing():
                pass
        ledger.reserve("clinic", Laplace(100.0), purpose="never").abort()
        assert ledger.reserve("clinic", Laplace(100.0)).id == "0000000000000007"
        rows = fingerprint_of(b"rows")
        ledger.create("ward", epsilon=1.0, delta=1e-6, fingerprint=rows)
        ledger.reserve("ward", Repeated(Gaussian(100.0), 3), fingerprint=rows).draw()
    return Path("good.db").read_bytes()


def contents(path: str) -> dict[str, list[str]]:
    """Every row of every table, as bytes, by a reader that knows nothing of ledgers."""
    with contextlib.closing(sqlite3.connect(path)) as raw:
        raw.text_factory = bytes
        return {name: sorted(map(repr, raw.execute(f"SELECT * FROM {name} NOT INDEXED"))) for name in TABLES}  # noqa: S608


def damaged(whole: bytes, rng: random.Random) -> bytes:
    """One kind of damage: a bit, a byte, a run of bytes, several bytes, a piece from elsewhere, or a byte of a word."""
    data, at = bytearray(whole), rng.randrange(len(whole))
    match rng.randrange(6):
        case 0:
            data[at] ^= 1 << rng.randrange(8)
        case 1:
            data[at] = rng.randrange(256)
        case 2:
            run = rng.choice((2, 4, 8, 50, 200))
            data[at : at + run] = rng.randbytes(run)
        case 3:
            for place in rng.sample(range(len(whole)), 10):
                data[place] = rng.randrange(256)
        case 4:
            run, other = rng.choice((1, 16, 300, 4096)), rng.randrange(len(whole))
            data[at : at + run] = data[other : other + run]
        case _:
            words = [found.start() for found in WORDS.finditer(whole)]
            data[rng.choice(words) + rng.randrange(4)] = rng.choice((0x80, 0xFF, 0x00, 0x1B, rng.randrange(256)))
    return bytes(data[: len(whole)])


@pytest.mark.parametrize("case", range(CASES))
def test_no_damage_ends_in_an_internal_error_or_a_wrong_verdict(privet: Run, whole: bytes, case: int) -> None:
    """Fails when a damaged file ends a command with anything but 0, 2 and one line, or 1 from `verify`; or when it says
    that a ledger is intact in which any row of any table differs."""
    good = contents("good.db")
    for turn in range(EACH):
        rng = random.Random(1000 * case + turn)
        data = damaged(whole, rng)
        for words in ("ledger verify", rng.choice(COMMANDS)):
            Path("bad.db").write_bytes(data)
            done = privet(words, "--ledger bad.db --wait 0.5")
            allowed = (0, 1, 2) if words == "ledger verify" else (0, 2)
            assert done.code in allowed, (case, turn, words, done)
            if done.code == 2:
                assert re.fullmatch(r"privet: [^\n]+\n", done.err), (case, turn, words, done)
                assert "internal" not in done.err
            else:
                assert done.err == ""
            if words == "ledger verify" and done.code == 0:
                assert contents("bad.db") == good, (case, turn)


def test_good_bytes_are_good(privet: Run, whole: bytes) -> None:
    """Fails when the cases above would be refused for another reason than their damage."""
    for words in ("ledger verify", *COMMANDS):
        Path("bad.db").write_bytes(whole)
        assert privet(words, "--ledger bad.db").code == (2 if words == COMMANDS[5] else 0)
