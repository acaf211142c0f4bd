"""`privet card`: keys, signatures, and folders that are no longer what was signed."""

from __future__ import annotations

import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from privet.ledger import Ledger
from privet.report import Charged, Public, shareable, write_run
from privet.report.card_json import to_json
from tests.cli.conftest import Run
from tests.report.signable import signable


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "digits"
    folder.mkdir()
    write_run(folder, signable())
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
    ledger = signable().ledger
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


def test_a_card_that_claims_less_is_not_signed(privet: Run, run: Path) -> None:
    """Fails when a card whose ε was edited is signed, shown or compared, or the message does not name the run."""
    text = (run / "card.json").read_text(encoding="utf-8")
    epsilon = signable().privacy.guarantee.value.epsilon
    lower, upper = f'"lower": {epsilon.lower!r}', f'"upper": {epsilon.upper!r}'
    edited = text.replace(lower, '"lower": 0.01').replace(upper, '"upper": 0.02')
    assert edited != text
    (run / "card.json").write_text(edited, encoding="utf-8")
    privet("card key signer.pem")
    for line in ("card sign digits --key signer.pem", "report show digits", "report compare digits"):
        done = privet(line)
        assert (done.code, done.out) == (2, "")
        assert "run is 'digits', of which card.json cannot be used: card claims ε ≤ 0.020 for the whole" in done.err
        assert len(done.err.splitlines()) == 1
    assert not (run / "signature.json").exists()


def test_a_page_of_another_version_is_renewed(privet: Run, run: Path) -> None:
    """Fails when a page that is not the card's is signed, or there is no way to sign after an upgrade."""
    with (run / "report.html").open("a", encoding="utf-8") as file:
        file.write("<!-- by an older version -->")
    privet("card key signer.pem")
    done = privet("card sign digits --key signer.pem")
    assert done.code == 2
    assert "report.html is not what this version makes of its card.json" in done.err
    assert privet("card sign digits --key signer.pem --renew").code == 0
    assert privet("card verify digits --key signer.pem.pub").code == 0


def test_a_run_against_its_ledger(privet: Run, run: Path, tmp_path: Path) -> None:
    """Fails when the ledger is not asked, or an answer of its own is not told."""
    card = shareable(signable())
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.create("digits", epsilon=9.0, delta=1e-3)
        with ledger.reserve("digits", card.privacy.event.value).drawing():
            pass
        entries = tuple(entry.id for entry in ledger.show("digits").entries)
        charged = Charged("digits", entries, ledger.head("digits"))
    (run / "card.json").write_text(to_json(replace(card, ledger=Public(charged))), encoding="utf-8")
    privet("card key signer.pem")
    assert privet("card sign digits --key signer.pem --renew").code == 0
    done = privet("card verify digits --ledger ledger.db")
    assert done.code == 0
    assert "charged: the ledger's entries are what the card says was done" in done.out
    assert privet("card verify digits --ledger ledger.db --json").json["charged"] is True
    with Ledger(tmp_path / "other.db") as ledger:
        ledger.create("digits", epsilon=9.0, delta=1e-3)
    done = privet("card verify digits --ledger other.db")
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith("not genuine: the ledger")


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
