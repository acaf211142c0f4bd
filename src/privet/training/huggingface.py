"""Hugging Face: a `Trainer` that trains privately. The model is not wrapped, and stays what it is.

The Trainer's loop goes on counting, scheduling, evaluating, saving and calling its callbacks. What it draws, clips and
hands to the optimizer is replaced: each of its steps is one step of a `Run`, on the batch that was priced.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from math import isclose
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core import InvalidInput, MissingExtra
from privet.training.data import Rows, spread
from privet.training.performance import Performance
from privet.training.plan import DPSGD
from privet.training.run import Run, RunError
from privet.training.sampling import UserRows, count_units
from privet.training.trainer_schedule import StepLoader, TrainerSchedule

if find_spec("transformers") is None:
    raise MissingExtra("transformers", "transformers")
if find_spec("accelerate") is None:  # which the Trainer needs
    raise MissingExtra("accelerate", "transformers")

from transformers import DataCollatorWithFlattening, Trainer, TrainingArguments
from transformers.models.auto import modeling_auto
from transformers.trainer_utils import TrainOutput

if TYPE_CHECKING:
    from privet.core import Release
    from privet.core.random import Rng
    from privet.ledger import Budget
    from privet.training.budget_charge import BudgetCharge
    from privet.training.rules import OperationRule
    from privet.training.sampling import Ids

__all__ = ["Losses", "PrivateTrainer"]

Losses: TypeAlias = Callable[[Any, Mapping[str, Any]], Tensor]
"""From the model's output and the batch to one loss for each row."""

_IGNORED = -100
"""Hugging Face's mark of a token that is no target."""
_PACKED = ("cu_seq_lens_k", "cu_seq_lens_q", "cu_seqlens", "max_length_k", "max_length_q", "seq_idx", "shift_labels")
"""What collators add that put several examples into one row."""


class _No(NamedTuple):
    """A setting of `TrainingArguments` that private training cannot have."""

    name: str
    problem: str
    advice: str


_WHOLE = "train on one device with the plain model"
_REFUSED = (
    _No("auto_find_batch_size", "begins again after private rows were used", "give Performance(micro_batch='auto')"),
    _No("dataloader_drop_last", "leaves rows out by itself, and the plan draws the batches", "leave it out"),
    _No("deepspeed", "splits the model, so that no example's whole gradient can be clipped", _WHOLE),
    _No("fp16", "scales losses, and single examples' gradients overflow in it", "use bf16=True, or neither"),
    _No("fsdp", "shards the model, so that no example's whole gradient can be clipped", _WHOLE),
    _No(
        "gradient_checkpointing",
        "throws away what each example's gradient is read from",
        "leave it out, and save memory with gradient_accumulation_steps, which become micro-batches",
    ),
    _No("group_by_length", "draws batches by the rows' lengths, and the plan draws them", "leave it out"),
    _No("include_num_input_tokens_seen", "counts the tokens of private batches", "leave it out"),
    _No("neftune_noise_alpha", "scales its noise by the longest row of the batch, which couples rows", "leave it out"),
    _No("parallelism_config", "splits the model or its inputs", _WHOLE),
    _No("torch_compile", "hides the operations that each example's gradient is read from", "leave it out"),
    _No("use_liger_kernel", "fuses the operations that each example's gradient is read from", "leave it out"),
)


