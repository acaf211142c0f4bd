"""A model in a folder: its numbers as safetensors, and beside them what to build before they are loaded."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import nn

from privet.core import InvalidInput, MissingExtra
from privet.data import Schema
from privet.training.models.additive import Additive
from privet.training.models.choose import Family, Model, choose
from privet.training.models.kernel import Kernel
from privet.training.models.unit_norm_linear import UnitNormLinear
from privet.training.models.user_model import UserModel

__all__ = ["DESCRIPTION", "WEIGHTS", "ModelDescription", "restore", "store"]

WEIGHTS, DESCRIPTION = "model.safetensors", "model.json"
_FORMAT = 1


@dataclass(frozen=True)
class ModelDescription:
    """All that is needed to build a model; every field is public, or was released under the budget."""

    family: str
    """`linear`, `residual`, `convolutions`, `convex`, `additive`, `kernel`, or a place such as `module.py:factory`."""
    classes: tuple[str, ...]
    """None for regression."""
    schema: str | None = None
    """Of a table, as TOML."""
    shape: tuple[int, ...] | None = None
    """Of a picture."""
    peak: int = 255
    scattering: bool = True
    bins: int = 16
    radius: float = 1.0
    """Of a convex model: what rows are divided by."""
    support: int = 0
    """Of a kernel model: how many public rows it keeps."""

    @property
    def table(self) -> Schema | None:
        """The schema, if there is one."""
        return None if self.schema is None else Schema.from_toml(self.schema)

    @property
    def own(self) -> bool:
        """Whether the user's own code builds the model."""
        return ":" in self.family

    def build(self, rows: int = 1) -> Model:
        """Return the untrained model.

        Args:
            rows: Public number of rows, by which `auto` decides.

        Raises:
            InvalidInput: The description has neither a schema nor a shape, or the user's own model does not fit.
        """
        of: Schema | tuple[int, ...] | None = self.table or self.shape
        if of is None:
            raise InvalidInput("model", "has neither a schema nor a shape", "get the run's folder again")
        count = len(self.classes)
        if self.family == "additive" and isinstance(of, Schema):
            return Model(nn.Identity(), Additive(of, self.bins), Family.LINEAR)
        known = Family.LINEAR if self.own or self.family in ("convex", "kernel") else Family(self.family)
        raw = self.own and self.shape is not None and not self.scattering
        whole = choose(
            of,
            count or 2,
            rows,
            Family.CONVOLUTIONS if raw else known,
            self.bins,
            scattering=self.scattering,
            peak=self.peak,
        )
        if self.own:
            shape = self.shape if raw and self.shape is not None else (whole.features,)
            return Model(whole.front, UserModel.load(self.family, shape, count), whole.family)
        if self.family == "convex":
            return Model(whole.front, UnitNormLinear(whole.features, count, self.radius), Family.LINEAR)
        if self.family == "kernel":
            return Model(whole.front, Kernel(self.support, whole.features, count), Family.LINEAR)
        if not count:
            return choose(of, 0, rows, known, self.bins, scattering=self.scattering, peak=self.peak)
        return whole


def store(folder: str | os.PathLike[str], model: Model, described: ModelDescription) -> tuple[Path, Path]:
    """Write the weights and the description of a model, each file atomically.

    Args:
        folder: Directory of the files.
        model: The model.
        described: Description from which the model can be built again.

    Returns:
        The paths of the weights and of the description.

    Raises:
        MissingExtra: safetensors is not installed.
    """
    save = _safetensors().torch.save
    place = Path(folder)
    numbers = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    said = {"privet-model": _FORMAT, **asdict(described)}
    for name, content in ((WEIGHTS, save(numbers)), (DESCRIPTION, (json.dumps(said, indent=1) + "\n").encode())):
        part = place / f".{name}.part"
        part.write_bytes(content)
        part.replace(place / name)
    return place / WEIGHTS, place / DESCRIPTION


def restore(folder: str | os.PathLike[str]) -> tuple[Model, ModelDescription]:
    """Return the model that `store` wrote, ready to be called on rows, and its description.

    A user-defined model is built by executing the file that is named in the description: inspect it first.

    Args:
        folder: Directory of the files.

    Raises:
        InvalidInput: The files cannot be read, or do not fit together.
        MissingExtra: safetensors is not installed.
    """
    load = _safetensors().torch.load
    place = Path(folder)
    try:
        described = _described(json.loads((place / DESCRIPTION).read_text(encoding="utf-8")))
        model = described.build()
        model.load_state_dict(load((place / WEIGHTS).read_bytes()))
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        problem = f"is {str(place)!r}, of which the model cannot be read: {reason}"
        raise InvalidInput("run", problem, "name a folder that `privet train` wrote") from None
    except (ValueError, TypeError, KeyError, RuntimeError, _safetensors().SafetensorError) as error:
        if isinstance(error, InvalidInput):
            raise
        problem = f"is {str(place)!r}, of which {DESCRIPTION} and {WEIGHTS} do not fit together"
        raise InvalidInput("run", problem, "get the folder again") from None
    return model.eval(), described


def _described(said: dict[str, Any]) -> ModelDescription:
    if said.pop("privet-model") != _FORMAT:
        raise InvalidInput("run", "holds a model of another version of Privet", "use that version")
    lists = {name: tuple(said[name]) for name in ("classes", "shape") if said[name] is not None}
    return ModelDescription(**{**said, **lists})


def _safetensors() -> Any:
    try:
        import safetensors.torch
    except ImportError:
        raise MissingExtra("safetensors", "train") from None
    return safetensors
