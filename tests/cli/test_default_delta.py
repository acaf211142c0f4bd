"""One default δ in every command and estimator; a private number of rows shows in nothing that is shared."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from privet.accounting.default_delta import LARGEST_DEFAULT_DELTA, default_delta
from privet.core.errors import InvalidInput
from privet.ledger import Ledger
from privet.report import load
from privet.runs.plan import choose_delta
from tests.cli.conftest import Run
from tests.cli.training import SCHEMA, patients

pytest.importorskip("torch")
pytest.importorskip("polars")

WARNING = "not well below 1/n"


@pytest.mark.parametrize(
    "rows", [1, 2, 9, 10, 11, 99, 100, 101, 600, 999, 1_000, 1_001, 1_437, 60_000, 10**6, 3 * 10**9]
)
def test_default_delta_is_well_below_one_over_n(rows: int) -> None:
    """Fails when a default is above 1/(10 n), has more than one digit, or is needlessly small."""
    found = default_delta(rows)
    assert found * rows <= 0.1 * (1 + 1e-12)
    assert found == LARGEST_DEFAULT_DELTA or found * rows > 0.05
    assert re.fullmatch(r"[1-9]e-\d+", np.format_float_scientific(found, trim="-"))


def test_default_delta_of_a_private_count_depends_on_nothing() -> None:
    """Fails when the default for a private number of rows moves, or a wrong number is taken."""
    assert default_delta(None) == 1e-6
    for wrong in (0, -1):
        with pytest.raises(InvalidInput, match="units"):
            default_delta(wrong)


def _train(privet: Run) -> float:
    patients(Path())
    assert privet("train patients.csv --schema schema.toml --method output --epsilon 2 --out run").code == 0
    return load(Path("run")).privacy.guarantee.value.delta


def _sgd(privet: Run) -> float:
    patients(Path())
    assert privet("train patients.csv --schema schema.toml --epsilon 2 --epochs 1 --out run").code == 0
    return load(Path("run")).privacy.guarantee.value.delta


def _pate(privet: Run) -> float:
    patients(Path())
    patients(Path("public"), 200)
    line = "pate patients.csv --public public/patients.csv --schema schema.toml --teachers 40"
    done = privet(f"{line} --questions 30 --noise 20 --out run")
    assert done.code == 0, done.err
    return load(Path("run")).privacy.guarantee.value.delta


def _classifier(_: Run) -> float:
    sklearn = pytest.importorskip("privet.sklearn")
    return float(sklearn.PrivateClassifier(1.0, bounds=(0, 1), classes=[0, 1], rows=600).plan().delta)


def _regressor(_: Run) -> float:
    sklearn = pytest.importorskip("privet.sklearn")
    return float(sklearn.PrivateRegressor(1.0, bounds=(0, 1), target_bounds=(0, 1), rows=600).plan().delta)


def _counted(_: Run) -> float:
    sklearn = pytest.importorskip("privet.sklearn")
    model = sklearn.PrivateClassifier(1.0, bounds=(0, 1), classes=[0, 1], source="codebook", epochs=1)
    return float(model.fit(np.zeros((600, 1)), np.zeros(600)).guarantee_.delta)


def _mix(privet: Run) -> float:
    return float(json.loads(privet("mix compare --reports 600 --epsilon 1 --json").out)["delta"])


@pytest.mark.parametrize("door", [_train, _sgd, _pate, _classifier, _regressor, _counted, _mix])
def test_every_door_has_the_same_default_delta(privet: Run, door: Callable[[Run], float]) -> None:
    """Fails when a command or an estimator has a default of its own: 0.001 and 0.000166 were two, for 600 rows."""
    assert door(privet) == default_delta(600) == 1e-4


def test_given_delta_is_kept() -> None:
    """Fails when a default replaces what was asked for."""
    assert choose_delta(0.3, 600)[0] == 0.3


def test_delta_too_large_for_private_rows_is_said_on_the_internal_page_alone(privet: Run) -> None:
    """Fails when anything but the internal report tells a table of 50 rows from one of 5,000 by a remark about δ."""
    shown: dict[int, str] = {}
    for rows in (50, 5000):
        folder = Path(f"n{rows}")
        patients(folder, rows)
        (folder / "schema.toml").write_text(SCHEMA.replace("rows = 600\n", ""))
        line = f"train {folder}/patients.csv --schema {folder}/schema.toml --method output --delta 1e-3 --epsilon 4"
        done = privet(f"{line} --seed 3 --out {folder}/run")
        assert done.code == 0, done.err
        shared = "".join((folder / "run" / name).read_text() for name in ("report.html", "card.json"))
        for text in (done.out, done.err, shared, privet(f"report show {folder}/run").out):
            assert WARNING not in text
        shown[rows] = re.sub(r"[\d.,]+", "#", done.out.replace(f"n{rows}", "n")).replace(" ", "").replace("─", "")
        internal = (folder / "run" / "internal.html").read_text()
        assert (WARNING in internal) == (rows == 5000)
        assert (WARNING in privet(f"report show {folder}/run --internal").out) == (rows == 5000)
    assert shown[50] == shown[5000]


def test_expected_width_is_said_before_anything_is_charged(privet: Run) -> None:
    """Fails when the plan of a private score does not state its width, or states it after the charge: here the budget
    refuses the charge."""
    patients(Path())
    assert privet("ledger create clinic --epsilon 0.5 --delta 1e-3").code == 0
    done = privet("train patients.csv --schema schema.toml --method output --epsilon 2 --budget clinic --out run")
    assert done.code != 0
    assert re.search(
        r"expected interval of the score +± \d+\.\d+ % at most +95 %, noise and sampling of about 120 rows", done.out
    )
    with Ledger("privet-ledger.db") as ledger:
        assert not ledger.show("clinic").entries


def test_expected_width_is_part_of_the_card(privet: Run) -> None:
    """Fails when the plan in card.json lacks the width, or the score in it lacks an interval and its coverage."""
    patients(Path())
    assert privet("train patients.csv --schema schema.toml --method output --epsilon 2 --out run").code == 0
    card = load(Path("run"))
    assert any(each.name == "expected interval of the score" for each in card.choices.value)
    (score,) = card.scores
    assert score.value.has_interval
    assert score.value.covers == "the noise and the sampling of the held-out rows"
    page = (Path("run") / "report.html").read_text()
    assert (
        page.replace("\u00a0", " ").count(
            "with 95 % confidence, covers the noise and the sampling of the held-out rows"
        )
        >= 2
    )


def test_card_of_an_earlier_version_is_read(privet: Run) -> None:
    """Fails when a card without internal remarks, without intervals and without margins is refused."""
    patients(Path())
    assert privet("train patients.csv --schema schema.toml --method output --epsilon 2 --out run").code == 0
    path = Path("run") / "card.json"
    said = json.loads(path.read_text())
    del said["card"]["internal_remarks"]
    for each in said["card"]["scores"]:
        for name in ("lower", "upper", "confidence", "covers"):
            each["value"].pop(name, None)
            each["value"].get("fields", {}).pop(name, None)
    path.write_text(json.dumps(said))
    assert not any(each.value.has_interval for each in load(Path("run")).scores)
    assert "no interval recorded" in privet("report show run").out
    assert "no interval recorded" in privet("report compare run").out