class PrivateTrainer(Trainer):
    """A `transformers.Trainer` that trains with DP-SGD as `plan` says; `release` holds the model and its bill.

    Guarantee: that of `plan` for one row of `train_dataset` (or for one user, with `users`). You must keep true that
    a row holds one unit's data and nobody else's (no blocks cut from joined texts: a text that is spread over several
    rows is protected in each of them, not as a whole), and that padded tokens are masked (`attention_mask`). The losses
    of private batches are in no log, unless `show_private`, and then the logs are private.

    From `args` come the learning rate and its schedule, weight decay, evaluation, saving and logging. The plan says how
    many steps there are and how large a batch is, so `max_steps`, `num_train_epochs` and `per_device_train_batch_size`
    may be left out, and are refused if they say otherwise. `gradient_accumulation_steps` n > 1 mean micro-batches of
    `per_device_train_batch_size` rows. `max_grad_norm` is off: examples are clipped one by one, by the plan.
    """

    def __init__(
        self,
        model: nn.Module,
        args: TrainingArguments,
        plan: DPSGD,
        train_dataset: Any,
        *,
        losses: Losses | None = None,
        eval_dataset: Any = None,
        data_collator: Any = None,
        processing_class: Any = None,
        compute_metrics: Any = None,
        preprocess_logits_for_metrics: Any = None,
        callbacks: Any = None,
        optimizers: tuple[torch.optim.Optimizer | None, Any] = (None, None),
        optimizer_cls_and_kwargs: Any = None,
        charge: BudgetCharge | Budget | None = None,
        users: UserRows | Ids | None = None,
        performance: Performance | None = None,
        rules: Mapping[str, OperationRule] | None = None,
        rng: Rng | None = None,
        delta: float | None = None,
        show_private: bool = False,
    ) -> None:
        """Check everything that can be checked before a row is used.

        Args:
            model: A Hugging Face model, with or without PEFT adapters.
            args: Training arguments, as in `Trainer`.
            plan: The public settings of the run.
            train_dataset: Rows, each of one unit; a list of dicts, or a data set with a length.
            losses: Function from the model's output (computed without "labels") and the batch to one loss for each row;
                needed for models that are neither language models nor classifiers.
            eval_dataset: Data set to evaluate on, as in `Trainer`.
            data_collator: Function that makes a batch of rows, as in `Trainer`.
            processing_class: Tokenizer or processor, as in `Trainer`.
            compute_metrics: Function that computes the metrics of an evaluation, as in `Trainer`.
            preprocess_logits_for_metrics: Function that transforms the logits before metrics, as in `Trainer`.
            callbacks: Callbacks of the training loop, as in `Trainer`.
            optimizers: Optimizer and learning-rate scheduler, as in `Trainer`.
            optimizer_cls_and_kwargs: Class and arguments of an optimizer, as in `Trainer`.
            charge: The budget to charge, or a `BudgetCharge`; None charges no budget.
            users: The user of each row, or `UserRows`, where users are protected instead of rows.
            performance: Options that change neither the result nor the guarantee.
            rules: Gradient rules for further operations.
            rng: A seeded generator for tests, which taints the release.
            delta: δ of the release's guarantee; the plan's by default.
            show_private: Whether to log the losses of private batches; the logs are then private.

        Raises:
            InvalidInput: An argument cannot be used for private training.
        """
        others = eval_dataset.values() if isinstance(eval_dataset, dict) else [eval_dataset]
        if any(each is train_dataset for each in others):
            problem = "is the training set, and scores on it are an unpaid look at private rows"
            raise InvalidInput("eval_dataset", problem, "evaluate on rows that are public, or others")
        if isinstance(data_collator, DataCollatorWithFlattening):
            raise _packed("data_collator", "is a DataCollatorWithFlattening, which joins a batch into one row")
        super().__init__(
            model=model,
            args=_private(args, plan, performance),
            data_collator=data_collator,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=processing_class,
            compute_metrics=compute_metrics,
            callbacks=callbacks,
            optimizers=cast(Any, optimizers),
            optimizer_cls_and_kwargs=optimizer_cls_and_kwargs,
            preprocess_logits_for_metrics=preprocess_logits_for_metrics,
        )
        self.plan, self.losses, self.show_private = plan, losses, show_private
        self.run: Run | None = None
        self.release: Release[nn.Module] | None = None
        self._mean = losses if losses is not None else _mean_of(model, self.args.label_smoothing_factor)
        self._whole = bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))
        self._batches = cast("Iterator[Any]", iter(()))
        collate = self._get_collator_with_removed_columns(self.data_collator, description="Training")
        rows = Rows.of(train_dataset, collate_fn=collate)
        rows.batch(spread(len(rows)))  # rows that cannot be put together show here, before anything is charged
        schedule = TrainerSchedule.of(plan, count_units(UserRows.of(users), len(rows)))
        _require_length(args, schedule)
        self.args.max_steps, self._steps_per_epoch = schedule.steps, schedule.steps_per_epoch
        self._attach = partial(
            plan.attach,
            dataset=train_dataset,
            charge=charge,
            users=users,
            collate_fn=collate,
            performance=performance or _performance(args),
            rules=rules,
            rng=rng,
            delta=delta,
        )

    def train(
        self, resume_from_checkpoint: str | bool | None = None, trial: Any = None, ignore_keys_for_eval: Any = None
    ) -> TrainOutput:
        """Train as planned, once; `release` is there afterwards.

        What is returned has None for `training_loss`, unless `show_private`: it would be a mean over private rows, for
        which nobody paid.

        Guarantee: that of `plan`, however early a callback stops the training (see `PrivateTrainer`).
        """
        if resume_from_checkpoint:
            problem = "would go on from a model whose bill is not in that checkpoint"
            advice = (
                "save with trainer.run.save(path), and go on with plan.attach(…, resume=path) in a loop of your own"
            )
            raise InvalidInput("resume_from_checkpoint", problem, advice)
        if trial is not None:
            raise InvalidInput("trial", "looks at the private rows once for each trial", "tune on public data")
        if self.run is not None:
            raise RunError("this trainer has trained, and a model that goes on costs anew; make another, with a ledger")
        optimizer = self.create_optimizer()
        self.run = self._attach(cast(nn.Module, self.model), optimizer)
        try:
            self._batches = self.run.batches()
            output = super().train(ignore_keys_for_eval=ignore_keys_for_eval)
            self.release = self.run.release()
        finally:
            if self.release is None:
                self.run.close()
            self.optimizer = optimizer
            # Under bf16 accelerate puts a function of its own in the place of `model.forward`.
            self.accelerator.unwrap_model(self.model, keep_fp32_wrapper=False)
        if self.show_private:
            return output
        metrics = {name: value for name, value in output.metrics.items() if name != "train_loss"}
        return TrainOutput(output.global_step, cast(float, None), metrics)

    def get_train_dataloader(self) -> Any:
        """Stands for a loader: as many entries as an epoch has steps, and nothing in them."""
        return StepLoader(self._steps_per_epoch, lambda _: {})

    def create_scheduler(self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None) -> Any:
        """As the Trainer does, for the optimizer that the run steps; the Trainer's own loop must not step it again."""
        if self.run is None:
            return super().create_scheduler(num_training_steps, optimizer)
        scheduler = super().create_scheduler(num_training_steps, self.run.optimizer)
        self.optimizer = cast(Any, _Stepped(self.run.optimizer))
        return scheduler

    def training_step(self, model: nn.Module, inputs: Any, num_items_in_batch: Any = None) -> Tensor:
        """One step of the run: draw, clip, sum, add noise once, let the optimizer step."""
        run = self.run
        if run is None:
            raise RunError("there is no run; call train()")
        model.train()
        optimizer: Any = run.optimizer
        if callable(getattr(optimizer, "train", None)):
            optimizer.train()
        total, rows, complete = torch.zeros((), device=self.args.device), 0, False
        while not complete:
            batch = self._prepare_inputs(next(self._batches))
            with self.compute_loss_context_manager():
                losses = self._per_example(model, batch)[0]
            if self.show_private:
                total, rows = total + losses.detach().sum(), rows + len(losses)
            with torch.autocast(self.args.device.type, enabled=False):  # norms and sums need all the bits
                complete = run.step(losses)
        return total / max(rows, 1)

    def compute_loss(
        self, model: nn.Module, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """For evaluation: the Trainer's own, or the mean of `losses`."""
        if self.losses is None:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        losses, outputs = self._per_example(model, inputs)
        return (losses.mean(), outputs) if return_outputs else losses.mean()

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """As the Trainer does, without the losses of private batches."""
        hidden = () if self.show_private else ("loss", "train_loss")
        super().log({name: value for name, value in logs.items() if name not in hidden}, start_time)

    def floating_point_ops(self, inputs: Any) -> int:
        """Not counted: the number would tell how large private batches were."""
        return 0

    def _per_example(self, model: nn.Module, batch: Mapping[str, Any]) -> tuple[Tensor, Any]:
        """One loss for each row, and the model's output."""
        _refuse_packed(batch)
        # A model that is given labels computes a mean over the batch as well, for nothing; some need them as inputs.
        inputs = {name: value for name, value in batch.items() if self._whole or name != "labels"}
        outputs = model(**inputs)
        return self._mean(outputs, batch), outputs


class _Stepped:
    """The optimizer as the Trainer's loop sees it: the run has stepped it already."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer

    def step(self, closure: None = None) -> None:
        """Nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)


