"""The plan of a run is stored, and used in place of one that is derived again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from privet import training
from privet.core.errors import InvalidInput
from privet.report import load
from privet.runs.attacks import shadow_models
from privet.runs.attacks.epsilon_ladder import climb_ladder
from privet.runs.attacks.rows import open_attacked_run
from privet.runs.methods.dp_sgd import recipe_of
from privet.runs.plan import RunPlan
from privet.runs.plan_file import read_plan
from privet.training.plan import DPSGD
from tests.cli.conftest import Run, clinic, privet
from tests.cli.test_train import done, refused

__all__ = ["clinic", "privet"]

WORDS = "train patients.csv --schema schema.toml --epsilon 2 --epochs 2 --seed 3 --out run"


@pytest.fixture
def changed_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of Privet, whose default clip is twice as large."""

    def doubled(*given: Any, **named: Any) -> Any:
        named["clip"] = 2.0 if named.get("clip") is None else named["clip"]
        return usual(*given, **named)

    usual = training.recipe
    monkeypatch.setattr(training, "recipe", doubled)


def test_attack_and_ladder_use_the_stored_plan_where_a_default_has_changed(
    clinic: Run, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when the plan is derived again: another plan would be tried, and called the run's."""
    done(clinic(WORDS))
    card = load(Path("run"), internal=True)
    stored = recipe_of(read_plan(Path("run"), card).plan_of("dp-sgd"))
    assert stored.plan.clip != 2.0
    request.getfixturevalue("changed_default")
    learner = shadow_models.same_plan_learner(open_attacked_run(Path("run"), None, None, None), "key")
    assert isinstance(learner, shadow_models.SamePlan)
    assert recipe_of(learner.plan) == stored
    seen: list[DPSGD] = []
    usual = DPSGD.attach

    def watched(self: DPSGD, *given: Any, **named: Any) -> Any:
        seen.append(self)
        return usual(self, *given, **named)

    monkeypatch.setattr(DPSGD, "attach", watched)
    found = climb_ladder(Path("run"), card, canaries=100, confidence=0.95)
    assert {plan.clip for plan in seen} == {stored.plan.clip}
    assert found.event == stored.plan.event()


def test_resume_uses_the_stored_plan_where_a_default_has_changed(
    clinic: Run, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a run that was interrupted goes on by another plan than the one that was charged, or cannot go on."""

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    assert clinic("ledger create clinic --epsilon 4 --delta 1e-2").code == 0
    with monkeypatch.context() as patch:
        patch.setattr(DPSGD, "attach", stop)
        assert clinic(f"{WORDS} --budget clinic").code == 130
    stored = json.loads(json.loads(Path("run/.privet/run.json").read_text())["plan"])
    request.getfixturevalue("changed_default")
    done(clinic("train --resume --out run"))
    (plan,) = json.loads(Path("run/plan.json").read_text())["methods"]
    assert plan == stored["methods"][0]
    assert plan["settings"]["plan"]["clip"] != 2.0


def test_plan_that_is_not_the_cards_is_refused(clinic: Run) -> None:
    """Fails when an audit takes a plan from the folder that the card does not state."""
    done(clinic(WORDS))
    done(clinic(WORDS.replace("--epsilon 2", "--epsilon 3").replace("--out run", "--out other")))
    Path("run/plan.json").write_text(Path("other/plan.json").read_text())
    for words in ("audit run --ladder", "attack run --shadows 4 --like-run"):
        assert "plan.json that is not the plan of its card" in refused(clinic(words))
    Path("run/plan.json").unlink()
    assert "an earlier version made it" in refused(clinic("audit run --ladder"))
    Path("run/plan.json").write_text("{")
    assert "cannot be read" in refused(clinic("audit run --ladder"))


def test_plan_whose_stages_cost_something_else_is_refused(clinic: Run) -> None:
    """Fails when a stored plan states one cost, and its stages draw with less noise."""
    done(clinic(WORDS))
    text = Path("run/plan.json").read_text()
    plan = json.loads(text)
    assert RunPlan.from_json(text).to_json() + "\n" == text
    plan["scoring"][0] *= 2
    with pytest.raises(InvalidInput, match="whose stages do not cost what it says"):
        RunPlan.from_json(json.dumps(plan))
