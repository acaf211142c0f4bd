"""Lightning's Trainer under a plan: is privacy really on, and is everything else as it was?"""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from pytorch_lightning import Callback, LightningModule, Trainer
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from privet.core.errors import InvalidInput, MissingExtra
from privet.core.random import SeededRng
from privet.ledger import Ledger
from privet.training import DPSGD, Performance, RunError
from privet.training.lightning import PrivateTraining
from tests.training.keys import CountedKeys

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.. is deprecated"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
]

N = 24
SOURCE = torch.Generator().manual_seed(0)
X, Y = torch.randn(N, 6, generator=SOURCE), torch.randint(0, 3, (N,), generator=SOURCE)


class Classifier(LightningModule):
    """As users write them, but for `reduction="none"`."""

    def __init__(self, rate: float = 1.0) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3))
        self.rate = rate
        self.steps = 0

    def forward(self, x: Tensor) -> Any:
        return self.net(x)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        x, y = batch
        return F.cross_entropy(self(x), y, reduction="none")

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=self.rate)

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        self.steps += 1


class Validated(Classifier):
    """Looks at rows that are not private."""

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        x, y = batch
        self.log("val_loss", F.cross_entropy(self(x), y))


def weights(module: nn.Module) -> Tensor:
    """All weights, as one vector."""
    return torch.cat([p.detach().flatten().double() for p in module.parameters()])


def quiet(place: Path, *callbacks: Callback, **options: Any) -> Trainer:
    """A Trainer on a CPU that says nothing."""
    silent: dict[str, Any] = {
        "max_epochs": -1,
        "accelerator": "cpu",
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "default_root_dir": place,
        "callbacks": list(callbacks),
    }
    return Trainer(**(silent | options))


def everything(noise: float = 0.0, clip: float = 1.0, steps: int = 1) -> DPSGD:
    """A plan in which every row is in every batch."""
    return DPSGD(noise_multiplier=noise, clip=clip, batch_size=N, sample_rate=1.0, steps=steps, delta=1e-3)


def moved(
    place: Path,
    module: LightningModule,
    plan: DPSGD,
    rows: Any = (X, Y),
    performance: Performance | None = None,
    **options: Any,
) -> Tensor:
    """How far a training moved the weights."""
    before = weights(module)
    private = PrivateTraining(plan, rows, rng=SeededRng(3), performance=performance)
    quiet(place, private, **options).fit(module, private.loader)
    return weights(module) - before


