"""Signatures of a run's folder: any changed byte is found, and keys are kept from others."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from privet.core.disclosure import Public
from privet.core.errors import InvalidInput
from privet.core.release import Release
from privet.report import signing
from privet.report.card_json import to_json
from privet.report.signing import SIGNATURE, NotGenuine, make_key, sign, verify
from privet.report.training_card import TrainingCard, shareable
from privet.report.training_page import report_page
from tests.report.signable import SEALED, signable
from tests.report.trained import curves, trained

PAGE = "<!DOCTYPE html><title>page</title>"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "signer.pem"
    make_key(path)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run's folder with a card, its page, a small stand-in for its model, and things that are not shared."""
    monkeypatch.setattr(signing, "curves_of", lambda privacy, progress, whole: curves())  # of the same card, once
    run = tmp_path / "run"
    (run / "model").mkdir(parents=True)
    (run / "card.json").write_text(to_json(shareable(signable())), encoding="utf-8")
    (run / "report.html").write_text(report_page(shareable(signable()), curves()), encoding="utf-8")
    (run / "model" / "weights.safetensors").write_bytes(bytes(range(200)))
    (run / "internal.html").write_text("internal", encoding="utf-8")
    (run / ".checkpoint").write_text("not shared", encoding="utf-8")
    return run


