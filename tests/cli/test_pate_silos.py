"""Silos that vote, each by itself, and a centre that adds the noise: whose votes are counted, and what is refused."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privet.core.unit import Whose
from privet.data import Identifier, Number, Schema, Table
from privet.report import load
from privet.runs.pate.vote_file import VoteFile, _sum, people_hashes, silo_name
from tests.cli.conftest import Run
from tests.cli.test_train import done, refused
from tests.cli.training import SCHEMA

pytest.importorskip("torch")
pytest.importorskip("polars")

ASK = "pate patients.csv --public public/patients.csv --schema schema.toml --teachers 40 --epsilon 4 --delta 1e-3"
LABELS = f"{ASK} --student supervised"
QUICK = ASK.replace("--epsilon 4", "--questions 30 --noise 20")
"""Without a search for the noise."""


def _silos(run: Run, count: int, extra: str = "") -> list[str]:
    """Each silo's rows are of people of its own; one teacher each but for the first, which has three."""
    text = Path("patients.csv").read_text().splitlines()
    Path("people.key").write_text("0123456789abcdef0123\n")
    schema = SCHEMA.replace("rows = 600\n", 'user = "patient"\nmost_rows_per_user = 3\n')
    Path("user.toml").write_text(schema)
    files = []
    for place in range(count):
        own = text[1 + 40 * place : 41 + 40 * place]
        Path(f"silo{place}.csv").write_text("\n".join([text[0], *own]) + "\n")
        words = f"pate vote silo{place}.csv --public public/patients.csv --schema user.toml --teachers"
        done(run(f"{words} {3 if not place else 1} {extra} --out {place}.votes"))
        files.append(f"{place}.votes")
    return files


def test_silos_vote_and_the_centre_adds_the_noise(clinic: Run) -> None:
    """Fails when teachers of all silos are not all counted, a file of votes can be read by others, a person in two
    silos is not noticed, or votes on other rows or for other labels pass."""
    files = _silos(clinic, 3, "--people-key people.key")
    assert all(Path(each).stat().st_mode & 0o777 == 0o600 for each in files)
    words = "--public public/patients.csv --schema user.toml --epsilon 8 --delta 1e-3"
    done(clinic(f"pate aggregate {' '.join(files)} {words} --test test/patients.csv --out run"))
    card = load(Path("run"))
    assert card.teachers is not None
    assert card.teachers.value == 5
    told = card.privacy.conditions.value
    assert any("trusted" in each for each in told)
    assert any("which was checked" in each for each in told)
    assert card.privacy.guarantee.value.unit.whose is Whose.USER
    second = "--schema user.toml --people-key people.key --teachers 2 --out again.votes"
    done(clinic(f"pate vote silo0.csv --public public/patients.csv {second}"))
    assert "two votes on the same rows" in refused(clinic(f"pate aggregate 0.votes again.votes {words} --out other"))
    assert silo_name(None, b"rows") != silo_name(None, b"rows")  # or the centre could guess rows by their hash
    Path("silo0.csv").write_text(Path("silo0.csv").read_text() + "p20,40,north,no\n")  # of somebody in the second silo
    Path("0.votes").unlink()
    again = "--schema user.toml --people-key people.key --out 0.votes"
    done(clinic(f"pate vote silo0.csv --public public/patients.csv {again}"))
    assert "shares a user with another" in refused(clinic(f"pate aggregate {' '.join(files)} {words} --out other"))
    other = words.replace("public/patients.csv", "test/patients.csv")
    assert "about other public rows" in refused(clinic(f"pate aggregate {' '.join(files)} {other} --out other"))
    Path("other.key").write_text("another-secret-of-another-silo\n")
    Path("1.votes").unlink()
    other_key = "--schema user.toml --people-key other.key --out 1.votes"
    done(clinic(f"pate vote silo1.csv --public public/patients.csv {other_key}"))
    assert "different --people-key" in refused(clinic(f"pate aggregate 1.votes 2.votes {words} --out other"))
    Path("1.votes").unlink()
    plain = "--schema user.toml --out 1.votes"
    done(clinic(f"pate vote silo1.csv --public public/patients.csv {plain}"))
    done(clinic(f"pate aggregate 1.votes 2.votes {words} --out unchecked"))
    assert any("was not checked" in each for each in load(Path("unchecked")).privacy.conditions.value)
    Path("1.votes").unlink()
    done(clinic("pate vote silo1.csv --public public/patients.csv --schema schema.toml --teachers 2 --out 1.votes"))
    assert "may be with several teachers" in refused(clinic(f"pate aggregate 1.votes 2.votes {words} --out other"))
    turned = SCHEMA.replace('["no", "yes"]', '["yes", "no"]')
    Path("user.toml").write_text(turned)
    assert "whose labels are no, yes" in refused(clinic(f"pate aggregate {' '.join(files)} {words} --out other"))
    assert not Path("other").exists()