class TestIsItOn:
    """What would stay unnoticed if noise, clip or model were not the ones of the plan."""

    def test_noise_of_the_plan_reaches_the_weights_of_the_users_module(self, tmp_path: Path) -> None:
        """With σ = 1000 the weights move by rate·σ·clip/batch_size in each step and direction, with σ = 0 by at most
        rate·clip. A module whose forward pass is another's would show. False alarm: six deviations of a χ, 2e-9."""
        loud = moved(tmp_path, Classifier(0.01), everything(1000.0, steps=3))
        still = moved(tmp_path, Classifier(0.01), everything(0.0, steps=3))
        assert 0 < still.norm() <= 3 * 0.01
        assert loud.square().mean().sqrt() == pytest.approx(sqrt(3) * 10 / N, rel=6 / sqrt(2 * len(loud)) + 1e-3)

    def test_one_huge_example_moves_the_sum_by_the_clip_and_no_more(self, tmp_path: Path) -> None:
        """A row a million times larger than the others, through a layer without a bound on it."""

        class Plain(Classifier):
            def training_step(self, batch: Any, batch_idx: int) -> Any:
                return (self.net[0](batch[0]) - 1).square().mean(1)

        rows = X.clone()
        rows[0] *= 1e6
        clip = 0.01
        with_it = moved(tmp_path, Plain(), everything(clip=clip), (rows, Y))
        without = moved(tmp_path, Plain(), everything(clip=clip), (rows[1:], Y[1:]))
        assert 0.99 * clip < float((with_it - without).norm()) * N <= clip * (1 + 1e-4)

    def test_clipped_sum_is_that_of_a_loop_over_single_rows(self, tmp_path: Path) -> None:
        """Through the Trainer, with micro-batches, in float64, against autograd on one row at a time."""
        module, clip = Classifier().double(), 0.3
        total = torch.zeros_like(weights(module))
        for x, y in zip(X.double(), Y, strict=True):
            loss = F.cross_entropy(module(x[None]), y[None])
            flat = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(module.parameters()))])
            total += flat * min(1.0, clip / float(flat.norm()))
        got = -moved(
            tmp_path,
            module,
            everything(clip=clip),
            (X.double(), Y),
            Performance(micro_batch=5),
            precision="64-true",
        )
        assert float((got * N - total).norm() / total.norm()) < 1e-5

    @pytest.mark.parametrize("micro_batch", [None, 4])
    def test_one_noise_one_optimizer_step_and_one_count_for_each_step(
        self, tmp_path: Path, micro_batch: int | None
    ) -> None:
        """Were micro-batches noised one by one, or did the Trainer step once more, the counts would differ."""
        module, rng, taken = Classifier(), CountedKeys(3), [0]
        assert weights(module).numel() < 1 << 19

        class Hooked(Callback):
            """Counts what the torch optimizer itself does."""

            def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
                trainer.optimizers[0].register_step_post_hook(lambda *_: taken.append(taken.pop() + 1))

        private = PrivateTraining(
            DPSGD(noise_multiplier=1.0, batch_size=12, epochs=3, delta=1e-3),
            (X, Y),
            rng=rng,
            performance=Performance(micro_batch=micro_batch),
        )
        trainer = quiet(tmp_path, Hooked(), private)
        trainer.fit(module, private.loader)
        assert private.run is not None
        counts = [rng.drawn, taken[0], private.run.steps, private.run.total, trainer.global_step, module.steps]
        assert counts == [6] * 6
        assert trainer.current_epoch == 3

    def test_empty_batches_are_steps(self, tmp_path: Path) -> None:
        """Rows that are drawn with chance 10⁻⁶: the batches are empty, and the noise comes all the same."""
        plan = DPSGD(noise_multiplier=10.0, batch_size=1, sample_rate=1e-6, steps=5, delta=1e-3)
        assert moved(tmp_path, Classifier(), plan).square().mean().sqrt() == pytest.approx(10 * sqrt(5), rel=0.3)

    def test_bf16_keeps_norms_and_noise_in_float32(self, tmp_path: Path) -> None:
        """Lightning calls the step inside autocast; norms in bfloat16 would let a clipped part be 0.4 % too long."""
        clip = 0.01
        with_it = moved(tmp_path, Classifier(), everything(clip=clip), precision="bf16-mixed")
        without = moved(tmp_path, Classifier(), everything(clip=clip), (X[1:], Y[1:]), precision="bf16-mixed")
        assert 0.99 * clip < float((with_it - without).norm()) * N <= clip * (1 + 1e-4)