def _private(args: TrainingArguments, plan: DPSGD, performance: Performance | None) -> TrainingArguments:
    """The arguments that the Trainer's loop gets; what cannot be had is refused."""
    for no in _REFUSED:
        if getattr(args, no.name, None) not in (None, False, "", "no", 0, [], {}):
            raise InvalidInput(f"args.{no.name}", no.problem, no.advice)
    if args.n_gpu > 1 or args.world_size > 1:
        problem = f"trains on {max(args.n_gpu, args.world_size)} devices, over which it would wrap the model"
        raise InvalidInput("args", problem, "train on one, or write a loop with plan.attach under torchrun")
    if getattr(args, "train_sampling_strategy", "random") != "random":
        problem = f"is {args.train_sampling_strategy!r}, and the plan draws the batches"
        raise InvalidInput("args.train_sampling_strategy", problem, "leave it out")
    optim = str(getattr(args.optim, "value", args.optim))
    if "layerwise" in optim or "lomo" in optim:
        problem = f"is {optim!r}, which changes the weights in the backward pass, before there is noise"
        raise InvalidInput("args.optim", problem, "use one that takes a gradient, such as adamw_torch")
    if args.max_grad_norm not in (None, 0.0, 1.0, plan.clip):
        problem = f"is {args.max_grad_norm}, and the plan clips each example to {plan.clip}"
        raise InvalidInput("args.max_grad_norm", problem, "leave it out: one clip is enough")
    batch, per_device, pieces = plan.batch_size, args.per_device_train_batch_size, args.gradient_accumulation_steps
    if pieces > 1 and performance is not None:
        problem = "and performance are both given, and both say how large a piece is"
        raise InvalidInput("args.gradient_accumulation_steps", problem, "leave one out")
    if per_device * pieces != batch and (pieces > 1 or per_device != _DEFAULT_BATCH):
        problem = f"times gradient_accumulation_steps is {per_device} · {pieces}, and the plan's batch_size is {batch}"
        advice = "leave both out, or let the product be the plan's: rows that the model sees at once, and how often"
        raise InvalidInput("args.per_device_train_batch_size", problem, advice)
    ours = copy.copy(args)
    ours.max_grad_norm, ours.gradient_accumulation_steps = 0.0, 1
    ours.per_device_train_batch_size = batch or 1
    return ours


