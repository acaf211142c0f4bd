"""`privet train` and `privet predict`: what is released is what was paid for, and the folder says so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet.accounting import epsilon
from privet.core.event import Approximate, Composed, Selected
from privet.core.release import Release
from privet.core.unit import Neighbours, Trust, Whose
from privet.ledger import Ledger, State
from privet.report import Internal, Public, load
from tests.cli.conftest import Done, Run
from tests.cli.training import SCHEMA, patients

pytest.importorskip("torch")
pytest.importorskip("polars")


@pytest.fixture
def clinic(privet: Run) -> Run:
    """`privet`, in a folder with a table and a schema."""
    patients(Path())
    patients(Path("public"), 200)
    return privet


def done(found: Done) -> Done:
    assert found.code == 0, found.err
    return found


def refused(found: Done) -> str:
    """The one line of a refusal; the plan may have been shown before."""
    assert found.code == 2, found.err
    assert found.err.startswith("privet: ")
    assert found.err.count("\n") == 1
    return found.err


def test_a_table_becomes_a_model_a_card_and_a_page(clinic: Run) -> None:
    """Fails when a file is missing, an internal number reaches a page that may be shared, or the model is not that of
    the run."""
    shown = done(clinic("train patients.csv --schema schema.toml --epsilon 2 --out run --log csv"))
    assert "ε ≤ 2.000 at δ = 0.0001 for one example, added or removed" in shown.out
    names = {path.name for path in Path("run").iterdir()}
    assert names == {
        "card.json", "report.html", "internal.json", "internal.html", "model.json", "model.safetensors", "plan.json",
        "log.csv",
    }  # fmt: skip
    card, whole = load(Path("run")), load(Path("run"), internal=True)
    assert card.command.value.endswith("train patients.csv --schema schema.toml --epsilon 2 --out run --log csv")
    assert [score.value.on for score in card.scores] == ["held-out private rows"]
    assert all(isinstance(score, Release) for score in card.scores)
    internal = [score for score in whole.scores if isinstance(score, Internal)]
    assert internal
    page = Path("run/report.html").read_text()
    for score in internal:
        assert f"{100 * (score.value.value or 0):.2f} %" not in page
        assert repr(score.value.value) not in page
    assert "batches of private rows" not in page
    predicted = done(clinic("predict run patients.csv --probabilities")).out.splitlines()
    assert predicted[0] == "readmitted,p(no),p(yes)"
    assert len(predicted) == 601


def test_the_price_on_the_card_is_what_account_says(clinic: Run) -> None:
    """Fails when the run was not what was priced, or the page and `privet account` price it differently."""
    done(
        clinic(
            "train patients.csv --schema schema.toml --test public/patients.csv --epochs 3 --batch-size 100 --out run"
        )
    )
    card = load(Path("run"))
    plan = {choice.name: choice.value for choice in card.choices.value}
    rate = re.sub(r".* rate ", "", plan["sampling"])
    words = f"--noise-multiplier {plan['noise multiplier']} --batch-size 100 --population 600 --steps {plan['steps']}"
    said = done(clinic(f"account {words} --delta {card.privacy.guarantee.value.delta} --json")).json
    assert float(rate) == pytest.approx(1 / 6, rel=1e-5)
    own = card.privacy.guarantee.value.epsilon.upper
    assert said["guarantee"]["epsilon"]["upper"] == pytest.approx(own, rel=1e-6)
    assert own <= 1.0


def test_every_line_of_the_bill_adds_up_to_what_was_asked(clinic: Run) -> None:
    """Fails when a share of the budget is spent twice, or a score, a count or a schema is not in the price."""
    Path("norows.toml").write_text(SCHEMA.replace("rows = 600\n", ""))
    patients(Path("many"), 20_000)
    for words, lines in (
        ("patients.csv --schema schema.toml", 2),
        ("patients.csv --schema norows.toml", 3),
        ("many/patients.csv --target readmitted --epsilon 8 --kind age=number --kind ward=category", 3),
    ):
        done(clinic(f"train {words} --out run{lines}{len(words)}"))
        card = load(Path(f"run{lines}{len(words)}"))
        guarantee = card.privacy.guarantee.value
        asked = 8.0 if "--epsilon" in words else 1.0
        assert len(card.bill.value) == lines
        whole = epsilon(Composed(tuple(line.event for line in card.bill.value)), guarantee.delta, unit=guarantee.unit)
        assert 0.9 * asked < whole.epsilon.upper == guarantee.epsilon.upper <= asked
        if lines == 3:  # the plan was made after something was learned, so a block was fixed before
            assert any(isinstance(line.event, Approximate) for line in card.bill.value)


@pytest.mark.parametrize("rows", ["", "rows = 600\n"])
def test_score_that_would_say_little_is_advised_against_before_the_charge(clinic: Run, rows: str) -> None:
    """Fails when the advice is missing, comes after the charge, or stays where there is no private score."""
    Path("own.toml").write_text(SCHEMA.replace("rows = 600\n", rows))
    assert clinic("ledger create small --epsilon 0.01 --delta 1e-6").code == 0
    pate = "pate patients.csv --public public/patients.csv --teachers 40 --questions 30 --noise 20"
    for words in ("train patients.csv --method output", pate):
        refusal = clinic(f"{words} --schema own.toml --budget small --out run")
        assert refusal.code != 0
        assert refusal.out.count("score on held-out rows would say little") == 1
        assert ("With fewer than about" in refusal.out) == (not rows)
        assert "--score-share 0 leaves it out; --test FILE scores on public rows at no cost." in refusal.out
        for other in ("--score-share 0", "--test public/patients.csv"):
            if other.startswith("--test") and words == pate:
                continue
            assert "would say little" not in clinic(f"{words} --schema own.toml --budget small --out run {other}").out


def test_train_score_of_test_rows_where_users_are_named_says_what_it_assumes(clinic: Run) -> None:
    """Fails when the interval of a score on test rows of users claims to cover their sampling without a condition."""
    Path("users.toml").write_text(SCHEMA.replace("rows = 600", 'rows = 600\nuser = "patient"\nmost_rows_per_user = 2'))
    done(clinic("train patients.csv --schema users.toml --test public/patients.csv --epochs 2 --out run"))
    covers = {each.value.covers for each in load(Path("run")).scores}
    assert covers == {"the sampling of the test rows, taken as independent of each other"}


def test_users_are_protected_where_the_schema_names_them(clinic: Run) -> None:
    """Fails when rows are protected where people own several of them."""
    Path("users.toml").write_text(SCHEMA.replace("rows = 600", 'rows = 600\nuser = "patient"\nmost_rows_per_user = 2'))
    done(clinic("train patients.csv --schema users.toml --out run"))
    card = load(Path("run"))
    assert card.privacy.guarantee.value.unit.whose is Whose.USER
    assert card.privacy.guarantee.value.delta < 1 / 600  # there may be as many users as rows
    assert {leaf.unit.whose for leaf in card.scores if isinstance(leaf, Release)} == {Whose.USER}
    line = refused(clinic("train patients.csv --schema users.toml --method output --out other"))
    assert "protects single rows" in line


def test_the_ledger_has_one_charge_for_all_of_it(clinic: Run) -> None:
    """Fails when a run is not charged, is charged in part, or a budget that is spent lets it through."""
    done(clinic("ledger create clinic --epsilon 1.5 --delta 1e-2"))
    words = "train patients.csv --schema schema.toml --budget clinic"
    done(clinic(f"{words} --out run"))
    with Ledger("privet-ledger.db") as ledger:
        (entry,) = ledger.show("clinic").entries
    assert entry.state is State.COMMITTED
    card = load(Path("run"))
    assert entry.event == card.privacy.event.value
    assert card.ledger is not None
    assert card.ledger.value.entries == (entry.id,)
    line = refused(clinic(f"{words} --epsilon 9 --out again"))
    assert "refuses" in line
    assert not Path("again").exists()
    with Ledger("privet-ledger.db") as ledger:
        assert len(ledger.show("clinic").entries) == 1


REFUSED = {
    "--schema schema.toml --test patients.csv": "--test is the file that is learned from",
    "--schema semicolons.toml": "separator = ','",
    "--target nosuch --schema schema.toml": "'nosuch'",
    "--target nosuch": "no column 'nosuch'",
    "--epsilon 0 --schema schema.toml": "--epsilon is 0.0",
    "--epsilon nan --schema schema.toml": "--epsilon is nan",
    "--delta 1.5 --schema schema.toml": "--delta is 1.5",
    "--schema other.toml": "--schema is 'other.toml', which cannot be read",
    "": "--target is missing",
    "--schema schema.toml --model own.py:net": "--model is in 'own.py', which is no file",
    "--schema schema.toml --model deep": "--model is 'deep', which is no model",
    "--schema schema.toml --features scattering": "for pictures",
    "--schema schema.toml --model convolutions": "for pictures",
    "--schema schema.toml --method magic": "--method is 'magic'",
    "--schema schema.toml --method none": "--method is none",
    "--schema schema.toml --compare output": "--yes is needed",
    "--schema schema.toml --compare input": "trust is local",
    "--schema schema.toml --batch-size 5000": "--batch-size is 5,000",
    "--schema schema.toml --log paper": "--log is 'paper'",
    "--schema schema.toml --out /proc/none": "--out is '/proc/none'",
    "--schema schema.toml --resume": "no run that was stopped",
    "--schema schema.toml --tune 0.5": "--tune is 0.5",
    "--target readmitted --tune 3": "number of rows is not public",
    "--schema schema.toml --hold-out 1": "--hold-out is 1",
}


@pytest.mark.parametrize(("words", "complaint"), REFUSED.items(), ids=REFUSED)
def test_bad_input_is_one_line_and_leaves_nothing(clinic: Run, words: str, complaint: str) -> None:
    """Fails when a mistake ends in a traceback, in a folder that nobody wanted, or in a charge."""
    done(clinic("ledger create clinic --epsilon 1.5 --delta 1e-2"))
    Path("semicolons.toml").write_text(SCHEMA.replace("rows = 600", 'rows = 600\nseparator = ";"'))
    out = "" if "--out" in words else "--out run"
    line = refused(clinic(f"train patients.csv {words} {out} --budget clinic"))
    assert complaint in line
    assert not Path("run").exists()
    with Ledger("privet-ledger.db") as ledger:
        assert not ledger.show("clinic").entries


@pytest.mark.parametrize("rows", ["", "p1,50,north,yes\n", "p1,x,nowhere,yes\np2,,,no\n" * 3])
def test_rows_change_no_branch(clinic: Run, rows: str) -> None:
    """Fails when no rows, one row, one class or cells that do not fit raise, or change what is shown beside scores."""
    usual = done(clinic("train patients.csv --schema schema.toml --out usual --seed 1"))
    Path("patients.csv").write_text("patient,age,ward,readmitted\n" + rows)
    other = done(clinic("train patients.csv --schema schema.toml --out other --seed 1"))

    def public(shown: Done) -> str:
        return shown.out.replace("usual", "other").partition("method")[0]

    assert public(usual) == public(other)
    assert usual.err == other.err
    cards = [json.loads(Path(name, "card.json").read_text()) for name in ("usual", "other")]
    assert cards[0]["card"]["privacy"] == cards[1]["card"]["privacy"]


def test_methods_side_by_side_are_paid_for_together(clinic: Run) -> None:
    """Fails when a compared method is free, when `none` reaches a page that may be shared, or the total is a lie."""
    done(
        clinic(
            "train patients.csv --schema schema.toml --test public/patients.csv --out run",
            "--compare none,output,objective --yes",
        )
    )
    card, whole = load(Path("run")), load(Path("run"), internal=True)
    assert [line.what for line in card.bill.value] == [
        "the model, by DP-SGD", "the model, by output perturbation", "the model, by objective perturbation",
    ]  # fmt: skip
    assert card.privacy.guarantee.value.epsilon.upper > 1.5
    assert [trial.value.run for trial in card.compared] == ["DP-SGD", "output perturbation", "objective perturbation"]
    assert len(whole.compared) == 4
    assert all(trial.value.epsilon <= 1.0 for trial in card.compared)


def test_input_perturbation_trusts_nobody(clinic: Run) -> None:
    """Fails when records are seen as they are, or the card does not say what is protected."""
    done(
        clinic(
            "train patients.csv --schema schema.toml --method input --epsilon 4 --test public/patients.csv --out run"
        )
    )
    guarantee = load(Path("run")).privacy.guarantee.value
    assert guarantee.delta == 0.0
    assert guarantee.epsilon.upper == 4.0
    assert guarantee.unit.trust is Trust.LOCAL
    assert guarantee.unit.neighbours is Neighbours.REPLACE
    assert len(done(clinic("predict run patients.csv")).out.splitlines()) == 601


def test_a_record_without_a_target_makes_a_report_too(clinic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches input perturbation whose number of reports tells that a record was replaced by one without a target."""
    from privet.training.convex import InputPerturbation

    counts = []
    randomize = InputPerturbation.randomize

    def counted(self: InputPerturbation, x: Any, y: Any, *, source: str, rng: Any) -> Any:
        counts.append(len(x))
        return randomize(self, x, y, source=source, rng=rng)

    monkeypatch.setattr(InputPerturbation, "randomize", counted)
    text = Path("patients.csv").read_text()
    for number, target in enumerate(("yes", "", "elsewhere")):
        Path("patients.csv").write_text(text + f"p9,40,north,{target}\n")
        done(clinic(f"train patients.csv --schema schema.toml --method input --out run{number}"))
    assert counts == [601, 601, 601]


