"""What is missing is said all at once, in one line that ends with a command that can be run."""

from __future__ import annotations

import shlex

import pytest

from tests.cli.conftest import Run
from tests.cli.test_errors import refused

BATCHES, STEPS = "--sample-rate (or --batch-size and --population)", "--steps (or --epochs)"
DELTA = "--delta (Gaussian noise needs δ > 0)"
UNKNOWN = "what shall be found, --noise-multiplier or --steps (--epochs)"
EITHER = "--steps (to find the rate), or --sample-rate (to find the steps)"
CASES = {
    "account": ["--noise-multiplier", "--delta", BATCHES, STEPS],
    "account --delta 1e-5": ["--noise-multiplier", BATCHES, STEPS],
    "account --delta 1e-5 --noise-multiplier 1": [BATCHES, STEPS],
    "account --epochs 3 --batch-size 10": [
        "--noise-multiplier",
        "--delta",
        "--population (without it --batch-size says nothing)",
    ],
    "account --sampling with-replacement": [
        "--noise-multiplier",
        "--delta",
        "--batch-size and --population",
        STEPS,
    ],
    "account --sampling none": ["--noise-multiplier", "--delta", STEPS],
    "calibrate": ["--epsilon", DELTA, BATCHES, STEPS],
    "calibrate --epsilon 1 --steps 10": [DELTA, BATCHES],
    "calibrate --find rate": ["--epsilon", DELTA, "--noise-multiplier", "--steps"],
    "calibrate --find steps --delta 1e-5": ["--epsilon", "--noise-multiplier", BATCHES],
    "calibrate --epsilon 1 --noise-multiplier 1": [DELTA, EITHER],
    "calibrate --epsilon 1 --delta 1e-5 --noise-multiplier 1 --sampling shuffled": [BATCHES],
    "calibrate --epsilon 3 --delta 1e-5 --batch-size 200 --epochs 10 --noise-multiplier 1": [
        f"--population (without it --batch-size says nothing); and leave out {UNKNOWN}"
    ],
    "calibrate --epsilon 3 --delta 1e-5 --noise-multiplier 4 --batch-size 200": [
        "--population (without it --batch-size says nothing)"
    ],
    "calibrate --epsilon 3 --delta 1e-5 --population 60000 --noise-multiplier 4 --steps 100 "
    "--sampling without-replacement --neighbours replace": [f"--batch-size; and leave out {UNKNOWN}"],
    "calibrate --epsilon 3 --delta 1e-5 --noise-multiplier 4 --steps 100 --sampling shuffled": [
        f"{BATCHES}; and leave out {UNKNOWN}"
    ],
    "calibrate --mechanism gaussian": ["--epsilon", DELTA],
    "calibrate --mechanism laplace": ["--epsilon"],
    "ledger create": ["NAME", "--epsilon", "--delta"],
    "ledger create clinic --epsilon 1": ["--delta"],
    "ledger bind --note x": ["NAME", "--fingerprint-of"],
    "ledger show": ["NAME"],
    "ledger release": ["ID"],
}


@pytest.mark.parametrize("words", CASES)
def test_everything_that_is_missing_is_named_at_once(privet: Run, words: str) -> None:
    """Fails when only the first missing option is named, so that a newcomer learns the rest one error at a time, or
    when the example at the end of the line is not a whole command."""
    line = refused(privet(words))
    said, _, example = line.rstrip("\n").partition(", or try: ")
    command = " ".join(word for word in words.split() if word in ("account", "calibrate", "ledger", *LEDGER))
    assert said == f"privet: missing: {', '.join(CASES[words])}; see privet {command} --help"
    assert example.startswith(f"privet {command} ")
    if not command.startswith("ledger"):
        assert privet(example.removeprefix("privet ")).code == 0
    else:
        again = privet(shlex.join(shlex.split(example)[1:]))
        assert "missing" not in again.err


LEDGER = ("create", "bind", "show", "release")


def test_a_secret_that_was_typed_is_not_repeated(privet: Run) -> None:
    """Fails when the line is made of what was typed, a password in a URL among it."""
    assert "secret" not in refused(privet("ledger create --ledger postgresql://ada:secret@localhost/db"))