_DEFAULT_BATCH = TrainingArguments.per_device_train_batch_size
_DEFAULT_EPOCHS = TrainingArguments.num_train_epochs


def _performance(args: TrainingArguments) -> Performance:
    """Accumulated gradients are micro-batches."""
    several = args.gradient_accumulation_steps > 1
    return Performance(micro_batch=args.per_device_train_batch_size) if several else Performance()


def _require_length(args: TrainingArguments, schedule: TrainerSchedule) -> None:
    """Refuse arguments that ask for another length than the plan's."""
    given, epochs = args.num_train_epochs, schedule.epochs
    if args.max_steps > 0:
        schedule.require_steps("args.max_steps", args.max_steps)
    # The default is what the arguments say when nobody said anything.
    elif given != _DEFAULT_EPOCHS and not isclose(given, epochs, rel_tol=1e-6):
        problem = f"is {given:g}, and the plan has {epochs:g} epochs"
        raise InvalidInput("args.num_train_epochs", problem, "leave it out, or give the plan other epochs or steps")


def _refuse_packed(batch: Mapping[str, Any]) -> None:
    """Refuse rows that hold several examples: a row is what is clipped."""
    for name in _PACKED:
        if name in batch:
            raise _packed("train_dataset", f"gives {name!r}, by which several examples are packed into one row")
    mask, places = batch.get("attention_mask"), batch.get("position_ids")
    if isinstance(mask, Tensor) and mask.dim() == 2 and not mask.is_floating_point() and bool((mask > 1).any()):
        raise _packed("train_dataset", "numbers several examples of a row in attention_mask")
    if isinstance(places, Tensor) and places.dim() == 2:
        seen = mask if isinstance(mask, Tensor) and mask.shape == places.shape else torch.ones_like(places)
        back = (places[:, 1:] <= places[:, :-1]) & (seen[:, 1:] > 0) & (seen[:, :-1] > 0)
        if bool(back.any()):
            raise _packed("train_dataset", "gives position_ids that begin again within a row")


