"""`privet train` that was stopped at the worst moments: one charge pays for one model, and it is written in the end."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from privet.core.atomic_write import write_atomically
from privet.core.event import Gaussian
from privet.core.random import SeededRng
from privet.core.release import Release
from privet.core.unit import Unit
from privet.data import Category, Number, Schema
from privet.ledger import Ledger, State
from privet.report import Score
from privet.runs import directory, payment, selection
from privet.training import tuning
from privet.training.models import ModelDescription
from tests.cli.conftest import Run
from tests.cli.test_train import done, refused
from tests.cli.training import patients

torch = pytest.importorskip("torch")
pytest.importorskip("polars")
WORDS = "train patients.csv --schema schema.toml --method output --budget clinic --out run"


class Killed(BaseException):
    """As if the process ended here."""


def _kill(*_: object, **__: object) -> None:
    raise Killed


def without_page(patch: pytest.MonkeyPatch) -> None:
    """End where the model was stored, and before the page is drawn, which takes a while."""
    from privet.runs import outputs

    patch.setattr(outputs, "build_card", lambda _: None)
    patch.setattr(outputs, "write_run", _kill)


@pytest.fixture
def clinic(privet: Run) -> Run:
    """`privet`, in a folder with a table, a schema and a budget."""
    patients(Path())
    done(privet("ledger create clinic --epsilon 2 --delta 1e-2"))
    return privet


def test_what_was_paid_is_written_after_a_kill_at_the_commit(clinic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a run that is paid, drawn, and can never be written, because the ledger knew of its end first."""
    with monkeypatch.context() as patch:
        patch.setattr(directory.RunDirectory, "commit", _kill)
        with pytest.raises(Killed):
            clinic(WORDS)
    with Ledger("privet-ledger.db") as ledger:
        (entry,) = ledger.show("clinic").entries
        assert entry.state is State.COMMITTED
    kept = Path("run/.privet/kept/output-model/model.safetensors").read_bytes()
    done(clinic("train --resume --out run"))
    assert Path("run/model.safetensors").read_bytes() == kept


@pytest.mark.parametrize("told", [True, False])
def test_a_committed_charge_pays_for_no_other_model(clinic: Run, monkeypatch: pytest.MonkeyPatch, told: bool) -> None:
    """Catches two different models under one charge: what was kept is gone, and was drawn anew."""
    from privet.runs import outputs as report

    with monkeypatch.context() as patch:
        patch.setattr(report, "write_run", _kill)
        if not told:
            patch.setattr(directory.RunDirectory, "commit", _kill)
        with pytest.raises(Killed):
            clinic(WORDS)
    shutil.rmtree("run/.privet/kept")
    assert "has nothing left to draw" in refused(clinic("train --resume --out run"))
    assert not Path("run/card.json").exists()


