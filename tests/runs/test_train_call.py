"""`privet.train` and `privet.open_run`: what the commands do, in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import privet
from privet.core.errors import BudgetExceeded, InvalidInput
from privet.data import Schema
from privet.ledger import Ledger
from privet.runs import PlannedRun, RunCallbacks, StepProgress
from tests.cli.training import SCHEMA, patients


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    patients(tmp_path)
    return tmp_path


def test_csv_becomes_a_run_that_can_be_opened_again(folder: Path) -> None:
    """Fails when the call does less than the command: charge, model, scores, report, predictions."""
    with Ledger("clinic.db") as ledger:
        ledger.create("clinic", epsilon=3.0, delta=1e-2)
        run = privet.train(
            "patients.csv",
            schema="schema.toml",
            epsilon=2.0,
            budget=ledger.budget("clinic"),
            out="runs/readmission",
            options={"epochs": 2},
        )
        (entry,) = ledger.show("clinic").entries
        assert entry.event == run.card.privacy.event.value
        assert "password" not in entry.purpose
        assert entry.purpose.startswith("privet.train(data='patients.csv'")
        with pytest.raises(BudgetExceeded):
            privet.train("patients.csv", schema="schema.toml", epsilon=8.0, budget=ledger.budget("clinic"))
        assert len(ledger.show("clinic").entries) == 1
    assert run.guarantee.epsilon.upper <= 2.0
    assert run.report_path.exists()
    assert not (folder / "runs/readmission/.privet").exists()
    again = privet.open_run("runs/readmission")
    assert again.guarantee == run.guarantee
    assert [score.name for score in again.scores] == ["accuracy"]
    assert again.plan.event == entry.event
    found = again.predict(pl.read_csv("patients.csv"), probabilities=True)
    assert found.columns == ["readmitted", "p(no)", "p(yes)"]
    assert len(found) == 600
    assert again.attack(shadows=0).attacks
    with pytest.raises(InvalidInput, match="no folder"):
        privet.open_run("nowhere")


class Pandas:
    """As much of a pandas frame as is used: pandas is not installed everywhere."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._columns = columns

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    @property
    def iloc(self) -> Any:
        columns = list(self._columns.values())

        class At:
            def __getitem__(self, place: tuple[slice, int]) -> Any:
                values = np.asarray(columns[place[1]])

                class Column:
                    dtype = values.dtype

                    def isna(self) -> Any:
                        return np.array([value is None for value in values])

                    def to_numpy(self) -> Any:
                        return values

                    def tolist(self) -> Any:
                        return values.tolist()

                return Column()

        return At()


Pandas.__name__ = "DataFrame"


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas"])
def test_frames_give_the_model_of_the_file(folder: Path, kind: str) -> None:
    """Fails when a row in memory is read as something else than the same row in a file."""
    frame = pl.read_csv("patients.csv")
    data: Any = {
        "polars": frame,
        "lazy": frame.lazy(),
        "pandas": Pandas({name: frame[name].to_numpy() for name in frame.columns}),
    }[kind]
    schema = Schema.from_toml(SCHEMA)
    words: dict[str, Any] = {"method": "output", "options": {"seed": 4}}
    by_file = privet.train("patients.csv", schema="schema.toml", out="file", **words)
    by_frame = privet.train(data, schema=schema, out="frame", **words)
    for name, value in by_file.model.state_dict().items():
        assert (value == by_frame.model.state_dict()[name]).all()
    assert "data=…" in by_frame.card.command.value
    assert not list(Path("frame").glob("**/*.parquet"))
    with pytest.raises(InvalidInput, match="not there any more"):
        by_frame.attack(shadows=0)
    assert by_frame.attack(data=data, shadows=0).attacks


def test_images_in_memory_and_pate(folder: Path) -> None:
    """Fails when arrays, or the teachers' method, need a file."""
    drawn = np.random.default_rng(5)
    labels = drawn.integers(0, 2, 300)
    pictures = (drawn.random((300, 6, 6)) * 60 + 120 * labels[:, None, None]).astype(np.uint8)
    names = np.array(["dark", "light"])[labels]
    options = {"classes": ("dark", "light"), "rows": 300, "seed": 1}
    run = privet.train((pictures, names), features="pixels", method="output", options=options, out="pictures")
    assert run.predict(pictures[:5]).columns == ["class"]
    frame = pl.read_csv("patients.csv")
    student = privet.train(
        frame[:400],
        schema="schema.toml",
        method="pate",
        public=frame[400:].drop("readmitted"),
        epsilon=4.0,
        options={"teachers": 20, "seed": 1},
        out="student",
    )
    assert student.card.method.value == "PATE"
    assert student.guarantee.epsilon.upper <= 4.0