def _packed(argument: str, problem: str) -> InvalidInput:
    why = "; a row is what is clipped and protected, so that one person's text could enter several rows, or share one"
    return InvalidInput(argument, problem + why, "give one example a row, padded and masked")


def _mean_of(model: nn.Module, smoothing: float) -> Losses:
    """The loss of each row for the kinds of models that are known."""
    unwrap: Any = getattr(model, "get_base_model", None)  # PEFT's
    plain = model if unwrap is None else unwrap()
    config = getattr(plain, "config", None)
    names = {kind.__name__ for kind in type(plain).__mro__}
    for group, losses in _KINDS:
        known = getattr(modeling_auto, f"MODEL_FOR_{group}_MAPPING_NAMES").values()
        if any(names & {each} if isinstance(each, str) else names & set(each) for each in known):
            return partial(losses, config=config, smoothing=smoothing)
    problem = f"is needed: {type(plain).__name__} is no language model or classifier that is known here"
    raise InvalidInput("losses", problem, "give a function from its output and the batch to one loss for each row")


def _logits(outputs: Any, batch: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    labels = batch.get("labels")
    if not isinstance(labels, Tensor):
        problem = "gives no 'labels'"
        advice = "name them so; for a causal model, DataCollatorForLanguageModeling(tokenizer, mlm=False) makes them"
        raise InvalidInput("train_dataset", problem, advice)
    logits: Tensor = outputs.logits
    return (logits if logits.dtype == torch.float64 else logits.float()), labels


def _tokens(outputs: Any, batch: Mapping[str, Any], config: Any, smoothing: float, ahead: int = 0) -> Tensor:
    """The mean over each row's own targets; a row without any has the loss 0."""
    logits, labels = _logits(outputs, batch)
    # Virtual tokens, as prompt tuning has them, come first and are no targets; the last ones predict nothing.
    virtual = logits.shape[1] - labels.shape[1]
    labels = F.pad(labels, (virtual, ahead), value=_IGNORED)[:, ahead:]
    each = F.cross_entropy(
        logits.flatten(0, 1),
        labels.flatten(),
        ignore_index=_IGNORED,
        label_smoothing=smoothing,
        reduction="none",
    )
    count = (labels != _IGNORED).sum(1)
    return each.view(labels.shape).sum(1) / count.clamp(min=1)


def _classes(outputs: Any, batch: Mapping[str, Any], config: Any, smoothing: float) -> Tensor:
    """Of one label a row, of several, or of a number, as the configuration says or the labels show."""
    logits, labels = _logits(outputs, batch)
    kind = getattr(config, "problem_type", None)
    if kind == "regression" or (kind is None and logits.shape[1] == 1):
        return F.mse_loss(logits, labels.view_as(logits).to(logits.dtype), reduction="none").mean(1)
    if kind == "multi_label_classification" or (kind is None and labels.is_floating_point()):
        return F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none").mean(1)
    return F.cross_entropy(logits, labels.flatten(), label_smoothing=smoothing, reduction="none")


_KINDS: tuple[tuple[str, Callable[..., Tensor]], ...] = (
    ("CAUSAL_LM", partial(_tokens, ahead=1)),
    ("SEQUENCE_CLASSIFICATION", _classes),
    ("IMAGE_CLASSIFICATION", _classes),
    ("AUDIO_CLASSIFICATION", _classes),
    ("VIDEO_CLASSIFICATION", _classes),
    ("MASKED_LM", _tokens),
    ("TOKEN_CLASSIFICATION", _tokens),
    ("SEQ_TO_SEQ_CAUSAL_LM", _tokens),
)
"""Hugging Face's tables of models → the losses of their rows."""
