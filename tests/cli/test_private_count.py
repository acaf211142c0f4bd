"""Where the number of rows is private: what is said of δ and of a score's width, when, and to whom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from privet.core.errors import InvalidInput
from privet.data import Schema
from privet.report import load
from privet.report.score_intervals import EXACT, NOISE_AND_SAMPLING, SELECTED
from privet.runs import scoring
from privet.runs.row_sets import OWN_ROWS
from tests.cli.conftest import Run
from tests.cli.test_train import done
from tests.cli.training import SCHEMA, patients

pytest.importorskip("torch")
pytest.importorskip("polars")

REMARK = "not well below 1/n"
WIDTH = r"expected interval of the score +± \d+\.\d+ % at most +95 %, noise and sampling of about ([\d,]+) rows"
PATE = "--teachers 20 --questions 30 --noise 20 --delta 1e-3"


def without_rows(folder: Path, rows: int) -> str:
    """A table whose number of rows is private, and the arguments that name it."""
    patients(folder, rows)
    (folder / "schema.toml").write_text(SCHEMA.replace("rows = 600\n", ""))
    return f"{folder}/patients.csv --schema {folder}/schema.toml"


def test_pate_remarks_on_delta_on_the_internal_page_alone(privet: Run) -> None:
    """Fails when something that is shared tells 50 rows from 5,000 by a remark about δ, or the internal report of the
    larger table lacks it."""
    patients(Path("public"), 200)
    for rows in (50, 5000):
        folder = Path(f"n{rows}")
        line = f"pate {without_rows(folder, rows)} --public public/patients.csv {PATE} --seed 3 --out {folder}/run"
        shown = done(privet(line))
        shared = "".join((folder / "run" / name).read_text() for name in ("report.html", "card.json"))
        for text in (shown.out, shown.err, shared, privet(f"report show {folder}/run").out):
            assert REMARK not in text
        assert (REMARK in (folder / "run" / "internal.html").read_text()) == (rows == 5000)
        assert (REMARK in (folder / "run" / "internal.json").read_text()) == (rows == 5000)


def test_default_delta_does_not_follow_a_private_number_of_rows(privet: Run) -> None:
    """Fails when δ, which everybody sees, is computed from the rows themselves."""
    patients(Path("public"), 200)
    asked = PATE.replace(" --delta 1e-3", "")
    found = set()
    for rows in (50, 5000):
        table = without_rows(Path(f"n{rows}"), rows)
        done(privet(f"train {table} --method output --epsilon 4 --out t{rows}"))
        done(privet(f"pate {table} --public public/patients.csv {asked} --out p{rows}"))
        found |= {load(Path(f"{kind}{rows}")).privacy.guarantee.value.delta for kind in "tp"}
    assert found == {1e-6}


@pytest.mark.parametrize("method", ["output", "dp-sgd --epochs 1"])
def test_expected_width_of_a_private_count_is_said_before_the_score_is_drawn(
    privet: Run, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Fails when a width is stated before the rows are counted under the budget, is that of their exact number (600, of
    which 120 are held out), or is stated only after the score was drawn: here the draw never comes."""
    table = without_rows(Path("n"), 600)

    def release(*_: Any, **__: Any) -> Any:
        raise InvalidInput("score", "is about to be drawn")

    monkeypatch.setattr(scoring.PrivateScoring, "release", release)
    about = set()
    for seed in (8, 9):
        line = f"train {table} --method {method} --epsilon 2 --seed {seed} --out run{seed}"
        shown = privet(line)
        assert "score is about to be drawn" in shown.err
        before, unknown, after = shown.out.partition("the width depends on a private number of rows")
        assert unknown
        assert re.search(WIDTH, before) is None
        found = re.findall(WIDTH, after)
        assert len(found) == 1
        about |= set(found)
    assert len(about) == 2


def test_tuned_score_says_that_its_interval_leaves_the_choice_out(privet: Run) -> None:
    """The best of several scores is too good. Fails when its interval is shown like that of one model."""
    patients(Path())
    done(privet("train patients.csv --schema schema.toml --tune 3 --epochs 1 --epsilon 2 --out run --seed 5"))
    card = load(Path("run"), internal=True)
    (score,) = [each.value for each in card.scores if "held-out" in each.value.on]
    assert score.covers == NOISE_AND_SAMPLING + SELECTED
    own = [each.value for each in card.scores if each.value.covers == EXACT]
    assert own
    assert all(each.on == OWN_ROWS for each in own)


@pytest.mark.parametrize("more", ["", "--score-share 0"])
def test_score_on_training_rows_is_no_estimate_for_new_ones(privet: Run, more: str) -> None:
    """Fails when rows that the model has seen are shown with an interval for rows that it has not."""
    patients(Path())
    line = "train patients.csv --schema schema.toml --method output --compare none --epsilon 2 --out run --seed 5"
    done(privet(f"{line} {more}"))
    card = load(Path("run"), internal=True)
    trials = [each.value.score for each in card.compared]
    assert any(each.on == OWN_ROWS for each in trials) == bool(more)
    own = [each for each in (*(score.value for score in card.scores), *trials) if each.on == OWN_ROWS]
    assert len(own) > 1
    assert {each.covers for each in own} == {EXACT}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", {"'age', 'ward', 'readmitted' were read from public data"}),
        (" --classes no,yes", {"'age', 'ward' were read from public data", "'readmitted' are limits of the domain"}),
    ],
)
def test_pate_states_the_source_of_a_schema_from_public_rows(privet: Run, more: str, said: set[str]) -> None:
    """Fails when a card of pate does not say on which source its guarantee rests, or names another."""
    patients(Path())
    patients(Path("public"), 200)
    words = "pate patients.csv --public public/patients.csv --target readmitted --user patient"
    done(privet(f"{words}{more} {PATE} --out run"))
    assumed = load(Path("run")).privacy.guarantee.value.assumptions
    stated = [each for each in assumed if each.startswith("the bounds or values of ")]
    assert {each.removeprefix("the bounds or values of ").split(" and ")[0] for each in stated} == said


def test_pate_states_who_vouched_for_its_schema(privet: Run) -> None:
    """Fails when the person who vouched for the bounds is not among the assumptions of a student."""
    patients(Path())
    patients(Path("public"), 200)
    done(privet(f"pate patients.csv --public public/patients.csv --schema schema.toml {PATE} --out run"))
    assumed = load(Path("run")).privacy.guarantee.value.assumptions
    assert sum("Ada Lovelace vouched for this on 2026-11-18" in each for each in assumed) == 1


def test_confirm_answer_for_one_column_is_for_no_other(privet: Run) -> None:
    """Fails when `--source` for one column answers for the others."""
    text = re.sub(r"source = .*\n", "", SCHEMA)
    Path("old.toml").write_text(text)
    shown = privet("schema confirm old.toml --by Ada --source ward=codebook")
    assert shown.code == 1
    assert "Nobody vouches yet for the source of: age, readmitted." in shown.out
    found = dict(Schema.from_toml(Path("old.toml").read_text()).sources())
    assert [name for name, source in found.items() if source is not None] == ["ward"]
