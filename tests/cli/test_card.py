"""`privet card`: keys, signatures, and folders that are no longer what was signed."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from privet.report import write_run
from tests.cli.conftest import Run
from tests.report.trained import trained


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "digits"
    folder.mkdir()
    write_run(folder, trained())
    return folder


@pytest.fixture
def run(written: Path, tmp_path: Path) -> Path:
    """A run in the folder `digits` of the current one."""
    return Path(shutil.copytree(written, tmp_path / "digits"))


@pytest.fixture
def signed(privet: Run, run: Path) -> Path:
    assert privet("card key signer.pem").code == 0
    assert privet("card sign digits --key signer.pem").code == 0
    return run


def test_a_key_a_signature_and_a_check(privet: Run, run: Path, tmp_path: Path) -> None:
    """Fails when the way from a key to a check does not work, or the secret half can be read by others."""
    made = privet("card key signer.pem")
    assert made.code == 0
    assert stat.S_IMODE((tmp_path / "signer.pem").stat().st_mode) == 0o600
    key = made.out.split()[-1]
    done = privet("card sign digits --key signer.pem")
    assert done.code == 0
    assert done.out.startswith("digits is signed: card.json, report.html\n")
    ledger = trained().ledger
    assert ledger is not None
    assert f"head {ledger.value.head}" in done.out
    found = privet("card verify digits --key signer.pem.pub")
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith("genuine: ")
    assert f"key {key}" in found.out
    answer = privet("card verify digits --key signer.pem.pub --json").json
    assert answer == {
        "privet": 1,
        "command": "card verify",
        "genuine": True,
        "trusted": True,
        "key": key,
        "files": ["card.json", "report.html"],
        "head": ledger.value.head,
    }


def test_without_a_key_nobody_is_trusted(privet: Run, signed: Path) -> None:
    """Fails when a check without the signer's key sounds as if it said who signed."""
    done = privet("card verify digits")
    assert done.code == 0
    assert done.out.startswith("unchanged since somebody signed it; who, only --key can tell\n")
    assert "genuine" not in done.out
    assert privet("card verify digits --json").json["trusted"] is False


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("edit", "report.html was changed after it was signed"),
        ("drop", "card.json was signed and is missing"),
        ("add", "notes.txt is not covered by the signature"),
        ("unsign", "has no signature.json; sign it first: privet card sign"),
        ("other key", "was made with another key"),
    ],
)
def test_what_is_not_genuine_is_exit_code_1(privet: Run, signed: Path, change: str, words: str) -> None:
    """Fails when a folder that was changed passes, or fails with the exit code of a bad command."""
    if change == "edit":
        with (signed / "report.html").open("a") as file:
            file.write(" ")
    elif change == "drop":
        (signed / "card.json").unlink()
    elif change == "add":
        (signed / "notes.txt").write_text("mine")
    elif change == "unsign":
        (signed / "signature.json").unlink()
    else:
        privet("card key other.pem")
    key = "other.pem.pub" if change == "other key" else "signer.pem.pub"
    done = privet(f"card verify digits --key {key}")
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith("not genuine: ")
    assert words in done.out
    answer = privet(f"card verify digits --key {key} --json")
    assert answer.code == 1
    assert answer.json["genuine"] is False
    assert words in answer.json["problem"]


def test_internal_files_do_not_count(privet: Run, signed: Path) -> None:
    """Fails when a folder is not genuine any more once its internal part was taken out before sharing it."""
    (signed / "internal.html").unlink()
    (signed / "internal.json").unlink()
    assert privet("card verify digits --key signer.pem.pub").code == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("card key signer.pem", "the key cannot be written to 'signer.pem': file exists"),
        ("card key no/where.pem", "the key cannot be written to 'no/where.pem': no such file"),
        ("card sign digits --key nowhere.pem", "--key is 'nowhere.pem', which cannot be read: no such file"),
        ("card sign digits --key signer.pem.pub", "--key is 'signer.pem.pub', which "),
        ("card sign nowhere --key signer.pem", "run is 'nowhere', of which card.json cannot be read"),
        ("card sign digits", "missing: --key; see privet card sign --help, or try: privet card sign runs/"),
        ("card verify nowhere", "run is 'nowhere', which is no folder"),
        ("card verify digits --key signer.pem", "--key is 'signer.pem', which is no Ed25519 public key in PEM"),
    ],
)
def test_bad_input_is_one_line(privet: Run, signed: Path, line: str, words: str) -> None:
    """Fails when something that cannot be done ends in another way than one line and exit code 2."""
    done = privet(line)
    assert done.code == 2
    assert words in done.err
    assert len(done.err.splitlines()) == 1