def test_pate_silos_vote_and_the_centre_trains_in_python(folder: Path) -> None:
    """Fails when votes of silos cannot be written or aggregated without the command line."""
    from privet.runs import TrainRequest, vote_at_silo

    lines = Path("patients.csv").read_text().splitlines()
    Path("public.csv").write_text("\n".join([lines[0], *lines[400:]]) + "\n")
    for silo in range(2):
        rows = lines[1 + 200 * silo : 201 + 200 * silo]
        Path(f"{silo}.csv").write_text("\n".join([lines[0], *rows]) + "\n")
        given = {"data": f"{silo}.csv", "public": "public.csv", "schema": "schema.toml", "teachers": 10}
        assert vote_at_silo(TrainRequest.of(given | {"method": "pate"}), None, Path(f"{silo}.votes")).teachers == 10
    options = {"votes": ["0.votes", "1.votes"], "seed": 1}
    run = privet.train(
        None, schema="schema.toml", method="pate", public="public.csv", epsilon=4.0, options=options, out="centre"
    )
    assert run.card.teachers is not None
    assert run.card.teachers.value == 20
    assert run.plan.plan_of("pate").settings["teachers"] == 20
    assert "votes=('0.votes', '1.votes')" in run.card.command.value


def test_callbacks_see_the_plan_before_the_charge_and_every_step(folder: Path) -> None:
    """Fails when a plan cannot be refused before anything is spent, or steps are not told."""
    steps: list[StepProgress] = []
    plans: list[PlannedRun] = []
    callbacks = RunCallbacks(on_plan=plans.append, on_step=steps.append)
    privet.train("patients.csv", schema="schema.toml", out="run", options={"epochs": 2}, callbacks=callbacks)
    (planned,) = plans
    assert planned.guarantee.epsilon.upper <= 1.0
    assert [step.step for step in steps] == list(range(1, steps[0].total + 1))
    assert 0 < steps[0].epsilon() < steps[-1].epsilon() <= 1.0

    def refuse(planned: PlannedRun) -> None:
        raise InvalidInput("epsilon", "is too much")

    with Ledger("clinic.db") as ledger:
        ledger.create("clinic", epsilon=3.0, delta=1e-2)
        with pytest.raises(InvalidInput, match="is too much"):
            privet.train(
                "patients.csv",
                schema="schema.toml",
                budget=ledger.budget("clinic"),
                out="refused",
                callbacks=RunCallbacks(on_plan=refuse),
            )
        assert not ledger.show("clinic").entries
    assert not Path("refused").exists()


def test_interrupted_call_resumes_with_one_charge(folder: Path) -> None:
    """Fails when a run in memory cannot be resumed, is charged twice, or leaves its rows behind."""

    def stop(step: StepProgress) -> None:
        if step.step == 2:
            raise KeyboardInterrupt

    frame = pl.read_csv("patients.csv")
    with Ledger("clinic.db") as ledger:
        ledger.create("clinic", epsilon=3.0, delta=1e-2)
        words: dict[str, Any] = {"schema": "schema.toml", "budget": ledger.budget("clinic"), "out": "run"}
        with pytest.raises(KeyboardInterrupt):
            privet.train(frame, **words, options={"epochs": 4}, callbacks=RunCallbacks(on_step=stop))
        rows = Path("run/.privet/data.parquet")
        assert rows.stat().st_mode & 0o077 == 0
        run = privet.train(resume=True, out="run")
        (entry,) = ledger.show("clinic").entries
        assert entry.state.value == "committed"
    assert not rows.exists()
    assert run.scores


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"options": {"colour": 1}}, "options has 'colour'"),
        ({"method": "magic"}, "use one of: dp-sgd"),
        ({"method": "pate", "tune": 3.0}, "tune is given, and the method is pate"),
        ({"public": "patients.csv"}, "public is given"),
        ({"resume": True}, "out is missing"),
        ({"data": 3}, "of the type int"),
    ],
)
def test_bad_arguments_are_named(folder: Path, words: dict[str, Any], match: str) -> None:
    """Fails when an argument that is wrong is taken, or named by another name."""
    with pytest.raises(InvalidInput, match=match):
        privet.train(**{"data": "patients.csv", "schema": "schema.toml"} | words)
