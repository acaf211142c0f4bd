"""A method is one file and one row of the table: everything else is there for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from torch import nn

from privet.core.release import Release
from privet.ledger import Ledger, State
from privet.report import load
from privet.runs import METHODS, FitSession, LabeledRows, MethodPlan
from tests.cli.conftest import Run, clinic, privet
from tests.cli.test_train import done, refused
from tests.runs.majority import MAJORITY, STOPS, fit

__all__ = ["clinic", "privet"]


def test_new_method_gets_ledger_resume_card_page_option_and_audit(clinic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a method of one file and one row lacks something that the others have."""
    monkeypatch.setitem(METHODS, "majority", MAJORITY)
    assert "use one of: dp-sgd, output, objective, input, pate, none, majority" in refused(
        clinic("train --method magic")
    )
    assert clinic("ledger create clinic --epsilon 4 --delta 1e-2").code == 0
    STOPS.append(1)
    words = "train patients.csv --schema schema.toml --epsilon 2 --method majority --budget clinic --out run"
    stopped = clinic(words)
    assert stopped.code == 130
    done(clinic("train --resume --out run"))
    with Ledger("privet-ledger.db") as ledger:
        (entry,) = ledger.show("clinic").entries
    assert entry.state is State.COMMITTED
    card = load(Path("run"))
    assert card.method.value == "the majority class"
    assert entry.event == card.privacy.event.value
    assert next(line.what for line in card.bill.value) == "noisy counts of the classes"
    assert "the majority class" in Path("run/report.html").read_text()
    assert done(clinic("predict run patients.csv")).out.startswith("readmitted\n")
    compared = words.replace("--budget clinic --out run", "--compare objective --yes --seed 1 --out both")
    both = done(clinic(compared))
    assert "objective perturbation" in both.out
    shown = done(clinic("audit run"))
    assert "chosen rows, fitted again" in shown.out
    done(clinic("attack run --shadows 4 --like-run"))


def test_method_that_draws_less_noise_than_it_plans_is_refuted(clinic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the audit of any method would not notice noise that is a tenth of what was planned: ε is 20, not 2.

    The released counts of 0 or 1 rows of a class are told apart by noise of deviation below 0.1."""

    def quiet(plan: MethodPlan, rows: LabeledRows, session: FitSession) -> Release[nn.Module]:
        return fit(replace(plan, settings={"scale": plan.settings["scale"] / 10}), rows, session)

    monkeypatch.setitem(METHODS, "majority", MAJORITY)
    words = "train patients.csv --schema schema.toml --epsilon 2 --score-share 0 --method majority --out run"
    done(clinic(words))
    monkeypatch.setitem(METHODS, "majority", replace(MAJORITY, fit=quiet))
    found = clinic("audit run")
    assert found.code == 1
    assert "REFUTED" in found.out
