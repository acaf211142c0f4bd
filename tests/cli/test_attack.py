"""`privet attack`: who was in the data? What it finds stays on the internal page."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from privet.attacks import Outcome, shadows
from privet.attacks.outcome import Band
from privet.cli import main
from privet.report import load
from privet.runs.attacks.outcomes import above_limit, summarize_attack
from tests.cli.conftest import Run
from tests.cli.test_train import done, refused
from tests.data.sources import vouched

pytest.importorskip("torch")
pytest.importorskip("polars")

SCHEMA = vouched("""\
privet = 1
target = "ill"
rows = 240

[[column]]
name = "dose"
kind = "number"
low = 0
high = 1

[[column]]
name = "weight"
kind = "number"
low = 0
high = 1

[[column]]
name = "ill"
kind = "category"
values = ["no", "yes"]
""")


def trial(path: str, rows: int, seed: int) -> None:
    """A table of real numbers, no two rows of which are alike."""
    drawn = np.random.default_rng(seed)
    dose, weight = drawn.random(rows), drawn.random(rows)
    ill = np.where(drawn.random(rows) < dose, "yes", "no")
    lines = [f"{a:.6f},{b:.6f},{c}" for a, b, c in zip(dose, weight, ill, strict=True)]
    Path(path).write_text("dose,weight,ill\n" + "\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run on pictures, its files, and a file of others; made once."""
    place = tmp_path_factory.mktemp("made")
    drawn = np.random.default_rng(3)
    for name, rows in (("own", 240), ("test", 120), ("others", 160)):
        x, y = drawn.integers(0, 256, (rows, 8, 8)), drawn.integers(0, 2, rows)
        np.savez(place / f"{name}.npz", x=x.astype(np.uint8), y=y)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        words = "own.npz --classes 0,1 --rows 240 --features pixels --epochs 2 --delta 1e-3 --test test.npz --out run"
        assert main(["train", *words.split()]) == 0
    return place


@pytest.fixture
def trained(privet: Run, made: Path) -> Run:
    """`privet`, in a copy of that folder."""
    shutil.copytree(made, Path(), dirs_exist_ok=True)
    return privet


def test_what_attacks_find_is_internal(trained: Run) -> None:
    """Fails when a rate on real members reaches a file that may be shared, a file for sharing changes at all, or the
    internal page lacks the attacks."""
    shared = {name: Path("run", name).read_bytes() for name in ("card.json", "report.html")}
    shown = done(trained("attack run --shadows 4"))
    assert {name: Path("run", name).read_bytes() for name in shared} == shared
    card, whole = load(Path("run")), load(Path("run"), internal=True)
    assert card.attacks == ()
    names = [each.value.attack for each in whole.attacks]
    assert {"loss threshold", "label-only", "calibrated loss", "LiRA", "RMIA", "blind baseline"} <= set(names)
    assert {each.value.shadows for each in whole.attacks if "LiRA" in each.value.attack} == {4}
    first = whole.attacks[0].value
    assert (first.members, first.outsiders) == (240, 120)
    assert [rate.at for rate in first.hits] == [0.01]  # 0.1 % takes 1,000 outsiders
    page = Path("run/internal.html").read_text()
    assert all(name in page for name in names)
    assert '"attacked"' in page
    (picture,) = whole.pictures
    assert card.pictures == ()
    assert "mean of that class's members" in picture.value.about
    assert "only where a class is a person" in page
    assert "INTERNAL" in shown.out
    assert "limit of the guarantee" in shown.out
    assert Path("run/internal.json").stat().st_mode & 0o077 == 0
    assert not Path("run/.attack").exists()


def test_the_model_that_is_attacked_is_that_of_the_run(trained: Run) -> None:
    """Fails when scores are not those of the released model: one that has learned its members by heart must be found
    out, and here it is planted in the run's place."""
    import torch

    from privet.training.models import restore, store

    model, described = restore("run")
    with np.load("own.npz") as own:
        x, y = torch.from_numpy(own["x"]), torch.from_numpy(own["y"])
    with torch.no_grad():
        rows = model.front(x)
        rows = torch.cat([rows, torch.ones(len(rows), 1)], 1).double()
        # 64 weights fit a quarter of 240 labels that are noise, which is enough to be found.
        weights = torch.linalg.lstsq(rows, 200 * (2.0 * y.double() - 1)[:, None]).solution[:, 0].float()
        for name, value in model.head.named_parameters():
            value.zero_()
            if name == "line.weight":
                value[1].copy_(weights[:-1])
    store("run", model, described)
    done(trained("attack run --shadows 0 --alarms 0.05"))
    whole = load(Path("run"), internal=True)
    found = {each.value.attack: each.value for each in whole.attacks}
    assert set(found) == {"label-only", "loss threshold", "blind baseline"}
    assert found["loss threshold"].auc.lower > 0.5
    assert found["blind baseline"].auc.lower < 0.5