class TestModule:
    """The user's module, before, during and after."""

    def test_stays_what_it_was(self, tmp_path: Path) -> None:
        """Nothing of the callback's is left on it: class, attributes, pickling, and that it may be fitted plainly."""
        module = Classifier()
        kind, own = type(module), set(vars(module))
        private = PrivateTraining(DPSGD(epsilon=8.0, delta=1e-3, batch_size=8, epochs=2), (X, Y))
        quiet(tmp_path, private).fit(module, private.loader)
        assert private.release is not None
        assert private.release.value is module
        assert private.release.guarantee is not None
        assert private.release.guarantee.epsilon.upper <= 8.0
        assert type(module) is kind
        assert set(vars(module)) <= own | {"_hparams"}  # which the Trainer looked for
        assert module.automatic_optimization
        assert torch.equal(weights(pickle.loads(pickle.dumps(module))), weights(module))

    @pytest.mark.parametrize("shape", ["dict", "method", "batch only"])
    def test_ways_to_give_the_losses(self, tmp_path: Path, shape: str) -> None:
        """All of them train as the plain one does."""

        class Dict(Classifier):
            def training_step(self, batch: Any, batch_idx: int) -> Any:
                return {"loss": super().training_step(batch, batch_idx)}

        class Method(Classifier):
            def per_example_losses(self, batch: Any, batch_idx: int) -> Tensor:
                losses: Tensor = Classifier.training_step(self, batch, batch_idx)
                return losses

            def training_step(self, batch: Any, batch_idx: int) -> Any:
                return self.per_example_losses(batch, batch_idx).mean()

        class Short(Classifier):
            def training_step(self, batch: Any) -> Any:  # type: ignore[override]
                return super().training_step(batch, 0)

        module = {"dict": Dict, "method": Method, "batch only": Short}[shape]()
        assert torch.equal(moved(tmp_path, module, everything()), moved(tmp_path, Classifier(), everything()))

    def test_schedules_validation_and_checkpoints(self, tmp_path: Path) -> None:
        """The Trainer leaves schedules alone where it does not step the optimizer itself; they must go on."""

        class Scheduled(Validated):
            def configure_optimizers(self) -> Any:
                optimizer = torch.optim.SGD(self.parameters(), lr=1.0)
                by_step = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
                return {"optimizer": optimizer, "lr_scheduler": {"scheduler": by_step, "interval": "step"}}

        module = Scheduled()
        private = PrivateTraining(DPSGD(noise_multiplier=1.0, batch_size=8, epochs=2, delta=1e-3), (X, Y))
        saved = ModelCheckpoint(tmp_path, save_top_k=-1)
        trainer = quiet(tmp_path, private, saved, enable_checkpointing=True)
        trainer.fit(module, private.loader, DataLoader(TensorDataset(X, Y), batch_size=8))
        assert trainer.optimizers[0].param_groups[0]["lr"] == pytest.approx(0.5**6)
        assert "val_loss" in trainer.callback_metrics
        assert sorted(each.name for each in tmp_path.glob("*.ckpt")) == ["epoch=0-step=3.ckpt", "epoch=1-step=6.ckpt"]
        again = Scheduled.load_from_checkpoint(saved.best_model_path)
        assert torch.equal(weights(again), weights(module))

    @pytest.mark.parametrize("monitored", [False, True])
    def test_schedules_by_epoch(self, tmp_path: Path, monitored: bool) -> None:
        """One step of the schedule after each epoch, with what was validated if it asks for that; no loss is an
        improvement by the threshold given, so that the second one halves the rate each time, too."""

        class Scheduled(Validated):
            def configure_optimizers(self) -> Any:
                optimizer = torch.optim.SGD(self.parameters(), lr=1.0)
                if not monitored:
                    return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)]
                by_loss = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0, threshold=1e9)
                return {"optimizer": optimizer, "lr_scheduler": {"scheduler": by_loss, "monitor": "val_loss"}}

        private = PrivateTraining(DPSGD(noise_multiplier=1.0, batch_size=8, epochs=3, delta=1e-3), (X, Y))
        trainer = quiet(tmp_path, private)
        trainer.fit(Scheduled(), private.loader, DataLoader(TensorDataset(X, Y), batch_size=8))
        assert trainer.optimizers[0].param_groups[0]["lr"] == pytest.approx(0.5**3)

    def test_logs_of_private_rows_are_dropped(self, tmp_path: Path) -> None:
        """With a warning that says where to log instead; asked for, they are logged."""

        class Chatty(Classifier):
            def training_step(self, batch: Any, batch_idx: int) -> Any:
                losses = super().training_step(batch, batch_idx)
                self.log("train_loss", losses.mean())
                self.log_dict({"train_worst": losses.max()})
                return losses

        private = PrivateTraining(everything(1.0), (X, Y))
        trainer = quiet(tmp_path, private)
        with pytest.warns(UserWarning, match="was not logged: it comes from private rows") as caught:
            trainer.fit(Chatty(), private.loader)
        assert sum("was not logged" in str(each.message) for each in caught) == 2
        assert not trainer.callback_metrics
        shown = PrivateTraining(everything(1.0), (X, Y), show_private=True)
        trainer = quiet(tmp_path, shown)
        trainer.fit(Chatty(), shown.loader)
        assert {"train_loss", "train_worst"} <= set(trainer.callback_metrics)