def test_what_is_learned_in_vain_is_all_that_is_paid_for(clinic: Run) -> None:
    """Catches a whole run's ε that is charged where too few rows were there to learn a schema from."""
    done(clinic("ledger create clinic --epsilon 3 --delta 1e-2"))
    Path("few.csv").write_text("age,readmitted\n41,no\n50,yes\n")
    line = refused(clinic("train few.csv --target readmitted --budget clinic --out run"))
    assert "fewer than two values" in line
    with Ledger("privet-ledger.db") as ledger:
        states = {entry.state for entry in ledger.show("clinic").entries}
        assert states == {State.COMMITTED, State.ABORTED}
        (paid,) = [entry for entry in ledger.show("clinic").entries if entry.state is State.COMMITTED]
        assert epsilon(paid.event, 1e-7).epsilon.upper <= 0.1
    assert "readmitted" in Path("run/schema.toml").read_text()
    assert not Path("run/.privet").exists()


def test_tuning_is_private_selection(clinic: Run) -> None:
    """Fails when the best of several runs costs what one costs, or the number of runs is fixed or shown."""
    shown = done(clinic("train patients.csv --schema schema.toml --tune 3 --epochs 4 --out run --seed 5"))
    card = load(Path("run"))
    (line,) = card.bill.value
    assert isinstance(line.event, Selected)
    assert line.event.trials.mean == pytest.approx(3.0, rel=1e-3)
    assert 0.97 < card.privacy.guarantee.value.epsilon.upper <= 1.0
    one = epsilon(line.event.event, 1e-3).epsilon.upper
    assert one < 0.5
    assert "which stays secret" in shown.out
    assert not Path("run/.privet").exists()


