"""The ledger and the trainers of Lightning and Hugging Face: told before any weight changes, and of the whole plan."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
import torch
from torch import Tensor, nn

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.core.unit import Whose
from privet.ledger import Ledger
from privet.ledger.charge import Charge
from privet.training import DPSGD, UserRows

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.. is deprecated"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
]
PLAN = DPSGD(noise_multiplier=1.0, batch_size=12, epochs=1, population=24, delta=1e-3)


def by_lightning(place: Path, ledger: Ledger, plan: DPSGD = PLAN, **more: Any) -> tuple[nn.Module, Callable[[], Any]]:
    pytest.importorskip("pytorch_lightning")
    from privet.training.lightning import PrivateTraining
    from tests.training.test_lightning import Classifier, X, Y, quiet

    module = Classifier()
    private = PrivateTraining(plan, (X, Y), charge=ledger.budget("rows"), rng=SeededRng(3), **more)

    def train() -> Any:
        quiet(place, private).fit(module, private.loader)
        return private

    return module, train


def by_hugging_face(
    place: Path, ledger: Ledger, plan: DPSGD = PLAN, **more: Any
) -> tuple[nn.Module, Callable[[], Any]]:
    pytest.importorskip("transformers")
    pytest.importorskip("peft")
    from privet.training.huggingface import PrivateTrainer
    from tests.training.test_huggingface import gpt2, told, words

    model = gpt2()
    trainer = PrivateTrainer(model, told(place), plan, words(), charge=ledger.budget("rows"), rng=SeededRng(3), **more)

    def train() -> Any:
        trainer.train()
        return trainer

    return model, train


def weights(model: nn.Module) -> Tensor:
    return torch.cat([each.detach().flatten().clone() for each in model.parameters()])


@pytest.mark.parametrize("by", [by_lightning, by_hugging_face])
def test_charge_is_told_before_the_weights_change(
    by: Callable[..., tuple[nn.Module, Callable[[], Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a trainer that changes weights before the ledger knows of it, or never tells the ledger at all."""
    seen: list[Tensor] = []
    draw = Charge.draw
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.create("rows", unit=PLAN.unit(), epsilon=100.0, delta=1e-2)
        model, train = by(tmp_path, ledger)
        before = weights(model)

        def noted(self: Charge) -> None:
            seen.append(weights(model))
            draw(self)

        monkeypatch.setattr(Charge, "draw", noted)
        trained = train()
        (at,) = seen
        assert torch.equal(at, before)
        assert not torch.equal(weights(model), before)
        (entry,) = ledger.show("rows").entries
        assert (entry.state.value, entry.event) == ("committed", PLAN.event())
        assert trained.run.steps == trained.run.total == 2
        assert trained.release.guarantee == PLAN.guarantee()


@pytest.mark.parametrize("by", [by_lightning, by_hugging_face])
def test_users_are_the_unit(by: Callable[..., tuple[nn.Module, Callable[[], Any]]], tmp_path: Path) -> None:
    """Catches a trainer that is given users, and samples, clips and promises rows."""
    plan = DPSGD(noise_multiplier=1.0, batch_size=4, epochs=1, population=8, delta=1e-3)
    owners = [row % 8 for row in range(24)]
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.create("rows", unit=plan.unit(Whose.USER), epsilon=100.0, delta=1e-2)
        _, train = by(tmp_path, ledger, plan, users=UserRows(owners, cap=2))
        trained = train()
        assert trained.release.unit == plan.unit(Whose.USER)
        assert trained.release.guarantee.unit.whose is Whose.USER


class _Two:
    """Processes that meet nowhere: a run for them must be refused before they would."""

    rank, size = 0, 2

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


def test_lattice_is_refused_on_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches noise on the grid that every process would draw for itself, for the same exact sum."""
    from privet.training.distributed import World

    monkeypatch.setattr(World, "here", classmethod(lambda cls: cls(_Two())))
    plan = DPSGD(noise_multiplier=1.0, batch_size=4, steps=2, population=8, delta=1e-3, noise="lattice")  # type: ignore[arg-type]
    model = nn.Linear(2, 1)
    with pytest.raises(InvalidInput, match="noise is the lattice, whose proof is for the sums of one process"):
        plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.1), (torch.zeros(8, 2), torch.zeros(8)))
