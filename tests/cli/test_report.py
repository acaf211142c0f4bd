"""`privet report`: a run in full or several side by side, and nothing internal unless it was asked for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from privet.report import load, require_writable
from privet.report.words import up
from tests.cli.conftest import Run
from tests.cli.test_card import run, written
from tests.cli.test_page import specs_in
from tests.cli.training import patients
from tests.report.trained import trained

__all__ = ["run", "written"]

MARK = "INTERNAL: computed from private rows without noise; do not share"


def test_a_run_is_shown(privet: Run, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when what may be shared is missing, or what is internal is shown without being asked for."""
    done = privet("report show digits")
    assert (done.code, done.err) == (0, "")
    upper = up(trained().privacy.guarantee.value.epsilon.upper)
    assert done.out.startswith(f"ε ≤ {upper}")
    assert "the model, by DP-SGD" in done.out
    assert "INTERNAL" not in done.out
    assert "training rows" not in done.out
    monkeypatch.delenv("COLUMNS")
    whole = privet("report show digits").out
    assert f"To run it again: {trained().command.value}" in whole.splitlines()
    assert not any(line != line.rstrip() for line in whole.splitlines())


def test_internal_is_asked_for_and_marked(privet: Run, run: Path) -> None:
    """Fails when the internal card is not shown to its owner, or not marked at both ends."""
    lines = privet("report show digits --internal").out.splitlines()
    assert (lines[0], lines[-1]) == (MARK, MARK)
    assert any("training rows" in line and "INTERNAL" in line for line in lines)
    (run / "internal.json").unlink()
    done = privet("report show digits --internal")
    assert done.code == 2
    assert "internal.json cannot be read" in done.err


def test_runs_side_by_side(privet: Run, run: Path, tmp_path: Path) -> None:
    """Fails when a run is left out, two of the same name are mixed up, or the page lacks one or cannot be drawn."""
    for place in ("a", "b"):
        shutil.copytree(run, tmp_path / place / "digits")
    done = privet("report compare a/digits b/digits --plot both.html")
    assert (done.code, done.err) == (0, "")
    rows = [line.split()[0] for line in done.out.splitlines() if "/digits" in line.split(" ")[0]]
    assert rows == ["a/digits"] * 3 + ["b/digits"] * 3
    assert "INTERNAL" not in done.out
    assert "each ε is that of one run" in done.out
    assert "protects nobody" in done.out
    text = (tmp_path / "both.html").read_text(encoding="utf-8")
    require_writable(tmp_path / "both.html")  # which only takes a page of ours
    assert "a/digits" in text
    assert str(tmp_path) not in text
    assert specs_in(text)
    alone = privet("report compare digits").out
    assert [line.split()[0] for line in alone.splitlines() if line.startswith("digits ")] == ["digits"] * 3


def test_report_compare_knows_test_rows_by_their_digest(privet: Run, tmp_path: Path) -> None:
    """Fails when runs on one test file record different rows, or on two files of one name the same: a best among the
    latter would be named across different rows."""
    patients(tmp_path)
    for name, rows in (("one", 300), ("other", 310)):
        patients(tmp_path / name, rows)
    for name, test in (("a", "one"), ("b", "one"), ("c", "other")):
        done = privet(
            f"train patients.csv --schema schema.toml --method output --test {test}/patients.csv --out {name}"
        )
        assert done.code == 0, done.err
    digests = {name: {each.value.rows for each in load(tmp_path / name).scores} for name in "abc"}
    assert digests["a"] == digests["b"]
    assert all(len(each) == 1 and len(next(iter(each))) == 64 for each in digests.values())
    assert digests["a"] != digests["c"]
    assert "no best is named: the test rows differ" in " ".join(privet("report compare a c").out.split())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("report show nowhere", "run is 'nowhere', of which card.json cannot be read: no such file"),
        ("report show broken", "card"),
        ("report show", "missing: RUN; see privet report show --help"),
        ("report compare", "missing: RUN...; see privet report compare --help"),
        ("report compare digits nowhere", "run is 'nowhere'"),
        ("report compare digits ./digits", "runs name one folder twice"),
        ("report compare digits --plot page.txt", "--plot is 'page.txt', and the page is HTML"),
        ("report compare digits --plot mine.html", "--plot is 'mine.html', which exists and is not a page of Privet's"),
    ],
)
def test_bad_input_is_one_line(privet: Run, run: Path, tmp_path: Path, line: str, words: str) -> None:
    """Fails when something that cannot be done ends in another way than one line and exit code 2, or in a lost file."""
    (tmp_path / "mine.html").write_text("my own")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "card.json").write_text((run / "card.json").read_text()[:500])
    done = privet(line)
    assert done.code == 2
    assert words in done.err
    assert len(done.err.splitlines()) == 1
    assert (tmp_path / "mine.html").read_text() == "my own"
