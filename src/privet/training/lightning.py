"""Lightning: one callback, by which a `Trainer` trains a `LightningModule` privately.

The Trainer goes on counting, scheduling, validating, saving and calling its callbacks; each of its training steps is
one step of a `Run`, on the batch that was priced. The module is not wrapped. While it is being fitted, its
`training_step` is called by the run; afterwards it is what it was.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from privet.core import InvalidInput, MissingExtra
from privet.training import validate
from privet.training.data import Rows
from privet.training.plan import DPSGD
from privet.training.run import Run, RunError
from privet.training.sampling import UserRows, count_units
from privet.training.trainer_schedule import StepLoader, TrainerSchedule

if find_spec("pytorch_lightning") is None:
    raise MissingExtra("pytorch-lightning", "lightning")

# `lightning.pytorch` has classes of its own, which ask of a callback no more than these do.
from pytorch_lightning import Callback, LightningModule, Trainer

if TYPE_CHECKING:
    from privet.core import Release
    from privet.core.random import Rng
    from privet.ledger import Budget
    from privet.training.budget_charge import BudgetCharge
    from privet.training.performance import Performance
    from privet.training.rules import OperationRule
    from privet.training.sampling import Ids

__all__ = ["PrivateTraining"]

_UNSET_EPOCHS = 1000
"""What the Trainer takes for `max_epochs` when nobody said anything."""


class PrivateTraining(Callback):
    """Trains with DP-SGD as `plan` says; `release` holds the module and its bill when `fit` is done.

        private = PrivateTraining(plan, dataset)
        Trainer(max_epochs=-1, callbacks=[private]).fit(module, private.loader)
        private.release

    `training_step` returns one loss for each row of its batch (`reduction="none"`), or a dict with them as "loss"; if
    the module has a method `per_example_losses(batch, batch_idx)`, that is asked instead. Learning-rate schedules,
    validation, checkpoints and other callbacks work as always. The plan says how many steps there are.

    Guarantee: that of `plan` for one row of `dataset` (or for one user, with `users`). You must keep true that each
    loss depends on its own row alone, and that the module lets nothing else of its batches out. What `training_step`
    gives to `self.log` is dropped with a warning, unless `show_private`, and then the logs are private; loggers that
    it calls by itself, and metrics that it keeps, are not seen here.
    """

    def __init__(
        self,
        plan: DPSGD,
        dataset: Any,
        *,
        collate_fn: Any = None,
        charge: BudgetCharge | Budget | None = None,
        users: UserRows | Ids | None = None,
        performance: Performance | None = None,
        rules: Mapping[str, OperationRule] | None = None,
        rng: Rng | None = None,
        delta: float | None = None,
        show_private: bool = False,
    ) -> None:
        """Prepare the private training of a data set by a plan.

        Args:
            plan: The public settings of the run.
            dataset: Tensors, or a data set with a length; never a loader, whose batches are not those of the plan.
            collate_fn: Function that makes a batch of rows, as in torch's `DataLoader`.
            charge: The budget to charge, or a `BudgetCharge`; None charges no budget.
            users: The user of each row, or `UserRows`, where users are protected instead of rows.
            performance: Options that change neither the result nor the guarantee.
            rules: Gradient rules for further operations.
            rng: A seeded generator for tests, which taints the release.
            delta: δ of the release's guarantee; the plan's by default.
            show_private: Whether to keep what `training_step` logs; the logs are then private.
        """
        self.plan, self.show_private = plan, show_private
        self.run: Run | None = None
        self.release: Release[nn.Module] | None = None
        units = count_units(UserRows.of(users), len(Rows.of(dataset, collate_fn=collate_fn)))
        self._schedule = TrainerSchedule.of(plan, units)
        self.loader: StepLoader[int] = StepLoader(self._schedule.steps_per_epoch, lambda step: step)
        """What `fit` is given as `train_dataloaders`: it has the length of an epoch, and no rows."""
        self._batches = cast("Iterator[Any]", iter(()))
        self._dropped: set[str] = set()
        self._attach = partial(
            plan.attach,
            dataset=dataset,
            charge=charge,
            users=users,
            collate_fn=collate_fn,
            performance=performance,
            rules=rules,
            rng=rng,
            delta=delta,
        )

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Check trainer and module, attach the run, and let it have the training steps."""
        if self.run is not None:
            raise RunError(
                "this callback has trained, and a model that goes on costs anew; make another, with a ledger"
            )
        _check(trainer, pl_module)
        steps = self._limits(trainer)
        optimizer = trainer.optimizers[0]
        validate.require(pl_module, optimizer)
        hosted: Any = pl_module.optimizers()
        self.run = self._attach(pl_module, _through(optimizer, hosted.step))
        self._batches = self.run.batches()
        trainer.fit_loop.max_epochs, trainer.fit_loop.epoch_loop.max_steps = -1, steps
        pl_module.automatic_optimization = False
        pl_module.training_step = partial(self._step, trainer, pl_module, pl_module.training_step)  # type: ignore[method-assign]

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Refuse a loader that would draw rows by itself."""
        if trainer.train_dataloader is not self.loader:
            kind = type(trainer.train_dataloader).__name__
            problem = f"is a {kind}, which draws batches by itself; the guarantee is for those of the plan"
            advice = "give the callback the data set, and fit(module, callback.loader)"
            raise InvalidInput("train_dataloaders", problem, advice)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Schedules that go by steps: the Trainer leaves them to whoever steps the optimizer."""
        _schedule(trainer, pl_module, "step", batch_idx + 1)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Schedules that go by epochs."""
        _schedule(trainer, pl_module, "epoch", trainer.current_epoch + 1)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """The release."""
        if self.run is not None:
            self.release = self.run.release()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """End the run without a release."""
        self._end(trainer, pl_module)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Leave the module as it was."""
        self._end(trainer, pl_module)

    def _limits(self, trainer: Trainer) -> int:
        """The plan's number of steps; refuses limits that say otherwise."""
        steps, epochs = self._schedule.steps, self._schedule.epochs
        for name, usual in (("limit_train_batches", 1.0), ("overfit_batches", 0.0)):
            if getattr(trainer, name) != usual:
                problem = f"is {getattr(trainer, name)}, and which batches there are is the plan's to say"
                raise InvalidInput(name, problem, "leave it out, or give the plan other epochs or steps")
        if trainer.max_steps != -1:
            self._schedule.require_steps("max_steps", trainer.max_steps)
        if trainer.max_epochs not in (None, -1, _UNSET_EPOCHS, epochs, -(-steps // len(self.loader))):
            problem = f"is {trainer.max_epochs}, and the plan has {epochs:g} epochs"
            raise InvalidInput("max_epochs", problem, "give -1: the plan says when to stop")
        return steps

    def _step(
        self, trainer: Trainer, module: LightningModule, training_step: Callable[..., Any], batch: int, batch_idx: int
    ) -> None:
        """One step of the run: draw, clip, sum, add noise once, let the optimizer step."""
        run = self.run
        if run is None:
            raise RunError("there is no run; call fit")
        own: Any = getattr(module, "per_example_losses", training_step)
        given = (batch_idx,) if len(inspect.signature(own).parameters) > 1 else ()
        complete = False
        while not complete:
            rows = trainer.precision_plugin.convert_input(next(self._batches))
            rows = module.on_before_batch_transfer(rows, 0)
            rows = trainer.strategy.batch_to_device(rows, dataloader_idx=0)
            with self._unlogged(module):
                losses = _losses(own(rows, *given))
            with torch.autocast(losses.device.type, enabled=False):  # norms and sums need all the bits
                complete = run.step(losses)

    @contextmanager
    def _unlogged(self, module: LightningModule) -> Iterator[None]:
        """Let the module log nothing of private rows."""
        if self.show_private:
            yield
            return

        def drop(name: str, *value: Any, **options: Any) -> None:
            if name not in self._dropped:
                self._dropped.add(name)
                told = f"{name!r} was not logged: it comes from private rows, and nobody paid for it"
                warnings.warn(f"{told}; log it in validation_step, or give show_private=True", stacklevel=3)

        module.log = drop  # type: ignore[method-assign]
        try:
            yield
        finally:
            del module.log

    def _end(self, trainer: Trainer, module: LightningModule) -> None:
        if self.run is not None and self.release is None:
            self.run.close()
        if vars(module).pop("training_step", None) is not None:
            # The Trainer counts steps in two places, and reads the one that this switch says.
            counted, loop = trainer.global_step, trainer.fit_loop.epoch_loop
            module.automatic_optimization = True
            loop.automatic_optimization.optim_progress.optimizer.step.total.completed = counted


def _check(trainer: Trainer, module: LightningModule) -> None:
    """Refuse what a private run cannot have, by name."""
    devices = max(trainer.world_size, trainer.num_devices * trainer.num_nodes)
    if devices > 1 or trainer.model is not module:
        strategy = type(trainer.strategy).__name__
        problem = f"trains on {devices} device(s) with {strategy}, which wraps the model"
        advice = "use Trainer(devices=1), or write a loop with plan.attach under torchrun"
        raise InvalidInput("trainer", problem if devices < 2 else f"{problem} or splits it", advice)
    if len(trainer.optimizers) != 1:
        problem = f"gives {len(trainer.optimizers)} optimizers, and a step of the plan is one optimizer's"
        raise InvalidInput("configure_optimizers", problem, "use one, with several groups of parameters if need be")
    if not module.automatic_optimization:
        problem = "has automatic_optimization=False: it steps its optimizer itself, with gradients that have no noise"
        raise InvalidInput("module", problem, "let training_step return the losses and do nothing else")
    if "dataloader_iter" in inspect.signature(module.training_step).parameters:
        problem = "takes dataloader_iter, and draws its batches by itself"
        raise InvalidInput("training_step", problem, "take a batch: the plan draws it")
    if trainer.gradient_clip_val:
        problem = f"is {trainer.gradient_clip_val}, and examples are clipped one by one, by the plan"
        raise InvalidInput("gradient_clip_val", problem, "leave it out")
    if trainer.accumulate_grad_batches != 1:
        problem = f"is {trainer.accumulate_grad_batches}, and a step of the plan is one step of the optimizer"
        advice = "give the callback performance=Performance(micro_batch=…), which saves the same memory"
        raise InvalidInput("accumulate_grad_batches", problem, advice)
    if str(trainer.precision).startswith("16"):
        problem = f"is {trainer.precision}, in which single examples' gradients overflow"
        raise InvalidInput("precision", problem, 'use "bf16-mixed" or "32-true"')
    if trainer.ckpt_path is not None:
        problem = "would go on from a model whose bill is not in that checkpoint"
        advice = "save with callback.run.save(path), and go on with plan.attach(…, resume=path) in a loop of your own"
        raise InvalidInput("ckpt_path", problem, advice)


def _losses(output: Any) -> Tensor:
    """The losses in what `training_step` returned."""
    found = output.get("loss") if isinstance(output, Mapping) else output
    if not isinstance(found, Tensor) or found.dim() == 0:
        what = "a single number" if isinstance(found, Tensor) else f"a {type(found).__name__}"
        problem = f"returns {what}, and each row's own loss is needed, to be clipped by itself"
        advice = "return them (reduction='none'), or give the module a method per_example_losses(batch, batch_idx)"
        raise InvalidInput("training_step", problem, advice)
    return found


def _schedule(trainer: Trainer, module: LightningModule, interval: str, count: int) -> None:
    """As the Trainer does where it steps the optimizer itself."""
    for config in trainer.lr_scheduler_configs:
        if config.interval == interval and count % config.frequency == 0:
            metric = trainer.callback_metrics.get(config.monitor or "") if config.reduce_on_plateau else None
            if config.reduce_on_plateau and metric is None:
                continue  # nothing was validated yet
            module.lr_scheduler_step(config.scheduler, metric)


class _Through(torch.optim.Optimizer):
    """The module's optimizer, stepped by way of the Trainer, so that it counts the step and calls its hooks."""

    def __init__(self, inner: torch.optim.Optimizer, step: Callable[[], Any]) -> None:
        self._inner, self._through = inner, step

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """By way of the Trainer."""
        self._through()

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's."""
        return self._inner.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Into the optimizer."""
        self._inner.load_state_dict(state_dict)

    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The optimizer's."""
        return self._inner.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        """The optimizer's."""
        return self._inner.state


def _through(optimizer: torch.optim.Optimizer, step: Callable[[], Any]) -> torch.optim.Optimizer:
    """Under the name of the optimizer's own class, which checkpoints compare."""
    kind: Any = type(type(optimizer).__qualname__, (_Through,), {})
    hosted: torch.optim.Optimizer = kind(optimizer, step)
    return hosted