def test_a_centre_that_was_stopped_goes_on_with_the_same_votes(clinic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when another file of votes can take the place of one after the charge."""
    from privet.runs.pate import student

    files = _silos(clinic, 3)
    words = f"{' '.join(files)} --public public/patients.csv --schema user.toml --epsilon 8 --delta 1e-3 --out run"

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    done(clinic("ledger create clinic --epsilon 9 --delta 2e-3 --whose user"))
    with monkeypatch.context() as patch:
        patch.setattr(student, "train_student", stop)
        assert clinic(f"pate aggregate {words} --budget clinic").code == 130
    kept = Path("2.votes").read_bytes()
    Path("2.votes").unlink()
    done(clinic("pate vote patients.csv --public public/patients.csv --schema user.toml --out 2.votes"))
    assert "the data changed" in refused(clinic("pate aggregate --resume --out run"))
    Path("2.votes").write_bytes(kept)
    done(clinic("pate aggregate --resume --out run"))


def _damaged(path: str, **changed: object) -> None:
    said = json.loads(Path("0.votes").read_text()) | changed
    del said["sum"]
    Path(path).write_text(json.dumps(said | {"sum": _sum(said)}))


def test_people_are_hashed_by_the_key_and_the_column() -> None:
    """Fails when anybody could hash a list of names, or two columns of numbers pass for the same people; and when a
    silo without people is refused, which one person could decide."""
    schema = Schema((Identifier("who"), Number("age", 0, 9)), user="who", most_rows_per_user=1)
    keys = np.arange(3, dtype=np.uint64)
    table = Table(np.zeros((3, 1), np.float32), None, schema, np.arange(3), keys)
    other = replace(table, schema=replace(schema, columns=(Identifier("visit"), *schema.columns[1:]), user="visit"))
    hashed = [people_hashes(table, b"one"), people_hashes(table, b"two"), people_hashes(other, b"one")]
    assert people_hashes(table, b"one") == hashed[0]
    assert not hashed[0] & hashed[1]
    assert not hashed[0] & hashed[2]
    place = Path("nobody.votes")
    VoteFile(np.zeros((2, 2), np.int32), ("a", "b"), "about", "id", "who", frozenset(), "key").write(place)
    assert VoteFile.read(place).people == frozenset()
    place.unlink()


def test_damaged_votes_are_one_line(clinic: Run) -> None:
    """Fails when votes that are cut, not whole numbers of one for each teacher and row, or for no known label are
    counted, or end in a traceback."""
    files = _silos(clinic, 2)
    words = "--public public/patients.csv --schema user.toml --epsilon 8 --delta 1e-3 --out run"
    rows = json.loads(Path("1.votes").read_text())["rows"]
    few, wrong = np.zeros(rows - 1, "<u2"), np.full(rows, 7, "<u2")
    for changed, said in (
        ({"votes": base64.b64encode(few.tobytes()).decode()}, "does not hold one vote of each"),
        ({"votes": base64.b64encode(wrong.tobytes()).decode(), "teachers": 1}, "a vote for no known label"),
        ({"votes": "0.5"}, "is damaged"),
        ({"teachers": 2.5}, "has no rows or no teachers"),
        ({"privet-votes": 9}, "of another version"),
        ({"rows": 3 * rows, "teachers": 1}, f"with votes on {3 * rows} rows"),
        ({"key": "x"}, "names nobody"),
        ({"classes": 7}, "is damaged"),
    ):
        _damaged("broken.votes", **changed)
        assert said in refused(clinic(f"pate aggregate broken.votes {files[1]} {words}"))
    Path("cut.votes").write_text(Path("0.votes").read_text()[:99])
    assert "it is no JSON" in refused(clinic(f"pate aggregate cut.votes {files[1]} {words}"))
    assert "names one file twice" in refused(clinic(f"pate aggregate 0.votes 0.votes {words}"))
    Path("copy.votes").write_bytes(Path("0.votes").read_bytes())
    assert "has two copies of one file" in refused(clinic(f"pate aggregate 0.votes copy.votes {words}"))
    text = Path("0.votes").read_text()
    place = text.index('"votes": "') + 20
    Path("flip.votes").write_text(text[:place] + ("B" if text[place] == "A" else "A") + text[place + 1 :])
    assert "was changed after" in refused(clinic(f"pate aggregate flip.votes 1.votes {words}"))
    _damaged("visit.votes", user="visit")
    assert "may be with several teachers" in refused(clinic(f"pate aggregate visit.votes 1.votes {words}"))
    assert "a vote of one hides nothing" in refused(clinic(f"pate aggregate 1.votes {words}"))
    assert not Path("run").exists()