def test_pictures_of_ones_own(privet: Run) -> None:
    """Fails when pictures cannot be trained on without a schema, or are predicted in another order."""
    drawn = np.random.default_rng(0)
    labels = drawn.integers(0, 2, 400)
    pictures = drawn.integers(0, 60, (400, 8, 8)).astype(np.uint8)
    pictures[labels == 1, 2:6, 2:6] += 150
    np.savez("blobs.npz", x=pictures, y=np.array(["none", "blob"])[labels])
    done(privet("train blobs.npz --classes none,blob --rows 400 --features pixels --epsilon 4 --out run"))
    said = done(privet("predict run blobs.npz")).out.splitlines()[1:]
    assert np.mean(np.array(said) == np.array(["none", "blob"])[labels]) > 0.9
    assert isinstance(load(Path("run")).rows, Public)


def test_one_odd_label_moves_no_other(privet: Run) -> None:
    """Catches labels that are read together: one that is no number turned all others into 0.0 and 1.0, and out."""
    from privet.runs.inputs import TrainingInputs
    from privet.runs.request import TrainRequest

    for labels in (np.array([0, 1, 1, 0]), np.array([0, 1, 1, 0, float("nan")]), np.array(["0", "1", "1", "0", "x"])):
        np.savez("some.npz", x=np.zeros((len(labels), 8, 8), dtype=np.uint8), y=labels)
        train = TrainingInputs.of(TrainRequest(data="some.npz", classes=("0", "1"))).train
        assert train is not None
        assert np.asarray(train.y).tolist() == [0, 1, 1, 0]