def test_a_tuned_run_whose_charge_is_committed_is_written(clinic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a selection that asks to draw although all of its runs were made."""
    with monkeypatch.context() as patch:
        patch.setattr(directory.RunDirectory, "commit", _kill)
        with pytest.raises(Killed):
            clinic("train patients.csv --schema schema.toml --tune 2 --epochs 1 --seed 3 --budget clinic --out run")
    (kept,) = Path("run/.privet").glob("best-*/model.safetensors")
    without_page(monkeypatch)
    with pytest.raises(Killed):
        clinic("train --resume --out run")
    assert Path("run/model.safetensors").read_bytes() == kept.read_bytes()


def test_somebodys_page_is_found_before_anything_is_charged(clinic: Run) -> None:
    """Catches a page of another's in the folder that is seen only when all of ε is spent."""
    for name in ("report.html", "model.json"):
        Path("run").mkdir()
        Path("run", name).write_text("mine")
        assert f"which holds '{name}'" in refused(clinic(WORDS))
        assert Path("run", name).read_text() == "mine"
        shutil.rmtree("run")
    with Ledger("privet-ledger.db") as ledger:
        assert not ledger.show("clinic").entries


def test_a_stop_between_a_model_and_its_standing_counts_no_run_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches the best of K + 1 runs: the model of a run that is made again was kept under the score of an earlier."""
    schema = Schema((Number("age", 0, 100), Category("ill", ("no", "yes"))), target="ill", rows=400)
    said = ModelDescription("linear", schema.classes, schema.to_toml())
    place: directory.RunDirectory = directory.RunDirectory(tmp_path)
    place.hidden.mkdir()
    kept = selection.SelectionCheckpoint(place, said, lambda found: found, lambda whole: whole)  # type: ignore[arg-type,return-value]
    scores, made = iter([0.1, 0.9, 0.05]), []

    def run(_: int) -> Release[Any]:
        made.append(said.build(400))
        with torch.no_grad():
            for each in made[-1].parameters():
                each.fill_(float(len(made)))
        score = next(scores)
        value = ((made[-1], Score("accuracy", score, "rows")), score)
        return Release.of(value, Gaussian(4.0), unit=Unit(), source="rows", randomness=SeededRng(0).kind)

    def select(**going: Any) -> Release[Any]:
        law = tuning.Trials.with_mean(2.0)
        return tuning.select(
            law, [0], run, SeededRng(1), event=lambda _: Gaussian(4.0), unit=Unit(), keep=kept.keep, **going
        )

    monkeypatch.setattr(tuning, "draw", lambda trials, rng: 2)
    with monkeypatch.context() as patch:
        patch.setattr(
            selection,
            "write_atomically",
            lambda *words, **more: _kill() if len(made) == 2 else write_atomically(*words, **more),
        )
        with pytest.raises(Killed):
            select()
    standing, best = kept.found()
    assert standing is not None
    assert best is not None
    assert (standing.done, best[1].value) == (1, 0.1)
    found = select(standing=standing, best=best).value
    assert {float(each.detach().flatten()[0]) for each in found.value[0].parameters()} == {1.0}
    assert found.score == found.value[1].value == 0.1
    assert [each.name for each in place.hidden.glob("best-*")] == ["best-0"]
    assert kept.complete


def test_rows_of_a_named_set_and_code_of_ones_own_stay_what_they_were(tmp_path: Path) -> None:
    """Catches a run that goes on with other rows of a named set, or with another model's code, than were charged."""
    from dataclasses import replace

    from privet.core.errors import InvalidInput
    from privet.data import Images
    from privet.runs.inputs import TrainingInputs
    from privet.runs.plan import make_plan
    from privet.runs.request import TrainRequest

    code = tmp_path / "own.py"
    code.write_text("from torch import nn\n\n\ndef net(shape, classes):\n    return nn.Linear(shape[0], classes)\n")
    # A method whose bill needs no model.
    asked = TrainRequest(method="output", model=f"{code}:net")
    inputs = TrainingInputs.of(asked)
    bill = make_plan(asked, inputs, None)
    first = payment.identity_of(asked, inputs, bill)
    assert payment.identity_of(asked, inputs, bill, first.key) == first
    assert isinstance(inputs.train, Images)
    other = replace(inputs, train=replace(inputs.train, x=inputs.train.x[::-1]))
    with pytest.raises(InvalidInput, match="model's code or the data changed"):
        first.require_same(payment.identity_of(asked, other, bill, first.key))
    code.write_text(code.read_text() + "# changed\n")
    with pytest.raises(InvalidInput, match="model's code or the data changed"):
        first.require_same(payment.identity_of(asked, inputs, bill, first.key))


@pytest.mark.parametrize("method", ["output", "pate"])
def test_resume_notices_another_version_of_the_split(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when an interrupted run resumes although other rows would be held out now; or is refused without need."""
    from dataclasses import replace

    from privet.core.errors import InvalidInput
    from privet.core.unit import Unit
    from privet.runs.directory import RunIdentity
    from privet.runs.inputs import TrainingInputs
    from privet.runs.plan import make_plan
    from privet.runs.request import TrainRequest
    from privet.runs.scoring import PrivateScoring

    scoring = PrivateScoring(1.0, Unit(), 1, 10)
    own = {"teachers": 100, "questions": 10, "noise": 10.0, "any_cost": True} if method == "pate" else {}
    request = TrainRequest.of({"method": method, **own})
    inputs = TrainingInputs.of(request)
    plan = make_plan(request, inputs, None)

    def now(scored: bool) -> RunIdentity:
        return payment.identity_of(request, inputs, replace(plan, scoring=scoring) if scored else plan, "00")

    unscored, scored = now(False), now(True)
    monkeypatch.setattr(payment, "SPLIT_VERSION", 1)
    unscored.require_same(now(False))
    with pytest.raises(InvalidInput, match="how rows are held out"):
        scored.require_same(now(True))