class TestRun:
    """What the run costs, however it ends."""

    def test_a_run_that_is_stopped_costs_the_whole_plan(self, tmp_path: Path) -> None:
        """When to stop may depend on the data, so only the plan's price is proven; the ledger has it."""
        plan = DPSGD(noise_multiplier=1.0, batch_size=8, epochs=4, population=N, delta=1e-3)
        with Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
            ledger.create("rows", unit=plan.unit(), epsilon=100.0, delta=1e-2)
            private = PrivateTraining(plan, (X, Y), charge=ledger.budget("rows"))
            stop = EarlyStopping("val_loss", stopping_threshold=1e9)
            trainer = quiet(tmp_path, private, stop)
            trainer.fit(Validated(), private.loader, DataLoader(TensorDataset(X, Y), batch_size=8))
            assert trainer.global_step == 3
            assert private.release is not None
            assert private.release.guarantee == plan.guarantee()
            assert [entry.state.value for entry in ledger.show("rows").entries] == ["committed"]

    def test_an_error_leaves_the_module_as_it_was_and_the_charge_where_it_stands(self, tmp_path: Path) -> None:
        """Refused before the first step: given back. After it: spent, without a release."""

        class Failing(Classifier):
            calls = 0

            def training_step(self, batch: Any, batch_idx: int) -> Any:
                self.calls += 1
                if self.calls > 4:
                    raise ZeroDivisionError
                return super().training_step(batch, batch_idx)

        plan = DPSGD(noise_multiplier=1.0, batch_size=8, epochs=4, population=N, delta=1e-3)
        with Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
            ledger.create("rows", unit=plan.unit(), epsilon=100.0, delta=1e-2)
            module = Failing()
            private = PrivateTraining(plan, (X, Y), charge=ledger.budget("rows"))
            with pytest.raises(ZeroDivisionError):
                quiet(tmp_path, private).fit(module, private.loader)
            assert private.release is None
            assert module.automatic_optimization
            assert "training_step" not in vars(module)
            private = PrivateTraining(plan, (X, Y), charge=ledger.budget("rows"))
            with pytest.raises(InvalidInput, match="train_dataloaders is a DataLoader, which draws batches by itself"):
                quiet(tmp_path, private).fit(module, DataLoader(TensorDataset(X, Y), batch_size=8))
            assert [entry.state.value for entry in ledger.show("rows").entries] == ["aborted", "drawing"]

    def test_only_once(self, tmp_path: Path) -> None:
        """A second training of the same weights would come with a bill for the second half alone."""
        private = PrivateTraining(everything(1.0), (X, Y))
        quiet(tmp_path, private).fit(Classifier(), private.loader)
        with pytest.raises(RunError, match="has trained"):
            quiet(tmp_path, private).fit(Classifier(), private.loader)

    def test_average_is_of_the_module(self, tmp_path: Path) -> None:
        """The averaged copy is a plain module too: the Trainer and the callback are no part of it."""
        plan = DPSGD(noise_multiplier=1.0, batch_size=8, epochs=2, delta=1e-3, average=0.5)
        private, module = PrivateTraining(plan, (X, Y)), Classifier()
        quiet(tmp_path, private).fit(module, private.loader)
        assert private.release is not None
        copied = private.release.value
        assert isinstance(copied, Classifier)
        assert copied is not module
        assert copied.automatic_optimization
        assert set(vars(copied)) <= set(vars(Classifier())) | {"_hparams"}
        assert not torch.equal(weights(copied), weights(module))


class Two(Classifier):
    """As for adversarial training; the Trainer itself refuses two optimizers unless the module steps them."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False

    def configure_optimizers(self) -> Any:
        halves = (self.net[0], self.net[2])
        return [torch.optim.SGD(half.parameters(), lr=0.1) for half in halves]


class Manual(Classifier):
    """Steps by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False


class Mean(Classifier):
    """What most modules return."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return super().training_step(batch, batch_idx).mean()


class Silent(Classifier):
    """Returns nothing."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        super().training_step(batch, batch_idx)


class Contrastive(Classifier):
    """Every row's loss depends on all rows."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        rows = F.normalize(self(batch[0]), dim=1)
        return F.cross_entropy(rows @ rows.T, torch.arange(len(rows)), reduction="none")


class Pulling(Classifier):
    """Draws its own batches."""

    def training_step(self, dataloader_iter: Any) -> Any:  # type: ignore[override]
        return super().training_step(next(dataloader_iter), 0)


class Normed(Classifier):
    """Couples the rows of a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.Linear(12, 3))