def test_a_model_of_ones_own(clinic: Run) -> None:
    """Fails when the user's factory is not used, or one that couples rows is trained all the same."""
    Path("own.py").write_text(
        "from torch import nn\n\n\n"
        "def net(shape, classes):\n"
        "    return nn.Sequential(nn.Linear(shape[0], 8), nn.Tanh(), nn.Linear(8, classes))\n\n\n"
        "def coupled(shape, classes):\n"
        "    return nn.Sequential(nn.Linear(shape[0], 8), nn.BatchNorm1d(8), nn.Linear(8, classes))\n"
    )
    done(clinic("train patients.csv --schema schema.toml --model own.py:net --out run"))
    assert json.loads(Path("run/model.json").read_text())["family"] == "own.py:net"
    assert len(done(clinic("predict run patients.csv")).out.splitlines()) == 601
    assert "BatchNorm1d" in refused(
        clinic("train patients.csv --schema schema.toml --model own.py:coupled --out other")
    )


def test_numbers_are_predicted_in_their_own_units(clinic: Run) -> None:
    """Fails when a regression's predictions stay on the model's scale."""
    Path("ages.toml").write_text(SCHEMA.replace('target = "readmitted"', 'target = "age"'))
    done(clinic("train patients.csv --schema ages.toml --epsilon 8 --out run"))
    ages = np.array(done(clinic("predict run patients.csv")).out.splitlines()[1:], dtype=float)
    assert 18 <= ages.min() < ages.max() <= 100
    assert 45 < ages.mean() < 70
    assert load(Path("run")).scores[0].value.name == "mean absolute error"


def test_predictions_need_a_run(clinic: Run) -> None:
    """Fails when a folder without a model, or a file that exists, ends in a traceback or is overwritten."""
    assert "cannot be read" in refused(clinic("predict nosuch patients.csv"))
    Path("mine.csv").write_text("precious")
    assert "exists" in refused(clinic("predict nosuch patients.csv --out mine.csv"))
    assert Path("mine.csv").read_text() == "precious"


def test_ledger_without_a_budget_is_refused(clinic: Run) -> None:
    """Fails when a command that names its budget by --ledger, as it was once called, runs and charges nobody."""
    for words in ("train patients.csv --schema schema.toml", "pate patients.csv --public p.csv --schema schema.toml"):
        line = refused(clinic(f"{words} --ledger clinic --out run"))
        assert "to charge that budget, write: --budget clinic" in line
    assert not Path("run").exists()