def flipped(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(bytes(data))


def test_a_signed_folder_is_genuine(folder: Path, key: Path) -> None:
    """Fails when an honest folder is refused, internal files are signed, or the chain's head is not inside."""
    signed = sign(folder, key)
    assert signed.files == ("card.json", "model/weights.safetensors", "report.html")
    ledger = trained().ledger
    assert ledger is not None
    assert signed.head == ledger.value.head
    assert json.loads((folder / SIGNATURE).read_text())["head"] == ledger.value.head
    assert verify(folder, f"{key}.pub") == signed
    assert not verify(folder).trusted
    (folder / "internal.html").write_text("changed", encoding="utf-8")
    assert verify(folder, f"{key}.pub") == signed


def test_any_changed_byte_is_found(folder: Path, key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a change of any byte of a signed file, or of the signature itself, goes unseen."""
    (folder / "report.html").write_text(PAGE, encoding="utf-8")  # a small one, which is quick to hash
    with monkeypatch.context() as careless:
        careless.setattr(signing, "_require_page", lambda *_: None)
        sign(folder, key)
    for name in ("card.json", "report.html", "model/weights.safetensors", SIGNATURE):
        path = folder / name
        size = path.stat().st_size
        for place in range(0, size, max(1, size // 300)):
            flipped(path, place)
            with pytest.raises(NotGenuine) as caught:
                verify(folder)
            assert "\n" not in str(caught.value)
            flipped(path, place)
    with pytest.raises(NotGenuine, match="promises something else"):
        verify(folder, f"{key}.pub")  # all bytes are as they were signed; what they say is another matter


def test_the_signature_has_one_spelling(folder: Path, key: Path) -> None:
    """Fails when the signature's file can be changed in a way that means the same: blanks, order, a key given twice."""
    sign(folder, key)
    path = folder / SIGNATURE
    text = path.read_text()
    said = json.loads(text)
    again = (text + "\n", text.replace(": ", ":"), json.dumps(said), text.replace("{", '{\n "head": "x",', 1))
    for other in (*again, text.replace(said["signature"], said["signature"].upper())):
        assert other != text
        path.write_text(other)
        with pytest.raises(NotGenuine, match="is not as it was written"):
            verify(folder)


def test_files_that_come_or_go_are_found(folder: Path, key: Path) -> None:
    """Fails when a file can be added to, taken from or linked into a signed folder."""
    sign(folder, key)
    extra = folder / "second.html"
    extra.write_text("more", encoding="utf-8")
    with pytest.raises(NotGenuine, match=r"second.html is not covered by the signature"):
        verify(folder)
    extra.unlink()
    extra.symlink_to(folder / "report.html")
    with pytest.raises(NotGenuine, match=r"second.html is a link"):
        verify(folder)
    extra.unlink()
    (folder / "report.html").unlink()
    with pytest.raises(NotGenuine, match=r"report.html was signed and is missing"):
        verify(folder)
    (folder / SIGNATURE).unlink()
    with pytest.raises(NotGenuine, match=r"has no signature.json"):
        verify(folder)


def test_another_signer_is_told(folder: Path, key: Path, tmp_path: Path) -> None:
    """Fails when somebody who changed the folder and signed it anew passes for the first signer."""
    sign(folder, key)
    other = tmp_path / "other.pem"
    make_key(other)
    (folder / "model" / "weights.safetensors").write_bytes(b"changed")
    sign(folder, other)
    assert not verify(folder).trusted
    with pytest.raises(NotGenuine, match="made with another key"):
        verify(folder, f"{key}.pub")


def test_a_signature_of_another_folder_does_not_fit(folder: Path, key: Path, tmp_path: Path) -> None:
    """Fails when a valid signature can be moved to files that it was not made for."""
    second = tmp_path / "second"
    shutil.copytree(folder, second)
    (second / "model" / "weights.safetensors").write_bytes(b"other weights")
    sign(folder, key)
    shutil.copy(folder / SIGNATURE, second / SIGNATURE)
    with pytest.raises(NotGenuine, match=r"weights.safetensors was changed"):
        verify(second, f"{key}.pub")


def rewritten(folder: Path, **changes: object) -> None:
    """Write `changes` into signature.json in its one spelling, and keep the rest, the signature included."""
    path = folder / SIGNATURE
    path.write_text(signing._text(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("trusted", [False, True])
def test_hashes_are_not_updated_without_the_secret_key(folder: Path, key: Path, tmp_path: Path, trusted: bool) -> None:
    """Catches a verification that compares hashes and never the signature over them.

    Every forgery below is consistent: the files, their hashes, the chain head and the card agree with each other.
    """
    sign(folder, key)
    public = f"{key}.pub" if trusted else None
    genuine = json.loads((folder / SIGNATURE).read_text())

    def refused() -> None:
        with pytest.raises(NotGenuine, match="does not hold: its signature is not over what it says"):
            verify(folder, public)

    weights = folder / "model" / "weights.safetensors"
    weights.write_bytes(b"other weights")
    rewritten(folder, files=signing._hashes(folder))
    refused()
    weights.write_bytes(bytes(range(200)))
    rewritten(folder, files=genuine["files"])
    assert verify(folder, public).files == tuple(genuine["files"])

    (folder / "second.html").write_text("a file that nobody signed", encoding="utf-8")
    rewritten(folder, files=signing._hashes(folder))
    refused()
    (folder / "second.html").unlink()

    (folder / "report.html").rename(tmp_path / "report.html")
    rewritten(folder, files=signing._hashes(folder))
    refused()
    (tmp_path / "report.html").rename(folder / "report.html")

    rewritten(folder, **genuine)
    assert verify(folder, public).head == genuine["head"]


def test_a_signature_of_another_key_is_refused_under_the_name_of_the_signer(
    folder: Path, key: Path, tmp_path: Path
) -> None:
    """Catches a verification against another key than the one that it names, or against none."""
    sign(folder, key)
    name = json.loads((folder / SIGNATURE).read_text())["key"]
    other = tmp_path / "other.pem"
    make_key(other)
    (folder / "model" / "weights.safetensors").write_bytes(b"other weights")
    sign(folder, other)
    rewritten(folder, key=name)
    for public in (None, f"{key}.pub"):
        with pytest.raises(NotGenuine, match="does not hold"):
            verify(folder, public)


def test_the_chain_head_is_that_of_the_card(folder: Path, key: Path) -> None:
    """Catches a signature, valid in itself, that vouches for another chain head than the card that it covers."""
    sign(folder, key)
    said = json.loads((folder / SIGNATURE).read_text())
    del said["signature"]
    said["head"] = "0" * 64
    rewritten(folder, **said, signature=signing._secret(key).sign(signing._message(said)).hex())
    with pytest.raises(NotGenuine, match="another chain head"):
        verify(folder, f"{key}.pub")


def test_keys_are_for_their_owner(folder: Path, key: Path, tmp_path: Path) -> None:
    """Fails when a secret key is written for others to read, taken when they can, or overwritten."""
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.read_text().startswith("-----BEGIN PRIVATE KEY-----")
    before = key.read_bytes()
    with pytest.raises(InvalidInput, match="cannot be written"):
        make_key(key)
    assert key.read_bytes() == before
    key.chmod(0o640)
    with pytest.raises(InvalidInput, match="others than its owner can read"):
        sign(folder, key)
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("no key")
    nonsense.chmod(0o600)
    for wrong in (nonsense, tmp_path / "absent.pem"):
        with pytest.raises(InvalidInput, match="key is"):
            sign(folder, wrong)
    key.chmod(0o600)
    sign(folder, key)
    with pytest.raises(InvalidInput, match="no Ed25519 public key"):
        verify(folder, nonsense)


def test_only_a_run_is_signed(key: Path, tmp_path: Path) -> None:
    """Fails when a folder without a card, or with a damaged one, gets a signature."""
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InvalidInput, match=r"card.json cannot be read"):
        sign(empty, key)
    (empty / "card.json").write_text("{}")
    with pytest.raises(InvalidInput, match="version"):
        sign(empty, key)
    assert not (empty / SIGNATURE).exists()


def carded(folder: Path, card: TrainingCard) -> None:
    (folder / "card.json").write_text(to_json(card), encoding="utf-8")
    (folder / "report.html").write_text(report_page(card, curves()), encoding="utf-8")


def refused(folder: Path, key: Path, monkeypatch: pytest.MonkeyPatch, problem: str) -> None:
    """Neither signed, nor genuine where somebody signed it in spite of that."""
    with pytest.raises(InvalidInput, match=problem):
        sign(folder, key, renew=True)
    assert not (folder / SIGNATURE).exists()
    with monkeypatch.context() as careless:
        careless.setattr(signing, "_require_sources", lambda card: None)
        careless.setattr(signing, "_require_same_schema", lambda folder, card: None)
        sign(folder, key)
    with pytest.raises(NotGenuine, match=f"{problem}.*, whoever signed it"):
        verify(folder, f"{key}.pub")


def described(folder: Path, schema: str | None, shape: list[int] | None = None) -> None:
    (folder / "model.json").write_text(json.dumps({"privet-model": 1, "schema": schema, "shape": shape}))


WITHOUT_NAME = re.sub(r"source = .*", 'source = "domain limit"', SEALED, count=1)
WITHOUT_SOURCE = re.sub(r"source = .*\n", "", SEALED, count=1)
OTHER_BOUNDS = SEALED.replace("high = 16", "high = 11.52")
IN_FUTURE = SEALED.replace("2026-11-18", "2999-01-01")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (WITHOUT_SOURCE, "schema without a source for the bounds or values of 'ink"),
        (WITHOUT_NAME, "column 'ink .* names nobody who vouches for its source"),
        (OTHER_BOUNDS, "column 'ink .* was changed after somebody vouched for it"),
        (IN_FUTURE, "column 'ink .* is vouched for on 2999-01-01, which is in the future"),
    ],
    ids=["source", "name", "bounds", "date"],
)
def test_sign_needs_a_schema_that_somebody_vouches_for(
    folder: Path, key: Path, monkeypatch: pytest.MonkeyPatch, text: str, problem: str
) -> None:
    """Fails when a card that takes bounds for public is signed, or passes for genuine, although nobody vouches for
    them as they stand there."""
    assert text != SEALED
    carded(folder, shareable(signable(text)))
    refused(folder, key, monkeypatch, problem)


def test_sign_needs_a_guarantee_that_states_its_sources(
    folder: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a card whose guarantee hides on whose word it rests is signed, or passes for genuine."""
    unsourced = re.sub(r"source = .*\n", "", SEALED)
    carded(folder, shareable(signable(SEALED, assumes=unsourced)))
    refused(folder, key, monkeypatch, "does not state what it assumes about its schema")


def test_sign_compares_the_schema_with_that_of_the_model(
    folder: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when the schema of a table can be removed from a card, or replaced by another for which somebody vouches,
    and when a model in another folder than a run's, or one of pictures, is refused."""
    sources = re.sub(r"source = .*\n", "", SEALED)
    for text in (SEALED, sources):
        described(folder, text)
        sign(folder, key)
        verify(folder, f"{key}.pub")
        (folder / SIGNATURE).unlink()
    described(folder, SEALED.replace("high = 16", "high = 11"))
    refused(folder, key, monkeypatch, "has another schema than model.json")
    (folder / SIGNATURE).unlink()
    carded(folder, replace(shareable(signable()), schema=None))
    described(folder, SEALED)
    refused(folder, key, monkeypatch, "has another schema than model.json")
    (folder / SIGNATURE).unlink()
    described(folder, None)
    refused(folder, key, monkeypatch, "has another schema than model.json")
    (folder / SIGNATURE).unlink()
    described(folder, None, [8, 8])
    sign(folder, key)
    verify(folder, f"{key}.pub")
    (folder / SIGNATURE).unlink()
    (folder / "model.json").unlink()
    (folder / "model.safetensors").write_bytes(b"weights")
    refused(folder, key, monkeypatch, "model.json that cannot be read")


def test_sign_takes_a_schema_that_the_run_learned(folder: Path, key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a schema that was released by the run needs somebody who vouches for it, or bounds of a file pass for
    released ones."""
    score = next(each for each in shareable(signable()).scores if isinstance(each, Release))
    learned = re.sub(r"source = .*", 'source = "learned under the budget"', SEALED)
    carded(folder, replace(shareable(signable(learned)), schema=score.map(lambda _: learned)))
    sign(folder, key)
    verify(folder, f"{key}.pub")
    (folder / SIGNATURE).unlink()
    carded(folder, replace(shareable(signable()), schema=score.map(lambda _: SEALED)))
    refused(folder, key, monkeypatch, "has a learned schema with another source than the budget")


def test_sign_takes_a_schema_that_pate_read_from_public_rows(
    folder: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when PATE needs a name for bounds of its public rows, or another method does not."""
    text = re.sub(r"source = .*", 'source = "public data"', SEALED, count=1)
    text = re.sub(r"source = \{.*", 'source = "domain limit"', text)
    card = shareable(signable(text))
    told = replace(card.privacy, conditions=Public(("The schema was read from the public rows.",)))
    carded(folder, replace(card, privacy=told, method=Public("PATE")))
    sign(folder, key)
    verify(folder, f"{key}.pub")
    (folder / SIGNATURE).unlink()
    for other in (replace(card, privacy=told), replace(card, method=Public("PATE"))):
        carded(folder, other)
        refused(folder, key, monkeypatch, "names nobody who vouches for its source")
        (folder / SIGNATURE).unlink()
