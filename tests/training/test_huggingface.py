"""Hugging Face's Trainer under a plan: is privacy really on, for the very models that people fine-tune?"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Mapping
from math import sqrt
from pathlib import Path
from typing import Any, cast

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    TrainerCallback,
    TrainingArguments,
)

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.ledger import Ledger
from privet.training import DPSGD, RunError
from privet.training.engine.backward import Engine
from privet.training.engine.calls import Calls
from privet.training.huggingface import PrivateTrainer
from tests.training.keys import CountedKeys

N, LENGTH, WORDS = 24, 10, 40
SUBJECT = 39
"""The first word of the row on which some tests make the loss enormous."""


def gpt2(dropout: float = 0.0) -> GPT2LMHeadModel:
    """A small decoder whose lm_head is tied to its embedding, and whose positions are one row for all examples."""
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"vocab_size": WORDS, "n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 2}
    tokens: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    dropped: dict[str, Any] = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), dropout)
    return GPT2LMHeadModel(GPT2Config(**sizes, **tokens, **dropped))  # type: ignore[no-untyped-call]


def bert(dropout: float = 0.0) -> BertForSequenceClassification:
    """A small encoder with a pooler and three classes."""
    torch.manual_seed(2)
    sizes: dict[str, Any] = {
        "vocab_size": WORDS,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 16,
        "num_labels": 3,
    }
    dropped: dict[str, Any] = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), dropout)
    return BertForSequenceClassification(BertConfig(**sizes, **dropped))  # type: ignore[no-untyped-call]


def gpt2_lora(dropout: float = 0.0) -> PeftModel:
    """Adapters on the decoder, of which both factors have gradients from the start."""
    config = LoraConfig(
        task_type="CAUSAL_LM",
        r=2,
        lora_dropout=dropout,
        target_modules=["c_attn", "c_fc"],
        fan_in_fan_out=True,
        init_lora_weights=False,
    )
    return get_peft_model(gpt2(dropout), config)


def bert_lora(dropout: float = 0.0) -> PeftModel:
    """Adapters on the encoder, and its whole classifier, which PEFT copies and trains."""
    config = LoraConfig(task_type="SEQ_CLS", r=2, lora_dropout=dropout, target_modules=["query", "value"])
    return get_peft_model(bert(dropout), config)


MODELS: dict[str, Callable[[float], nn.Module]] = {
    "gpt2": gpt2,
    "bert": bert,
    "gpt2-lora": gpt2_lora,
    "bert-lora": bert_lora,
}


def words(rows: int = N, *, lm: bool = True, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of different lengths, padded and masked; the first one begins with a word that no other row has."""
    source = torch.Generator().manual_seed(seed)
    found: list[dict[str, Any]] = []
    for row in range(rows):
        own = int(torch.randint(3, LENGTH, (1,), generator=source))
        ids = torch.randint(3, SUBJECT, (own,), generator=source).tolist()
        if not row:
            ids[0] = SUBJECT
        pad = LENGTH - own
        labels = [*ids, *[-100] * pad] if lm else int(torch.randint(0, 3, (1,), generator=source))
        found.append({"input_ids": [*ids, *[0] * pad], "attention_mask": [1] * own + [0] * pad, "labels": labels})
    return found


def rows_for(name: str) -> list[dict[str, Any]]:
    """Rows for one of the models."""
    return words(lm=name.startswith("gpt2"))


def told(place: Path, **options: Any) -> TrainingArguments:
    """Arguments of a quiet Trainer on a CPU, with plain SGD whose rate stays."""
    quiet: dict[str, Any] = {
        "output_dir": str(place),
        "use_cpu": True,
        "report_to": [],
        "disable_tqdm": True,
        "save_strategy": "no",
        "log_level": "error",
        "optim": "sgd",
        "lr_scheduler_type": "constant",
        "learning_rate": 1.0,
        "dataloader_pin_memory": False,
    }
    return TrainingArguments(**(quiet | options))


def weights(model: nn.Module) -> Tensor:
    """All trained weights, as one vector."""
    return torch.cat([p.detach().flatten().double() for p in model.parameters() if p.requires_grad])


def everything(noise: float = 0.0, clip: float = 1.0, steps: int = 1) -> DPSGD:
    """A plan in which every row is in every batch."""
    return DPSGD(noise_multiplier=noise, clip=clip, batch_size=N, sample_rate=1.0, steps=steps, delta=1e-3)


