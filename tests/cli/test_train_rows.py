"""`privet train` and its files: what is called public is not private again, and what is broken is one line."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet.core.errors import InvalidInput
from privet.core.event import Approximate, Gaussian
from privet.core.random import SeededRng
from privet.core.release import Release
from privet.core.unit import Unit
from privet.ledger import Ledger, State
from privet.report import Internal, Public, load
from privet.runs.fit_stage import as_block
from privet.runs.methods import dp_sgd
from privet.runs.overlap import require_other_rows
from tests.cli.conftest import Run
from tests.cli.test_train import done, refused
from tests.cli.training import SCHEMA, patients

torch = pytest.importorskip("torch")
pytest.importorskip("polars")


@pytest.fixture
def clinic(privet: Run) -> Run:
    """`privet`, in a folder with a table, a schema and a budget."""
    patients(Path())
    done(privet("ledger create clinic --epsilon 3 --delta 1e-2"))
    return privet


def _again(place: Path) -> list[Path]:
    """A table's rows once more: with another newline, in another order, packed, and half of them among others."""
    head, *rows = place.read_text().splitlines()
    texts = {
        "newline.csv": "\n".join([head, *rows, "", ""]),
        "reversed.csv": "\n".join([head, *rows[::-1]]) + "\n",
        "blanks.csv": "\n".join([head, *(row.replace(",", " , ") for row in rows)]) + "\n",
    }
    for name, text in texts.items():
        Path(name).write_text(text)
    Path("packed.csv.gz").write_bytes(gzip.compress(place.read_bytes()))
    return [*map(Path, texts), Path("packed.csv.gz")]


@pytest.mark.parametrize("known", [True, False], ids=["schema", "no schema"])
def test_the_rows_that_are_learned_from_are_no_test(clinic: Run, known: bool) -> None:
    """Catches unpaid scores on private rows: a test file that holds the same rows, and is not the same bytes."""
    how = "--schema schema.toml" if known else "--target readmitted"
    for path in _again(Path("patients.csv")):
        line = refused(clinic(f"train patients.csv {how} --test {path} --budget clinic --out run"))
        assert "--test holds the rows of the file that is learned from" in line
    with Ledger("privet-ledger.db") as ledger:
        assert not ledger.show("clinic").entries


def test_public_rows_of_teachers_are_others_too(clinic: Run) -> None:
    """Catches questions about the private rows themselves, whose answers would be about their owners."""
    for path in _again(Path("patients.csv")):
        words = f"pate patients.csv --public {path} --schema schema.toml --teachers 20 --budget clinic --out run"
        assert "--public holds the rows of the file" in refused(clinic(words))


def test_half_of_the_rows_is_too_many_and_chance_is_not() -> None:
    """Catches a part of the private rows among public ones; and a refusal of honest rows of few values, which meet by
    chance (the false-alarm rate is below 1 in 30,000 a draw, and the seed is fixed)."""
    from privet.runs.overlap import require_other_rows

    drawn = np.random.default_rng(5)
    wide = drawn.normal(size=(400, 3))
    for shared in (50, 100, 150):
        public = np.concatenate([wide[:shared], drawn.normal(size=(200 - shared, 3))])
        if shared < 100:
            require_other_rows((wide,), (public,), "test", "give others")
            continue
        with pytest.raises(InvalidInput, match="holds many rows of the file that is learned from"):
            require_other_rows((wide,), (public,), "test", "give others")
    for values in (2, 5, 20):
        for rows in (1, 10, 300):
            narrow, other = drawn.integers(0, values, (300, 2)), drawn.integers(0, values, (rows, 2))
            require_other_rows((narrow,), (other,), "test", "give others")
    require_other_rows((wide[:0],), (wide,), "test", "give others")


@pytest.mark.parametrize("words", ["train", "train --test", "pate --public", "predict"])
def test_cut_pictures_are_one_line(privet: Run, words: str) -> None:
    """Catches an archive that was cut, or in which a letter was changed, and ended as a mistake of Privet's own."""
    drawn = np.random.default_rng(0)
    x, y = drawn.integers(0, 255, (60, 4, 4)).astype(np.uint8), drawn.integers(0, 2, 60)
    np.savez("good.npz", x=x, y=y)
    np.savez_compressed("packed.npz", x=x[::-1], y=y)
    plain, packed = Path("good.npz").read_bytes(), Path("packed.npz").read_bytes()
    np.save("array.npy", x)
    broken = [plain[:400], plain[:-30], b"", Path("array.npy").read_bytes()]
    broken += [packed[:at] + b"\xff\xff\xff" + packed[at + 3 :] for at in (0, 150, 400, len(packed) - 20)]
    pictures = "--classes 0,1 --rows 60 --out run"
    how = {
        "train": f"train broken.npz {pictures}",
        "train --test": f"train good.npz --test broken.npz {pictures}",
        "pate --public": f"pate good.npz --public broken.npz --teachers 5 {pictures}",
        "predict": "predict run broken.npz",
    }[words]
    if words == "predict":
        done(privet(f"train good.npz --method output --features pixels --score-share 0 {pictures}"))
    for content in broken:
        Path("broken.npz").write_bytes(content)
        assert "which does not hold" in refused(privet(how))


