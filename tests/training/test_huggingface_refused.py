"""What Hugging Face's Trainer may not do under a plan: refused by name, with the reason and what to do."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import (
    DataCollatorWithFlattening,
    DataCollatorWithPadding,
)

from privet.core.errors import InvalidInput, MissingExtra
from privet.training import DPSGD, Performance
from privet.training.huggingface import PrivateTrainer
from tests.training.test_huggingface import LENGTH, everything, gpt2, moved, told, weights, words


class TestRefused:
    """What would break the guarantee is refused, with the reason and the way out."""

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"max_steps": 7}, r"args.max_steps is 7, and the plan has 6 steps"),
            ({"num_train_epochs": 5}, r"args.num_train_epochs is 5, and the plan has 3 epochs"),
            ({"per_device_train_batch_size": 4}, r"4 · 1, and the plan's batch_size is 12"),
            ({"gradient_accumulation_steps": 2}, r"8 · 2, and the plan's batch_size is 12"),
            ({"max_grad_norm": 0.3}, r"args.max_grad_norm is 0.3, and the plan clips each example to 1.0"),
            ({"gradient_checkpointing": True}, r"args.gradient_checkpointing throws away"),
            ({"auto_find_batch_size": True}, r"micro_batch='auto'"),
            ({"dataloader_drop_last": True}, r"args.dataloader_drop_last leaves rows out"),
            ({"include_num_input_tokens_seen": "all"}, r"counts the tokens"),
            ({"neftune_noise_alpha": 0.1}, r"longest row"),
            ({"train_sampling_strategy": "group_by_length"}, r"the plan draws the batches"),
        ],
    )
    def test_arguments_that_say_otherwise(self, tmp_path: Path, options: dict[str, Any], match: str) -> None:
        """Each of these would train otherwise than was priced, or not at all as asked."""
        plan = DPSGD(noise_multiplier=1.0, batch_size=12, epochs=3, delta=1e-3)
        with pytest.raises(InvalidInput, match=match):
            PrivateTrainer(gpt2(), told(tmp_path, **options), plan, words())

    @pytest.mark.parametrize("name", ["fp16", "torch_compile", "deepspeed", "fsdp", "use_liger_kernel"])
    def test_arguments_for_other_machines(self, tmp_path: Path, name: str) -> None:
        """Set afterwards, since `TrainingArguments` itself wants the hardware or the package."""
        args = told(tmp_path)
        setattr(args, name, "set")
        with pytest.raises(InvalidInput, match=f"args.{name}"):
            PrivateTrainer(gpt2(), args, everything(), words())

    def test_arguments_that_agree(self, tmp_path: Path) -> None:
        """What the plan says too may be said."""
        plan = DPSGD(noise_multiplier=1.0, batch_size=12, epochs=1.5, delta=1e-3)
        for options in ({"max_steps": 3}, {"num_train_epochs": 1.5}, {"per_device_train_batch_size": 12}):
            assert PrivateTrainer(gpt2(), told(tmp_path, **options), plan, words()).args.max_steps == 3

    def test_two_ways_to_say_how_large_a_piece_is(self, tmp_path: Path) -> None:
        """Only one of them could be obeyed."""
        args = told(tmp_path, gradient_accumulation_steps=2, per_device_train_batch_size=12)
        with pytest.raises(InvalidInput, match="leave one out"):
            PrivateTrainer(gpt2(), args, everything(), words(), performance=Performance(micro_batch=3))

    def test_evaluation_on_the_training_rows(self, tmp_path: Path) -> None:
        """Scores on private rows, in every log."""
        rows = words()
        with pytest.raises(InvalidInput, match="unpaid look"):
            PrivateTrainer(gpt2(), told(tmp_path), everything(), rows, eval_dataset={"train": rows})

    def test_flattened_batches(self, tmp_path: Path) -> None:
        """All rows of a batch in one: there would be one loss for everybody."""
        flat = DataCollatorWithFlattening()  # type: ignore[no-untyped-call]
        with pytest.raises(InvalidInput, match="one example a row"):
            PrivateTrainer(gpt2(), told(tmp_path), everything(), words(), data_collator=flat)

    @pytest.mark.parametrize(
        "extra",
        [
            {"position_ids": [0, 1, 2, 0, 1, 2, 3, 4, 5, 6], "attention_mask": [1] * LENGTH},
            {"attention_mask": [1, 1, 1, 2, 2, 2, 2, 2, 0, 0]},
            {"seq_idx": [0] * LENGTH},
        ],
    )
    def test_packed_rows(self, tmp_path: Path, extra: dict[str, Any]) -> None:
        """Several examples in a row: the row is what is clipped, and not the person."""
        rows = [row | extra for row in words()]
        options: dict[str, Any] = {"remove_unused_columns": False} if "seq_idx" in extra else {}
        with pytest.raises(InvalidInput, match="one example a row, padded and masked"):
            PrivateTrainer(gpt2(), told(tmp_path, **options), everything(), rows).train()

    def test_positions_of_padded_rows_are_no_packing(self, tmp_path: Path) -> None:
        """Padding on the left, whose positions are all 1, as `generate` makes them."""
        rows = words()
        for row in rows:
            own = sum(row["attention_mask"])
            pad = LENGTH - own
            for name in ("input_ids", "attention_mask", "labels"):
                row[name] = row[name][own:] + row[name][:own]
            row["position_ids"] = [1] * pad + list(range(own))
        assert moved(tmp_path, gpt2(), everything(), rows).norm() > 0

    def test_losses_that_compare_examples(self, tmp_path: Path) -> None:
        """A contrastive loss: each row's depends on all rows, so that no clip bounds one row's part."""

        def contrastive(outputs: Any, batch: Mapping[str, Any]) -> Tensor:
            rows = F.normalize(outputs.logits.mean(1), dim=1)
            return F.cross_entropy(rows @ rows.T, torch.arange(len(rows)), reduction="none")

        with pytest.raises(InvalidInput, match="do not belong to one example each"):
            moved(tmp_path, gpt2(), everything(), words(), contrastive)

    def test_a_mean_over_the_batch(self, tmp_path: Path) -> None:
        """What most examples on the web compute."""
        with pytest.raises(InvalidInput, match="one loss is needed for each example"):
            moved(tmp_path, gpt2(), everything(), words(), lambda outputs, batch: outputs.logits.mean())

    def test_a_model_whose_losses_are_not_known(self, tmp_path: Path) -> None:
        """A bare linear layer has no table of Hugging Face's."""
        with pytest.raises(InvalidInput, match="Linear is no language model or classifier"):
            PrivateTrainer(nn.Linear(2, 2), told(tmp_path), everything(), words())

    def test_rows_without_labels(self, tmp_path: Path) -> None:
        """Said before the first backward pass, with the collator that makes them."""
        rows = [{name: row[name] for name in ("input_ids", "attention_mask")} for row in words()]
        with pytest.raises(InvalidInput, match="gives no 'labels'"):
            PrivateTrainer(gpt2(), told(tmp_path), everything(), rows).train()