def moved(
    place: Path,
    model: nn.Module,
    plan: DPSGD,
    rows: Any,
    losses: Callable[[Any, Mapping[str, Any]], Tensor] | None = None,
    **options: Any,
) -> Tensor:
    """How far a training moved the weights."""
    before = weights(model)
    PrivateTrainer(model, told(place, **options), plan, rows, losses=losses, rng=SeededRng(3)).train()
    return weights(model) - before


def tensors(rows: list[dict[str, Any]]) -> dict[str, Tensor]:
    """Rows as one batch."""
    return {name: torch.tensor([row[name] for row in rows]) for name in rows[0]}


class TestIsItOn:
    """What would stay unnoticed if noise, clip or model were not the ones of the plan."""

    @pytest.mark.parametrize("name", ["gpt2", "bert-lora"])
    def test_noise_of_the_plan_reaches_the_weights_of_the_users_model(self, tmp_path: Path, name: str) -> None:
        """With σ = 1000 the weights move by rate·σ·clip/batch_size in each step and direction, and with σ = 0 by at
        most rate·clip. A forward pass on another copy, noise that is lost, or a Trainer that clips the noisy gradient
        to its `max_grad_norm` of 1 would show. False alarm: six deviations of a χ, 2e-9."""
        steps, rate, rows = 3, 0.01, rows_for(name)
        quiet = moved(tmp_path, MODELS[name](0.0), everything(0.0, steps=steps), rows, learning_rate=rate)
        loud = moved(tmp_path, MODELS[name](0.0), everything(1000.0, steps=steps), rows, learning_rate=rate)
        assert 0 < quiet.norm() <= steps * rate
        expected = sqrt(steps) * rate * 1000.0 / N
        assert loud.square().mean().sqrt() == pytest.approx(expected, rel=6 / sqrt(2 * len(loud)) + 1e-3)

    @pytest.mark.parametrize("name", list(MODELS))
    def test_one_huge_example_moves_the_sum_by_the_clip_and_no_more(self, tmp_path: Path, name: str) -> None:
        """A loss that is a million times larger for one row: without clipping example by example, or with padding
        and neighbours mixed into it, its part would exceed the clip, or take others' with it."""
        rows, clip = rows_for(name), 0.01

        def losses(outputs: Any, batch: Mapping[str, Any]) -> Tensor:
            own: Tensor = outputs.logits.flatten(1).square().mean(1)
            return own * torch.where(batch["input_ids"][:, 0] == SUBJECT, 1e6, 1.0)

        plan = everything(clip=clip)
        with_it = moved(tmp_path, MODELS[name](0.0), plan, rows, losses)
        without = moved(tmp_path, MODELS[name](0.0), plan, rows[1:], losses)
        part = float((with_it - without).norm()) * N
        assert 0.99 * clip < part <= clip * (1 + 1e-4)

    @pytest.mark.parametrize("pieces", [1, 4])
    def test_one_noise_one_optimizer_step_and_one_count_for_each_step(self, tmp_path: Path, pieces: int) -> None:
        """Accumulated gradients are micro-batches of one step: were each of them noised, or the optimizer stepped by
        the Trainer's loop once more, the counts would differ."""
        model, rng, taken = gpt2(), CountedKeys(3), [0]
        assert weights(model).numel() < 1 << 19

        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer.register_step_post_hook(lambda *_: taken.append(taken.pop() + 1))
        trainer = PrivateTrainer(
            model,
            told(tmp_path, gradient_accumulation_steps=pieces, per_device_train_batch_size=12 // pieces),
            DPSGD(noise_multiplier=1.0, batch_size=12, epochs=3, delta=1e-3),
            words(),
            optimizers=(optimizer, None),
            rng=rng,
        )
        output = trainer.train()
        assert trainer.run is not None
        assert rng.drawn == taken[0] == trainer.run.steps == trainer.run.total == output.global_step == 6

    def test_micro_batches_change_nothing(self, tmp_path: Path) -> None:
        """A mean over pieces, or clipping piece by piece, would give other weights."""
        plan = everything(clip=0.3)
        whole = moved(tmp_path, gpt2(), plan, words())
        pieces = moved(tmp_path, gpt2(), plan, words(), gradient_accumulation_steps=8, per_device_train_batch_size=3)
        assert torch.allclose(whole, pieces, atol=1e-6)

    @pytest.mark.parametrize("name", list(MODELS))
    def test_one_row_alone_after_larger_pieces(self, tmp_path: Path, name: str) -> None:
        """Pieces of 5, 6, 6, 6 and 1 rows: where a batch has one row, positions and data have the same shape, and
        must not be taken for each other. Poisson batches of one row happen, too."""
        plan = everything(clip=0.3)
        whole = moved(tmp_path, MODELS[name](0.0), plan, rows_for(name))
        pieces = moved(
            tmp_path,
            MODELS[name](0.0),
            plan,
            rows_for(name),
            gradient_accumulation_steps=4,
            per_device_train_batch_size=6,
        )
        assert torch.allclose(whole, pieces, atol=1e-6)

    def test_empty_batches_are_steps(self, tmp_path: Path) -> None:
        """Rows that are drawn with chance 10⁻⁶: the batches are empty, and noise, steps and schedule go on."""
        plan = DPSGD(noise_multiplier=10.0, batch_size=1, sample_rate=1e-6, steps=5, delta=1e-3)
        assert moved(tmp_path, gpt2(), plan, words()).square().mean().sqrt() == pytest.approx(10 * sqrt(5), rel=0.1)


class TestGradients:
    """The engine on these very models, against autograd on one example at a time."""

    @pytest.mark.parametrize("name", list(MODELS))
    def test_clipped_sum_is_that_of_a_loop_over_single_rows(self, tmp_path: Path, name: str) -> None:
        """Hugging Face's own loss of each row alone, differentiated alone, clipped, added up: a wrong mean over
        tokens, a tied weight counted twice, or positions that are shared by all rows would show."""
        rows, model = rows_for(name), MODELS[name](0.0).double()
        trained, clip = [p for p in model.parameters() if p.requires_grad], 0.5
        total = torch.zeros(sum(p.numel() for p in trained), dtype=torch.float64)
        lengths = []
        for row in rows:
            alone = model(**tensors([row])).loss
            flat = torch.cat([g.flatten() for g in torch.autograd.grad(alone, trained, materialize_grads=True)])
            lengths.append(float(flat.norm()))
            total += flat * min(1.0, clip / lengths[-1])
        assert min(lengths) > 0
        got = -moved(tmp_path, model, everything(clip=clip), rows) * N
        assert float((got - total).norm() / total.norm()) < 1e-5

    @pytest.mark.parametrize("name", list(MODELS))
    def test_every_example_s_gradient_with_dropout_on(self, tmp_path: Path, name: str) -> None:
        """In float64, to 1e-10: each parameter's gradients of all examples, from one forward pass with dropout,
        against autograd on each loss of the same pass."""
        model, rows = MODELS[name](0.1).double().train(), rows_for(name)[:7]
        trainer = PrivateTrainer(model, told(tmp_path), everything(), rows)
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        parameters = [p for _, p in named]
        calls = Calls.of(model, parameters)
        calls.open()
        losses, _ = trainer._per_example(model, tensors(rows))
        seen = calls.found
        calls.close()
        loop = [
            torch.autograd.grad(loss, parameters, retain_graph=True, materialize_grads=True) for loss in losses.unbind()
        ]
        parts = Engine(parameters, [name for name, _ in named]).gradients(losses, None, seen)
        for place, part in enumerate(parts):
            expected = torch.stack([gradients[place].flatten() for gradients in loop])
            got = torch.zeros_like(expected) if part is None else part.dense()
            assert float((got - expected).norm()) <= 1e-10 * float(expected.norm()) + 1e-14

    def test_losses_are_hugging_face_s_own_on_single_rows(self, tmp_path: Path) -> None:
        """Also with label smoothing, of which the Trainer has its own; a row that is all ignored has no loss."""
        rows = words(6)
        rows[5]["labels"] = [-100] * LENGTH
        trainer = PrivateTrainer(gpt2(), told(tmp_path, label_smoothing_factor=0.3), everything(), rows)
        model = trainer.model
        assert isinstance(model, nn.Module)
        got, _ = trainer._per_example(model, tensors(rows))
        alone = [trainer.compute_loss(model, tensors([row])).item() for row in rows[:5]]
        assert got[:5].tolist() == pytest.approx(alone, rel=1e-5)
        assert got[5] == 0

    @pytest.mark.parametrize(
        ("labels", "kind"),
        [([0.5, 1.0, -1.0], "regression"), ([[0.0, 1.0, 1.0]] * 3, "multi_label_classification")],
    )
    def test_numbers_and_several_labels(self, tmp_path: Path, labels: list[Any], kind: str) -> None:
        """Hugging Face infers the kind of problem from the labels; a mean over the batch would differ row by row."""
        rows = words(3, lm=False)
        for row, label in zip(rows, labels, strict=True):
            row["labels"] = label
        model = bert()
        model.config.num_labels = model.num_labels = 1 if kind == "regression" else 3
        model.classifier = nn.Linear(16, model.num_labels)
        trainer = PrivateTrainer(model, told(tmp_path), everything(), rows)
        got, _ = trainer._per_example(model, tensors(rows))
        assert got.tolist() == pytest.approx([model(**tensors([row])).loss.item() for row in rows], rel=1e-5)
        assert model.config.problem_type == kind


class TestModel:
    """What Hugging Face can do with a model, it can still do."""

    @pytest.mark.parametrize("name", list(MODELS))
    def test_stays_what_it_was(self, tmp_path: Path, name: str) -> None:
        """Class, names, tied weights, frozen weights, pickling and saving; a wrapper would break one of them."""
        model, rows = MODELS[name](0.1), rows_for(name)
        kind, names, own = type(model), list(model.state_dict()), set(vars(model))
        frozen = {key: p.detach().clone() for key, p in model.named_parameters() if not p.requires_grad}
        plan = DPSGD(epsilon=8.0, delta=1e-3, batch_size=8, epochs=2)
        args = told(tmp_path, optim=TrainingArguments(str(tmp_path), use_cpu=True).optim, learning_rate=1e-3)
        trainer = PrivateTrainer(model, args, plan, rows)
        trainer.train()
        assert trainer.release is not None
        assert trainer.release.value is model
        assert trainer.release.guarantee is not None
        assert trainer.release.guarantee.epsilon.upper <= 8.0
        assert type(model) is kind
        assert list(model.state_dict()) == names
        assert set(vars(model)) <= own | {"_is_accelerate_prepared"}  # a flag of accelerate's
        assert all(torch.equal(p, frozen[key]) for key, p in model.named_parameters() if key in frozen)
        copied = pickle.loads(pickle.dumps(model))
        assert torch.equal(weights(copied), weights(model))
        model.save_pretrained(tmp_path / "saved")  # type: ignore[operator]
        again = (
            PeftModel.from_pretrained(
                MODELS[name.removesuffix("-lora")](0.0), str(tmp_path / "saved"), is_trainable=True
            )
            if "lora" in name
            else kind.from_pretrained(tmp_path / "saved")  # type: ignore[attr-defined]
        )
        assert torch.equal(weights(again), weights(model))
        if name.startswith("gpt2"):
            written = model.eval().generate(  # type: ignore[operator]
                input_ids=torch.tensor([[5, 6]]), max_new_tokens=3, do_sample=False, pad_token_id=0
            )
            assert written.shape[1] <= 5
        if name == "gpt2":
            assert model.lm_head.weight is model.transformer.wte.weight  # type: ignore[union-attr]

    def test_bf16_trains_float32_weights_and_gives_forward_back(self, tmp_path: Path) -> None:
        """Under autocast the noise must still be all there; accelerate's patch of `forward` must not stay."""
        model = gpt2()
        change = moved(tmp_path, model, everything(100.0, steps=2), words(), bf16=True, learning_rate=0.01)
        assert change.square().mean().sqrt() == pytest.approx(sqrt(2) / N, rel=0.1)
        assert model.transformer.wte.weight.dtype == torch.float32
        assert pickle.loads(pickle.dumps(model)).config.vocab_size == WORDS


class Halt(TrainerCallback):
    """Stops after two steps."""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        control.should_training_stop = state.global_step >= 2


class TestLoop:
    """The Trainer's own work: length, schedule, evaluation, logs, files."""

    def test_length_and_schedule_come_from_the_plan(self, tmp_path: Path) -> None:
        """Four epochs of three steps: evaluated four times, and the rate has come down to 0 after the last step."""
        args = told(tmp_path, eval_strategy="epoch", lr_scheduler_type="linear", logging_steps=1)
        trainer = PrivateTrainer(
            gpt2(),
            args,
            DPSGD(noise_multiplier=1.0, batch_size=8, epochs=4, delta=1e-3),
            words(),
            eval_dataset=words(5, seed=9),
        )
        output = trainer.train()
        assert output.global_step == trainer.state.max_steps == 12
        history = trainer.state.log_history
        assert [each["epoch"] for each in history if "eval_loss" in each] == [1.0, 2.0, 3.0, 4.0]
        rates = [each["learning_rate"] for each in history if "learning_rate" in each]
        assert rates == pytest.approx([1 - step / 12 for step in range(12)])
        assert trainer.lr_scheduler is not None
        assert trainer.lr_scheduler.get_last_lr()[0] == pytest.approx(0.0)
        assert args.max_steps == -1

    def test_losses_of_private_batches_are_in_no_log_and_no_file(self, tmp_path: Path) -> None:
        """Nor is the work done, which tells how many rows a batch had."""
        for shown in (False, True):
            trainer = PrivateTrainer(
                gpt2(),
                told(tmp_path, logging_steps=1, save_strategy="steps", save_steps=2),
                DPSGD(noise_multiplier=1.0, batch_size=12, epochs=1, delta=1e-3),
                words(),
                show_private=shown,
            )
            output = trainer.train()
            state = json.loads((tmp_path / "checkpoint-2" / "trainer_state.json").read_text())
            logged = {name for each in [*trainer.state.log_history, *state["log_history"]] for name in each}
            assert ("loss" in logged, "train_loss" in logged, "train_loss" in output.metrics) == (shown,) * 3
            assert isinstance(output.training_loss, float) == shown
            assert state["total_flos"] == 0

    def test_a_run_that_is_stopped_costs_the_whole_plan(self, tmp_path: Path) -> None:
        """When to stop may depend on the data, so only the plan's price is proven; the ledger has it."""
        plan = DPSGD(noise_multiplier=1.0, batch_size=12, epochs=4, population=N, delta=1e-3)
        with Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
            ledger.create("texts", unit=plan.unit(), epsilon=100.0, delta=1e-2)
            trainer = PrivateTrainer(
                gpt2(), told(tmp_path), plan, words(), callbacks=[Halt()], charge=ledger.budget("texts")
            )
            assert trainer.train().global_step == 2
            assert trainer.release is not None
            assert trainer.release.guarantee == plan.guarantee()
            assert [entry.state.value for entry in ledger.show("texts").entries] == ["committed"]

    def test_evaluates_predicts_and_saves_afterwards(self, tmp_path: Path) -> None:
        """The best of the models on the way is a release too; with losses of one's own, evaluation uses them."""
        others = words(5, seed=9)
        trainer = PrivateTrainer(
            gpt2(),
            told(
                tmp_path, save_strategy="epoch", eval_strategy="epoch", load_best_model_at_end=True, learning_rate=0.1
            ),
            DPSGD(noise_multiplier=1.0, batch_size=12, epochs=2, delta=1e-3),
            words(),
            eval_dataset=others,
            losses=lambda outputs, batch: outputs.logits.float().square().mean((1, 2)),
        )
        trainer.train()
        seen = [each["eval_loss"] for each in trainer.state.log_history if "eval_loss" in each]
        assert trainer.evaluate()["eval_loss"] == pytest.approx(min(seen), rel=1e-5)
        predictions: Any = trainer.predict(cast(Any, others)).predictions
        assert predictions.shape == (5, LENGTH, WORDS)
        trainer.save_model(str(tmp_path / "best"))
        saved = GPT2LMHeadModel.from_pretrained(tmp_path / "best")
        assert trainer.release is not None
        assert torch.equal(weights(saved), weights(trainer.release.value))

    def test_only_once(self, tmp_path: Path) -> None:
        """A second training of the same weights would come with a bill for the second half alone."""
        trainer = PrivateTrainer(gpt2(), told(tmp_path), everything(1.0), words())
        with pytest.raises(InvalidInput, match="bill"):
            trainer.train(resume_from_checkpoint=True)
        trainer.train()
        with pytest.raises(RunError, match="has trained"):
            trainer.train()

    def test_a_delta_is_needed_before_any_work(self, tmp_path: Path) -> None:
        """Else hours of training would end without a release."""
        model = gpt2()
        before = weights(model)
        plan = DPSGD(noise_multiplier=1.0, batch_size=N, sample_rate=1.0, steps=1)
        with pytest.raises(InvalidInput, match="delta"):
            PrivateTrainer(model, told(tmp_path), plan, words()).train()
        assert torch.equal(weights(model), before)
