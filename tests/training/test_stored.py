"""Models in folders: what is restored says what was stored, and what was damaged is refused in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.data import Category, Number, Schema
from privet.training.convex import InputPerturbation, LinearModel
from privet.training.models import Additive, Model, ModelDescription, UnitNormLinear, restore, store
from privet.training.models.choose import Family
from tests.data.sources import sourced

COLUMNS = (Number("age", 0, 100), Category("ward", ("a", "b")), Category("ill", ("no", "yes")))
SCHEMA = sourced(Schema(COLUMNS, target="ill"))
TABLE = ModelDescription("linear", SCHEMA.classes, SCHEMA.to_toml())
PICTURES = ModelDescription("convolutions", ("x", "y", "z"), shape=(8, 8), peak=16, scattering=False)
NUMBERS = replace(SCHEMA, target="age")
ROWS = torch.tensor([[-1.0, 0.0], [0.3, 1.0], [float("nan"), 2.0]])
CASES = {
    "linear": (TABLE, ROWS),
    "residual": (replace(TABLE, family="residual"), ROWS),
    "regression": (ModelDescription("linear", (), NUMBERS.to_toml()), torch.tensor([[0.0, 1.0], [1.0, 0.0]])),
    "convolutions": (PICTURES, torch.arange(128, dtype=torch.uint8).reshape(2, 8, 8) % 17),
    "pixels": (replace(PICTURES, family="linear"), torch.arange(128, dtype=torch.uint8).reshape(2, 8, 8) % 17),
    "scattering": (replace(PICTURES, family="linear", scattering=True), torch.full((2, 8, 8), 9, dtype=torch.uint8)),
}


@torch.no_grad()
def _drawn(model: Model) -> Model:
    generator = torch.Generator().manual_seed(1)
    for weights in model.head.parameters():
        weights.normal_(generator=generator)
    return model.eval()


@pytest.mark.parametrize(("described", "rows"), CASES.values(), ids=CASES)
def test_a_stored_model_says_the_same(described: ModelDescription, rows: torch.Tensor, tmp_path: Path) -> None:
    """Catches weights that are left out, a front that is built otherwise, and classes that are lost."""
    model = _drawn(described.build())
    store(tmp_path, model, described)
    again, said = restore(tmp_path)
    assert said == described
    with torch.no_grad():
        assert torch.equal(again(rows), model(rows))
    assert again(rows).shape == ((len(rows), len(described.classes)) if described.classes else (len(rows),))


def test_what_convex_methods_release_is_stored_too(tmp_path: Path) -> None:
    """Catches a radius or a bin that is forgotten: the same rows would be shortened, or told, in another way."""
    front = TABLE.build().front
    features = int(getattr(front, "features", 0))
    weights = np.random.default_rng(0).normal(size=(2, features + 1))
    convex = LinearModel(weights, radius=1.5)
    store(
        tmp_path, Model(front, UnitNormLinear.of(convex, 2), Family.LINEAR), replace(TABLE, family="convex", radius=1.5)
    )
    with torch.no_grad():
        found = restore(tmp_path)[0](ROWS).numpy()
    assert found == pytest.approx(convex.scores(front(ROWS).numpy()), abs=1e-5)

    plan = InputPerturbation(SCHEMA, 2.0, bins=3)
    x, y = np.tile(ROWS.numpy(), (50, 1)), np.tile([0, 1, 1], 50)
    additive = plan.fit(x, y, source="test", rng=SeededRng(1)).value
    said = replace(TABLE, family="additive", bins=3)
    store(tmp_path, Model(torch.nn.Identity(), Additive.of(additive), Family.LINEAR), said)
    assert restore(tmp_path)[0](ROWS).numpy() == pytest.approx(additive.scores(ROWS.numpy()), abs=1e-5)


def test_what_was_damaged_is_refused(tmp_path: Path) -> None:
    """Catches a traceback, or a model with random weights, where a file is missing, cut off or of another model."""
    with pytest.raises(InvalidInput, match="cannot be read"):
        restore(tmp_path)
    store(tmp_path, _drawn(TABLE.build()), TABLE)
    whole = (tmp_path / "model.safetensors").read_bytes()
    for bad in (b"", whole[:40], whole[:-3]):
        (tmp_path / "model.safetensors").write_bytes(bad)
        with pytest.raises(InvalidInput, match="do not fit together"):
            restore(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(whole)
    said = json.loads((tmp_path / "model.json").read_text())
    for change in ({"family": "residual"}, {"family": "nosuch"}, {"classes": ["a", "b", "c"]}, {"more": 1}):
        (tmp_path / "model.json").write_text(json.dumps(said | change))
        with pytest.raises(InvalidInput, match="run"):
            restore(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps(said | {"privet-model": 9}))
    with pytest.raises(InvalidInput, match="another version"):
        restore(tmp_path)