def test_a_stopped_attack_goes_on(trained: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when Ctrl-C or another attack loses the shadow models that were trained, when they are taken for another
    attack's, or when the command that goes on lacks an option."""
    made: list[str] = []

    def counted(*given: object, **named: object) -> object:
        made.append(str(named["key"]))
        if len(made) == 2:
            raise KeyboardInterrupt
        return shadows(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("privet.runs.attacks.shadow_models.shadows", counted)
    monkeypatch.delenv("PRIVET_DATA", raising=False)  # else it is one of the options
    stopped = trained("attack run --shadows 8 --alarms 0.01")
    assert stopped.code == 130
    assert "privet attack run --shadows 8 --alarms 0.01 --resume" in stopped.err
    assert Path("run/.attack").stat().st_mode & 0o077 == 0
    told = refused(trained("attack run --shadows 8"))
    assert "an attack was stopped here" in told
    assert "go on with --resume, or remove run/.attack" in told
    done(trained("attack run --shadows 0"))
    assert Path("run/.attack/0.npz").exists()
    assert "cannot go on" in refused(trained("attack run --shadows 8 --resume --outsiders others.npz"))
    done(trained("attack run --shadows 8 --resume"))
    assert made == ["privet attack 0", "privet attack 1", "privet attack 1"]
    assert load(Path("run"), internal=True).attacks[-2].value.shadows == 8
    assert "no attack on this run was stopped" in refused(trained("attack run --resume"))


def test_a_budget_trains_fewer_by_the_plan_of_the_run(trained: Run) -> None:
    """Fails when --budget-minutes is ignored or leaves no shadow models at all, when --like-run trains something else
    than the run's plan or does not say so, or when given outsiders are not those that are used."""
    shown = done(trained("attack run --shadows 64 --budget-minutes 0.0001 --like-run --outsiders others.npz"))
    assert "Time was up after 4 of 64 shadow models" in shown.out
    whole = load(Path("run"), internal=True)
    by_shadows = [each.value for each in whole.attacks if each.value.shadows]
    assert {each.shadows for each in by_shadows} == {4}
    assert {each.note for each in by_shadows} == {"shadow models by the run's own plan"}
    assert whole.attacks[0].value.outsiders == 160


def test_held_out_rows_are_outsiders(privet: Run) -> None:
    """Fails when rows that were held out, and not learned from, are taken for members."""
    trial("trial.csv", 240, 1)
    Path("schema.toml").write_text(SCHEMA)
    done(
        privet("train trial.csv --schema schema.toml --hold-out 0.4 --epochs 1 --batch-size 100 --delta 1e-3 --out run")
    )
    shown = done(privet("attack run --shadows 0 --alarms 0.1"))
    assert "held-out private rows" in shown.out
    (first, *_) = load(Path("run"), internal=True).attacks
    assert 120 < first.value.members < 170
    assert first.value.members + first.value.outsiders == 240


def test_rows_that_meet_are_left_out_on_both_sides() -> None:
    """Fails when members keep the values that outsiders lost, so that the rows tell by themselves who was in: of 40
    common values, which most outsiders share with a member, and of numbers that no two rows share."""
    import torch

    from privet.attacks import blind_baseline
    from privet.attacks.pool import Pool
    from privet.runs.attacks.rows import _apart

    drawn = np.random.default_rng(5)
    rows = np.where(drawn.random((3000, 1)) < 0.5, drawn.integers(0, 40, (3000, 1)), 100 + drawn.random((3000, 1)))
    x, y = torch.from_numpy(rows), torch.zeros(3000, dtype=torch.long)
    members, others, left_out = _apart((x[:2000], y[:2000]), (x[2000:], y[2000:]), given=False)
    assert len(members[1]) + left_out[0] == 2000
    assert len(others[1]) + left_out[1] == 1000
    assert min(left_out) > 400
    assert float(members[0].min()) >= 100
    # The seed is fixed; over seeds, 2.5 % of sides that are alike would fail this.
    assert blind_baseline(Pool.of(members, others)).auc().lower < 0.5


def outcomes_of(**scores: tuple[float, float]) -> list[Outcome]:
    """Made-up scores of 400 members and 400 outsiders around two means."""
    drawn = np.random.default_rng(4)
    return [
        Outcome(name.replace("_", " "), drawn.normal(high, 1, 400), drawn.normal(low, 1, 400))
        for name, (high, low) in scores.items()
    ]


@pytest.mark.parametrize("differ", [False, True])
def test_the_blind_baseline_is_no_attack_on_the_model(
    trained: Run, monkeypatch: pytest.MonkeyPatch, differ: bool
) -> None:
    """Fails when the baseline, which never sees the model, is said to break its guarantee; when nobody is told that the
    sides differ by themselves; or when that leads to the advice to audit."""
    both = outcomes_of(loss_threshold=(4, 0), blind_baseline=(4 if differ else 0, 0))
    monkeypatch.setattr("privet.runs.attacks.attack._outcomes", lambda found, models: both)
    shown = " ".join(done(trained("attack run --shadows 0")).out.split())
    page = Path("run/internal.html").read_text()
    assert "blind baseline found more" not in shown
    assert "blind baseline and" not in shown
    assert ("Members and non-members differ by themselves" in shown) is differ
    assert ("Members and non-members differ by themselves" in page) is differ
    assert ("audit the run with canaries (privet train … --audit)" in shown) is not differ


def test_a_run_with_canaries_is_audited_as_it_is(trained: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when somebody whose run has canaries is told to train again."""
    from dataclasses import replace

    from privet.report import Canaries, Public
    from privet.runs.attacks import rows

    held = Public(Canaries("gradient canaries", (1.0, 0.0), (True, False), 1))
    monkeypatch.setattr(rows, "load", lambda *given, **named: replace(load(*given, **named), canaries=(held,)))
    strong = outcomes_of(loss_threshold=(4, 0), blind_baseline=(0, 0))
    monkeypatch.setattr("privet.runs.attacks.attack._outcomes", lambda found, models: strong)
    assert "canaries (privet audit run)" in " ".join(done(trained("attack run --shadows 0")).out.split())


def test_what_is_left_out_is_counted(trained: Run) -> None:
    """Fails when rows of unknown labels go without a word, or a rate that cannot be had lacks the number it takes."""
    with np.load("others.npz") as others:
        np.savez("few.npz", x=others["x"][:60], y=np.where(np.arange(60) < 7, 5, others["y"][:60]))
    shown = " ".join(done(trained("attack run --shadows 0 --outsiders few.npz")).out.split())
    assert "7 outsiders were left out: their label" in shown
    assert "0.1 % (it takes 1,000) and 1 % (it takes 100)" in shown
    assert load(Path("run"), internal=True).attacks[0].value.outsiders == 53


def test_an_attack_says_where_scores_tie() -> None:
    """Fails when 0 % by ties looks like a model that tells nothing."""
    from privet.runs.attacks.outcomes import summarize_attack

    tied = Outcome("label-only", np.ones(200), np.repeat([0.0, 1.0], 100))
    (found,) = summarize_attack([tied], (0.01,), shadows=0, notes={})
    assert found.hits[0].value == 0
    assert "50 % of outsiders tie" in found.note


def test_the_rows_of_pate_on_a_named_set_are_known(trained: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a run of PATE on a named set needs files, when rows that teachers were asked about are taken for
    outsiders, or when --data NAME means the test part, as --outsiders NAME does."""
    from dataclasses import replace

    from privet.report import Public
    from privet.runs.attacks import rows
    from privet.runs.inputs import TrainingInputs
    from privet.runs.request import TrainRequest
    from privet.training.models import ModelDescription, store

    inputs = TrainingInputs.of(TrainRequest(data="digits", method="pate"))
    assert inputs.train is not None
    assert inputs.test is not None
    described = ModelDescription("linear", inputs.facts.classes, shape=(8, 8), peak=inputs.facts.peak, scattering=False)
    store("run", described.build(), described)
    card = replace(load(Path("run")), method=Public("PATE"), data=Public("digits"), remembered=None)
    monkeypatch.setattr(rows, "load", lambda *given, **named: card)
    found = [rows.open_attacked_run(Path("run"), data, None, None).pool.inside for data in (None, "digits")]
    assert [(each.sum(), (~each).sum()) for each in found] == 2 * [(len(inputs.train), len(inputs.test))]
    monkeypatch.setattr(rows, "load", lambda *given, **named: replace(card, data=Public("own.npz")))
    assert "give --data with the rows it learned from" in refused(trained("attack run"))
    pool = rows.open_attacked_run(Path("run"), "digits", "digits", None).pool
    assert int(pool.inside.sum()) == len(inputs.train)


def test_inversion_finds_what_a_model_knows_of_a_class(trained: Run) -> None:
    """Fails when the picture is not that of the released model: here its weights are two patterns, which come back; or
    when a picture that cannot be made ends in anything but one line."""
    import torch

    from privet.runs.attacks.image_attacks import invert_classes
    from privet.runs.attacks.rows import open_attacked_run

    found = open_attacked_run(Path("run"), None, None, None)
    pattern = torch.zeros(8, 8)
    pattern[:, :4] = 1.0
    with torch.no_grad():
        for name, value in found.head.named_parameters():
            value.zero_()
            if name == "line.weight":
                value.copy_(40 * torch.stack([pattern, 1 - pattern]).flatten(1) - 20)
    found.means.update({0: pattern.double(), 1: 1 - pattern.double()})
    picture, why = invert_classes(found)
    assert why == ""
    assert picture is not None
    similar = re.findall(r"[01]: (-?[\d.]+) and (-?[\d.]+)", picture.about)
    assert [float(each) > 0.9 for _, each in similar] == [True, True]
    assert invert_classes(found, seconds=0.0)[1].startswith("The model was not inverted")


def test_bad_input_is_one_line(trained: Run) -> None:
    """Fails when a mistake ends in anything but one line that says what to do, or writes something."""
    import torch

    from privet.training.models import restore, store

    before = Path("run/internal.json").read_bytes()
    with np.load("own.npz") as own:
        np.savez("mixed.npz", x=own["x"][:50], y=own["y"][:50])
        np.savez("small.npz", x=own["x"][:, :4], y=own["y"])
        np.savez("changed.npz", x=own["x"][::-1], y=own["y"][::-1])
    Path("empty").mkdir()
    for words, told in {
        "attack nowhere": "no folder",
        "attack empty": "cannot be read",
        "attack run --outsiders mixed.npz": "hold 50 of 50 that are members, too",
        "attack run --outsiders missing.npz": "neither a file nor",
        "attack run --outsiders small.npz": "and the run learned from",
        "attack run --data changed.npz": "is not what the run was trained on",
        "attack run --data missing.npz": "is not there any more",
        "attack run --alarms 0.001": "it takes 1,000 of them or more",
        "attack run --alarms 2": "--alarms is '2'",
        "attack run --shadows 3": "take an even number",
        "attack run --shadows 0 --like-run": "--like-run is for shadow models",
        "attack run --budget-minutes 0": "--budget-minutes is 0",
        "attack run --resume": "no attack on this run was stopped",
    }.items():
        line = refused(trained(words))
        assert told in line, words
        assert "twins" not in line
    card = json.loads(before)
    card["card"]["remembered"] = None
    Path("run/internal.json").write_text(json.dumps(card))
    assert "--data is missing, and 'run' does not remember" in refused(trained("attack run"))
    done(trained("attack run --data own.npz --outsiders others.npz --shadows 0"))
    Path("run/internal.json").write_bytes(before)
    model, described = restore("run")
    with torch.no_grad():
        for value in model.parameters():
            value.fill_(float("nan"))
    store("run", model, described)
    assert "NaN" in refused(trained("attack run --shadows 4"))
    assert not Path("run/.attack").exists()  # nothing was trained for it
    assert Path("run/internal.json").read_bytes() == before


def test_a_regression_has_no_classes_to_compare(privet: Run) -> None:
    """Fails when a run that predicts a number ends in a traceback."""
    from privet.training.models import ModelDescription, store

    Path("run").mkdir()
    described = ModelDescription("linear", (), SCHEMA.replace('target = "ill"', 'target = "weight"'))
    store("run", described.build(), described)
    assert "which predicts a number" in refused(privet("attack run"))


def test_all_bands_of_a_report_share_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when each of several attacks has all of the error to itself, on the terminal or on the page."""
    asked: list[float] = []
    band = Outcome.band

    def noted(self: Outcome, error: float = 1.0) -> Band:
        asked.append(error)
        return band(self, error)

    monkeypatch.setattr(Outcome, "band", noted)
    drawn = np.random.default_rng(0)
    outcomes = [Outcome(f"attack {place}", drawn.random(200), drawn.random(200)) for place in range(4)]
    above_limit(outcomes, lambda alarms: 1.0)
    summarize_attack(outcomes, (0.01,), shadows=0, notes={})
    assert asked == [0.05 / 4 / 4] * 8
