"""`privet attack`: who was in the data? What it finds stays on the internal page."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from privet.attacks import shadows
from privet.cli import main
from privet.report import load
from tests.cli.conftest import Run
from tests.cli.test_train import done, refused

pytest.importorskip("torch")
pytest.importorskip("polars")

SCHEMA = """\
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
"""


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
    """Fails when Ctrl-C loses the shadow models that were trained, or they are taken for another attack's."""
    made: list[str] = []

    def counted(*given: object, **named: object) -> object:
        made.append(str(named["key"]))
        if len(made) == 2:
            raise KeyboardInterrupt
        return shadows(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("privet.cli.attacking.shadowing.shadows", counted)
    stopped = trained("attack run --shadows 8")
    assert stopped.code == 130
    assert "--resume" in stopped.err
    assert Path("run/.attack").stat().st_mode & 0o077 == 0
    assert "cannot go on" in refused(trained("attack run --shadows 8 --resume --outsiders others.npz"))
    done(trained("attack run --shadows 8 --resume"))
    assert made == ["privet attack 0", "privet attack 1", "privet attack 1"]
    assert load(Path("run"), internal=True).attacks[-2].value.shadows == 8
    assert "no attack on this run was stopped" in refused(trained("attack run --resume"))


def test_a_budget_trains_fewer_by_the_plan_of_the_run(trained: Run) -> None:
    """Fails when --budget-minutes is ignored or leaves no shadow models at all, when --like-run trains something else
    than the run's plan or does not say so, or when given outsiders are not those that are used."""
    done(trained("attack run --shadows 64 --budget-minutes 0.0001 --like-run --outsiders others.npz"))
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
    # Rows that fall into the same bins look alike to the model, and are left out.
    assert 120 < first.value.members < 170
    assert first.value.outsiders <= 240 - first.value.members


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
        "attack run --budget-minutes 0": "--budget-minutes is 0",
        "attack run --resume": "no attack on this run was stopped",
    }.items():
        assert told in refused(trained(words)), words
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
    assert "NaN" in refused(trained("attack run --shadows 0"))
    assert Path("run/internal.json").read_bytes() == before


def test_a_regression_has_no_classes_to_compare(privet: Run) -> None:
    """Fails when a run that predicts a number ends in a traceback."""
    from privet.training.models import Described, store

    Path("run").mkdir()
    described = Described("linear", (), SCHEMA.replace('target = "ill"', 'target = "weight"'))
    store("run", described.build(), described)
    assert "which predicts a number" in refused(privet("attack run"))