def test_a_plan_that_costs_more_than_its_block_is_not_drawn(clinic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches DP-SGD that is calibrated, after something was learned, to more than was charged for it."""
    Path("norows.toml").write_text(SCHEMA.replace("rows = 600\n", ""))
    real = dp_sgd._recipe

    def twice(request: Any, facts: Any, model: Any, epsilon: float, *more: Any) -> object:
        return real(request, facts, model, 2 * epsilon, *more)

    monkeypatch.setattr(dp_sgd, "_recipe", twice)
    line = refused(clinic("train patients.csv --schema norows.toml --epochs 1 --budget clinic --out run"))
    assert "that were charged for it" in line
    with Ledger("privet-ledger.db") as ledger:
        states = sorted(entry.state.value for entry in ledger.show("clinic").entries)
    assert states == [State.ABORTED.value, State.COMMITTED.value]  # the count was drawn, and nothing else


def test_a_release_is_no_smaller_block_than_it_cost() -> None:
    """Catches a release that is stated as a block without a look at what was done."""
    release = Release.of(torch.nn.Linear(1, 1), Gaussian(4.0), unit=Unit(), source="rows", randomness=SeededRng(0).kind)
    assert as_block(release, Approximate(1.0, 1e-5)).event == Approximate(1.0, 1e-5)
    with pytest.raises(InvalidInput, match=r"above the ε = .* that were charged"):
        as_block(release, Approximate(0.5, 1e-5))


def test_input_perturbation_looks_at_no_row_as_it_is(clinic: Run) -> None:
    """Catches scores on raw rows on a page of somebody who must not see them."""
    patients(Path("public"), 200)
    words = "train patients.csv --schema schema.toml --method input --epsilon 4 --test public/patients.csv --out run"
    assert "whose trust is local" in refused(clinic(f"{words} --compare none"))
    done(clinic(words))
    whole = load(Path("run"), internal=True)
    assert whole.scores
    assert not any(isinstance(score, Internal) for score in whole.scores)


def test_what_follows_from_what_was_learned_is_not_called_public(clinic: Run) -> None:
    """Catches a model's size, or a warning about δ, that depends on a noisy count and is called public."""
    Path("norows.toml").write_text(SCHEMA.replace("rows = 600\n", ""))
    done(clinic("train patients.csv --schema norows.toml --epochs 1 --delta 5e-3 --out run"))
    card = load(Path("run"))
    assert card.model == Public("follows from what was learned: see the plan")
    assert isinstance(card.choices, Release)
    assert any(choice.name == "model" and "numbers" in choice.value for choice in card.choices.value)
    assert card.privacy.warnings.value == ()
    done(clinic("train patients.csv --schema schema.toml --epochs 1 --delta 5e-3 --out other"))
    assert "numbers" in load(Path("other")).model.value
    assert "1/n" in load(Path("other")).privacy.warnings.value[0]


def test_parts_of_epochs_and_of_delta_are_told(clinic: Run) -> None:
    """Catches an epoch that was not made on the page, and a method that is said to be what it would be alone."""
    done(clinic("train patients.csv --schema schema.toml --epochs 2.3 --compare output --yes --out run"))
    card = load(Path("run"))
    plan = {choice.name: choice.value for choice in card.choices.value}
    assert plan["δ of each model"] == "5e-05"
    assert any("share δ" in note for note in card.privacy.notes.value)
    assert card.growth is not None
    assert card.growth.value.epochs[-1] == pytest.approx(float(plan["epochs"]), abs=0.01)
    assert card.growth.value.epochs[-1] % 1 != 0


def test_rows_that_are_written_twice_are_still_the_private_ones() -> None:
    """Fails when a public file that holds the private rows twice passes, as if all rows had twins by chance; or when
    few rows of few values, all of which a larger file holds by chance, are refused."""
    rows = np.random.default_rng(0).normal(size=(300, 4))
    for times in (2, 3):
        with pytest.raises(InvalidInput, match="the file that is learned from"):
            require_other_rows((rows,), (np.tile(rows, (times, 1)),), "test", "give others")
    few = np.arange(50)[:, None] % 61
    many = np.random.default_rng(1).integers(0, 61, (300, 1))
    require_other_rows((few,), (many,), "test", "give others")