class TestRefused:
    """What would break the guarantee is refused, with the reason and the way out."""

    @pytest.mark.parametrize(
        ("module", "match"),
        [
            (Two, "gives 2 optimizers"),
            (Manual, "automatic_optimization=False"),
            (Mean, r"training_step returns a single number, and each row's own loss is needed"),
            (Silent, "training_step returns a NoneType"),
            (Contrastive, "do not belong to one example each"),
            pytest.param(
                Pulling,
                "dataloader_iter",
                marks=pytest.mark.filterwarnings("ignore:You are using the `dataloader_iter` step flavor"),
            ),
            (Normed, "BatchNorm1d"),
        ],
    )
    def test_modules(self, tmp_path: Path, module: Callable[[], LightningModule], match: str) -> None:
        """Each would be trained without the guarantee, or not as meant."""
        with pytest.raises(InvalidInput, match=match):
            moved(tmp_path, module(), everything())

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"max_steps": 5}, "max_steps is 5, and the plan has 6 steps"),
            ({"limit_train_batches": 2}, "limit_train_batches is 2, and which batches there are is the plan's to say"),
            ({"overfit_batches": 1}, "overfit_batches is 1, and which batches there are is the plan's to say"),
            ({"max_epochs": 4}, "max_epochs is 4, and the plan has 3 epochs"),
            ({"gradient_clip_val": 0.5}, "gradient_clip_val is 0.5, and examples are clipped one by one"),
            ({"accumulate_grad_batches": 2}, "micro_batch"),
            ({"fast_dev_run": True}, "max_steps is 1"),
            ({"precision": "16-true"}, "bf16-mixed"),
        ],
    )
    def test_trainers(self, tmp_path: Path, options: dict[str, Any], match: str) -> None:
        """What the Trainer is told and the plan says must agree."""
        plan = DPSGD(noise_multiplier=1.0, batch_size=12, epochs=3, delta=1e-3)
        with pytest.raises(InvalidInput, match=match):
            moved(tmp_path, Classifier(), plan, **options)

    def test_trainers_that_agree(self, tmp_path: Path) -> None:
        """What the plan says too may be said."""
        plan = DPSGD(noise_multiplier=1.0, batch_size=12, epochs=3, delta=1e-3)
        assert moved(tmp_path, Classifier(), plan, max_epochs=3, max_steps=6).norm() > 0

    def test_several_devices(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Told by the Trainer, since two real ones would have to be started."""
        monkeypatch.setattr(Trainer, "world_size", 2)
        with pytest.raises(InvalidInput, match=r"trains on 2 device\(s\) with SingleDeviceStrategy"):
            moved(tmp_path, Classifier(), everything())

    def test_checkpoints_without_a_bill(self, tmp_path: Path) -> None:
        """A Trainer's checkpoint has the weights, and not what they have cost."""
        module, private = Classifier(), PrivateTraining(everything(1.0), (X, Y))
        trainer = quiet(tmp_path, private)
        trainer.fit(module, private.loader)
        trainer.save_checkpoint(tmp_path / "last.ckpt")
        private = PrivateTraining(everything(1.0), (X, Y))
        with pytest.raises(InvalidInput, match="ckpt_path would go on from a model whose bill"):
            quiet(tmp_path, private).fit(Classifier(), private.loader, ckpt_path=tmp_path / "last.ckpt")

    def test_loaders(self) -> None:
        """A loader draws by itself; the data set is what is needed."""
        with pytest.raises(InvalidInput, match=r"pass loader\.dataset"):
            PrivateTraining(everything(), DataLoader(TensorDataset(X, Y), batch_size=4))


def test_absent_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, at import, and an ImportError for those who catch one."""
    monkeypatch.setitem(sys.modules, "pytorch_lightning", None)
    monkeypatch.delitem(sys.modules, "privet.training.lightning")
    with pytest.raises(ImportError) as caught:
        importlib.import_module("privet.training.lightning")
    assert isinstance(caught.value, MissingExtra)
    assert str(caught.value) == "pytorch-lightning is not installed; run: pip install 'privet[lightning]'"
