"""Whatever is asked wrongly: one line on stderr that says what to do, exit code 2, and nothing else."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import NoReturn

import pytest

from privet.cli import account as account_module
from privet.cli import console, main
from tests.cli.conftest import Done, Run

STEPS = "--sample-rate 0.1 --steps 10"
GOOD = f"account --noise-multiplier 1 --delta 1e-5 {STEPS}"
BAD = {
    # numbers
    f"account --noise-multiplier nan --delta 1e-5 {STEPS}": "--noise-multiplier is nan, which is not finite",
    f"account --noise-multiplier=-1 --delta 1e-5 {STEPS}": "--noise-multiplier is -1.0, which is negative",
    f"account --noise-multiplier inf --delta 1e-5 {STEPS}": "--noise-multiplier is inf",
    f"account --noise-multiplier 1 --delta 1 {STEPS}": "--delta is 1.0, which is not in [0, 1); use a value",
    f"account --noise-multiplier 1 --delta=-1e-5 {STEPS}": "--delta is -1e-05",
    f"account --noise-multiplier 1 --delta nan {STEPS}": "--delta is nan",
    f"account --noise-multiplier x --delta 1e-5 {STEPS}": "'x' is not a valid float; see: privet account --help",
    "account --noise-multiplier 1 --delta 1e-5 --sample-rate 1.5 --steps 1": "--sample-rate is 1.5, which is not in",
    "account --noise-multiplier 1 --delta 1e-5 --sample-rate 0 --steps 1": "--sample-rate is 0.0",
    "account --noise-multiplier 1 --delta 1e-5 --sample-rate 0.1 --steps 0": "--steps is 0, which is below 1",
    "account --noise-multiplier 1 --delta 1e-5 --sample-rate 0.1 --steps 1.5": "'1.5' is not a whole number; write 1",
    "account --noise-multiplier 1 --delta 1e-5 --sample-rate 0.1 --epochs nan": "--epochs is nan",
    "account --noise-multiplier 1 --delta 1e-5 --sample-rate 1e-300 --epochs 1e300": "--epochs ask for more than",
    f"account --noise-multiplier 1 --delta 1e-5 --sample-rate 0.1 --steps {10**30}": "--steps ask for more than",
    f"{GOOD} --records 0": "--records is 0, which is below 1",
    f"{GOOD} --records 3 --whose example": "--whose is example, and one example is one record, not 3; say whose",
    f"{GOOD} --population 0": "--population is 0",
    # what contradicts, and what is missing
    "account --noise-multiplier 1 --delta 1e-5 --steps 1": "missing: --sample-rate (or --batch-size and --pop",
    "account --noise-multiplier 1 --delta 1e-5 --sample-rate 0.1": "missing: --steps (or --epochs); see",
    f"{GOOD} --epochs 1": "--steps and --epochs say the same thing twice",
    f"{GOOD} --batch-size 1": "--sample-rate and --batch-size say the same thing twice",
    "account --noise-multiplier 1 --delta 1e-5 --batch-size 3 --steps 1": "missing: --population (without it",
    "account --noise-multiplier 1 --delta 1e-5 --batch-size 3 --population 2 --steps 1": "--batch-size is 3, above the",
    f"{GOOD} --sampling none": "--sample-rate has no place with --sampling none",
    f"{GOOD} --sampling with-replacement": "give --batch-size and --population",
    f"account --delta 1e-5 {STEPS}": "privet: missing: --noise-multiplier; see",
    # what no theorem covers
    f"{GOOD} --accountant gdp": "with the gdp accountant: use advanced, basic, pld, renyi",
    f"{GOOD} --sampling shuffled": "it can be priced with --neighbours zero-out or replace",
    "account --noise-multiplier 1 --delta 1e-5 --batch-size 3 --population 9 --steps 1 --sampling with-replacement": (
        "it can be priced with --neighbours zero-out or replace"
    ),
    # words
    f"{GOOD} --sampling lottery": "'lottery' is not one of 'poisson'",
    f"{GOOD} --neighbours both": "'both' is not one of 'add/remove'",
    f"{GOOD} --nosuch": "No such option",
    "nosuch": "No such command 'nosuch'; see: privet --help",
    "acount": "privet: No such command 'acount'. Did you mean 'account'? See: privet --help",
    f"{GOOD} surplus": "unexpected extra argument",
    # places
    f"{GOOD} --plot nowhere/page.html": "--plot is in 'nowhere', which is no folder; make the folder first",
    f"{GOOD} --plot page.png": "--plot is 'page.png', and the page is HTML; end the name in .html",
}


def refused(done: Done) -> str:
    """The one line of a refusal."""
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("privet: ")
    assert done.err.endswith("\n")
    assert done.err.count("\n") == 1
    return done.err


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_refused_in_one_line(privet: Run, words: str) -> None:
    """Fails when bad input is accepted, ends in a traceback, or gets a line that does not name the option."""
    assert BAD[words] in refused(privet(words))


def test_good_input_is_accepted(privet: Run) -> None:
    """Fails when the bad cases above would be refused for another reason than the one that they show."""
    assert privet(GOOD).code == 0


def test_a_page_never_replaces_something_else(privet: Run) -> None:
    """Fails when --plot overwrites a file that Privet did not write, or does not replace its own page."""
    Path("notes.html").write_text("<p>mine</p>")
    Path("folder.html").mkdir()
    assert "exists and is not a page of Privet's" in refused(privet(GOOD, "--plot notes.html"))
    assert "is a folder" in refused(privet(GOOD, "--plot folder.html"))
    assert Path("notes.html").read_text() == "<p>mine</p>"
    assert privet(GOOD, "--plot page.html").code == 0
    first = Path("page.html").read_text(encoding="utf-8")
    assert privet(GOOD, "--records 2 --plot page.html").code == 0
    assert Path("page.html").read_text(encoding="utf-8") != first
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["folder.html", "notes.html", "page.html"]


def test_a_full_disk_leaves_no_half_page(privet: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a page that cannot be written leaves a part of itself, or a traceback."""

    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert "--plot cannot be written: no space left on device" in refused(privet(GOOD, "--plot page.html"))
    assert list(Path.cwd().iterdir()) == []


def test_an_output_that_cannot_be_written(privet: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a full disk behind stdout ends in a traceback."""

    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(console, "line", full)
    assert "the output cannot be written: no space left on device" in refused(privet(GOOD))


def test_too_little_memory(privet: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a run that is too large for the machine ends in a traceback."""

    def huge(*_: object) -> NoReturn:
        raise MemoryError

    monkeypatch.setattr(account_module, "unit_of", huge)
    assert "use fewer steps" in refused(privet(GOOD))


def test_an_interruption_is_quiet(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Fails when Ctrl-C prints a traceback, or ends with the exit code of a success or of bad input."""

    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(account_module, "unit_of", interrupted)
    assert main(GOOD.split()) == 130
    shown = capsys.readouterr()
    assert (shown.out, shown.err.strip()) == ("", "")
