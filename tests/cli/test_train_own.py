"""`privet train` with a model of one's own: nothing of a row leaves with the model, or in the words of an error."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from privet.ledger import Ledger, State
from tests.cli.conftest import Run
from tests.cli.test_process import ENVIRONMENT, PROGRAM
from tests.cli.test_train import done, refused
from tests.cli.test_train_committed import Killed, without_page
from tests.cli.training import patients

torch = pytest.importorskip("torch")
pytest.importorskip("polars")
safetensors = pytest.importorskip("safetensors.torch")

WORDS = "train patients.csv --schema schema.toml --budget clinic --epochs 1 --out run --model own.py:net"
OWN = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.linear = nn.Linear(inputs, classes)
        self.register_buffer("seen", torch.zeros(inputs))

    def forward(self, rows):
        {rule}
        return self.linear(rows)


def net(shape, classes):
    return Net(shape[0], classes)
"""
AT_ONCE = "if not self.training: self.seen.copy_(rows[0])"
LATER = "if not self.training and len(rows) > 50: self.seen.copy_(rows[0])"
RAISES = "if not self.training and len(rows) > 50: raise ValueError(f'odd row {rows[0].tolist()}')"
SHARES = "__deepcopy__ = lambda self, memo: self\n\n    "


@pytest.fixture
def clinic(privet: Run) -> Run:
    """`privet`, in a folder with a table, a schema and a budget."""
    patients(Path())
    done(privet("ledger create clinic --epsilon 2 --delta 1e-2"))
    return privet


@pytest.mark.parametrize("tune", ["", " --tune 2 --seed 3"])
def test_a_model_that_keeps_rows_is_refused_before_it_is_charged(clinic: Run, tune: str) -> None:
    """Catches a check that looks at a model in training mode alone: what it keeps while it is scored left with it."""
    Path("own.py").write_text(OWN.format(rule=AT_ONCE))
    assert "keeps something of the rows that it scores, in Net.seen" in refused(clinic(WORDS + tune))
    with Ledger("privet-ledger.db") as ledger:
        (entry,) = ledger.show("clinic").entries
        assert entry.state is State.ABORTED


@pytest.mark.parametrize("tune", ["", " --tune 2 --seed 3"])
def test_what_a_model_keeps_while_it_is_scored_does_not_leave(
    clinic: Run, tune: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches private rows in `model.safetensors`: a module that no try on made-up rows betrays was scored on held-out
    rows and on those that it was trained on, and then stored."""
    Path("own.py").write_text(OWN.format(rule=LATER))
    without_page(monkeypatch)
    with pytest.raises(Killed):
        clinic(WORDS + tune)
    stored = safetensors.load_file("run/model.safetensors")
    (name,) = [name for name in stored if name.endswith("seen")]
    assert not stored[name].any()


def test_a_model_that_was_changed_after_its_release_is_not_written(clinic: Run) -> None:
    """Catches a copy that is none: a module whose copy is itself was stored with the rows that it was scored on."""
    Path("own.py").write_text(OWN.format(rule=LATER).replace("def forward", SHARES + "def forward"))
    line = refused(clinic(WORDS))
    assert "after its release" in line
    assert not Path("run/model.safetensors").exists()


def test_the_words_of_an_error_are_not_shown(clinic: Run) -> None:
    """Catches a row on stderr, quoted by an exception of the user's own code."""
    del clinic
    Path("own.py").write_text(OWN.format(rule=RAISES))
    words = [*PROGRAM, *WORDS.replace("--budget clinic ", "").split()]
    found = subprocess.run(words, env=ENVIRONMENT, capture_output=True, encoding="utf-8")
    assert found.returncode == 70
    assert "internal error: ValueError;" in found.stderr
    assert "odd row" not in found.stderr