class Tokenizer:
    """As much of a tokenizer as padding needs; rows of a batch are padded to its longest one."""

    deprecation_warnings: ClassVar[dict[str, bool]] = {}

    def pad(self, features: list[dict[str, Any]], **_: Any) -> dict[str, Tensor]:
        longest = max(len(each["input_ids"]) for each in features)
        fill = {"input_ids": 0, "attention_mask": 0, "labels": -100}
        return {
            name: torch.tensor([each[name] + [value] * (longest - len(each[name])) for each in features])
            for name, value in fill.items()
        }


def test_rows_padded_batch_by_batch(tmp_path: Path) -> None:
    """The widths differ from batch to batch and from piece to piece; the result must not depend on the padding."""
    padded, bare = words(), words()
    for row in bare:
        own = sum(row["attention_mask"])
        for name, values in row.items():
            row[name] = values[:own]
    plan, change = everything(clip=0.1), []
    for rows, collate in ((padded, None), (bare, DataCollatorWithPadding(Tokenizer()))):  # type: ignore[arg-type]
        model = gpt2()
        before = weights(model)
        PrivateTrainer(model, told(tmp_path), plan, rows, data_collator=collate).train()
        change.append(weights(model) - before)
    assert torch.allclose(change[0], change[1], atol=1e-6)


@pytest.mark.parametrize("absent", ["transformers", "accelerate"])
def test_absent_extra_says_what_to_install(absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, at import, and an ImportError for those who catch one."""
    monkeypatch.setitem(sys.modules, absent, None)
    monkeypatch.delitem(sys.modules, "privet.training.huggingface")
    with pytest.raises(ImportError) as caught:
        importlib.import_module("privet.training.huggingface")
    assert isinstance(caught.value, MissingExtra)
    assert str(caught.value) == f"{absent} is not installed; run: pip install 'privet[transformers]'"
