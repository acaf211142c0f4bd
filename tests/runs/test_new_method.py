"""A method is one file and one row of the table: everything else is there for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from privet.core.random import default_rng
from privet.core.release import Release
from privet.ledger import Ledger, State
from privet.mechanisms import Cells, DiscreteLaplaceMechanism, Histogram
from privet.report import load
from privet.runs import METHODS, FitSession, LabeledRows, Method, MethodBudget, MethodPlan, PublicFacts, TrainRequest
from privet.training.models import Described, Model, Shortened
from tests.cli.conftest import Run, clinic, privet
from tests.cli.test_train import done, refused

__all__ = ["clinic", "privet"]

STOPS: list[int] = []


def counts(facts: PublicFacts) -> Histogram:
    return Histogram(Cells(-0.5, len(facts.classes) - 0.5, len(facts.classes)), facts.unit)


def plan(request: TrainRequest, facts: PublicFacts, share: MethodBudget, model: Model | None) -> MethodPlan:
    mechanism = DiscreteLaplaceMechanism.for_epsilon(share.model_epsilon, counts(facts))
    settings = {"scale": mechanism.scale}
    return MethodPlan("majority", mechanism.event, share.unit, "noisy counts of the classes", settings=settings)


def fit(plan: MethodPlan, rows: LabeledRows, session: FitSession) -> Release[nn.Module]:
    """Predict the most frequent class. Guarantee: that of the plan's event: one histogram of the labels."""
    if STOPS:
        STOPS.pop()
        raise KeyboardInterrupt
    of = counts(session.facts)
    mechanism = DiscreteLaplaceMechanism(plan.settings["scale"], of)
    released = mechanism.release(of(rows.y.numpy()), rng=session.rng or default_rng(), source=session.source)

    def model(noisy: Any) -> nn.Module:
        head = Shortened(session.model.features, len(noisy), 1.0)
        head.weight.zero_()
        head.weight[:, -1] = torch.tensor(noisy, dtype=head.weight.dtype)
        return head

    return released.map(model)


def describe(described: Described, plan: MethodPlan, head: nn.Module) -> Described:
    return replace(described, family="convex", radius=1.0)


MAJORITY = Method("majority", "the majority class", plan, fit, describe)


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
