"""Which model suits what the public knows of the data: its kind, its shape and about how many rows there are."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from torch import Tensor, nn

from privet.core import InvalidInput, checked
from privet.data import Schema
from privet.training.models.linear import Linear
from privet.training.models.pictures import Convolutions, Pictures, Pixels
from privet.training.models.residual import Residual
from privet.training.models.table_features import TableFeatures

__all__ = ["Family", "Model", "choose", "decided"]

_MANY = 100_000
"""Rows from which on a network beside the linear model is worth its noise."""


class Family(Enum):
    """The models there are."""

    AUTO = "auto"
    LINEAR = "linear"
    RESIDUAL = "residual"
    CONVOLUTIONS = "convolutions"


class Model(nn.Module):
    """Features that cost no privacy, and what is learned from them.

    Where features are expensive, as pictures' are, compute them once with `front` and train `head` on them; else train
    the model itself on rows.
    """

    def __init__(self, front: nn.Module, head: nn.Module, family: Family) -> None:
        super().__init__()
        self.front, self.head, self.family = front, head, family

    @property
    def features(self) -> int:
        """How many inputs the head has."""
        return int(getattr(self.front, "features", 1))

    def forward(self, rows: Tensor) -> Tensor:
        found: Tensor = self.head(self.front(rows))
        return found

    def losses(self, rows: Tensor, targets: Tensor, pull: float = 0.0) -> Tensor:
        """One loss for each row, as the head's."""
        found: Tensor = self.head.losses(self.front(rows), targets, pull)  # type: ignore[operator]
        return found

    def centres(self) -> Iterator[nn.Parameter]:
        """The parameters that follow the mean of the features."""
        own = getattr(self.head, "centres", None)
        return iter(()) if own is None else own()


def decided(shape: Schema | tuple[int, ...], rows: int, family: Family | str = Family.AUTO) -> Family:
    """The family that `auto` stands for, by public things alone; any other as it is."""
    chosen = checked.member("family", family, Family)
    checked.count("rows", rows)
    if chosen is not Family.AUTO:
        return chosen
    return Family.RESIDUAL if isinstance(shape, Schema) and rows >= _MANY else Family.LINEAR


def choose(
    shape: Schema | tuple[int, ...],
    classes: int,
    rows: int,
    family: Family | str = Family.AUTO,
    bins: int = 16,
    *,
    scattering: bool = True,
    peak: int = 1,
) -> Model:
    """A model for a table with this schema, or for pictures of this shape.

    Args:
        shape: a schema, or (height, width), or (colours, height, width).
        classes: how many there are; 0 for regression.
        rows: about how many rows there are, as a public number.
        family: which model; `auto` takes the linear one, on scattering features for pictures, and for tables of 100,000
            rows or more a residual network.
        bins: how many bins each number of a table is cut into.
        scattering: whether a linear model of pictures sees scattering features, or the pixels themselves.
        peak: the largest value that a pixel can have.
    """
    chosen = decided(shape, rows, family)
    if isinstance(shape, Schema):
        front = TableFeatures(shape, bins)
        if chosen is Family.CONVOLUTIONS:
            raise InvalidInput("family", "is convolutions, which are for pictures", "use linear or residual")
        head = Residual(front.features, classes) if chosen is Family.RESIDUAL else Linear(front.features, classes)
        return Model(front, head, chosen)
    if len(shape) not in {2, 3}:
        raise InvalidInput("shape", f"is {shape}", "give (height, width) or (colours, height, width)")
    colours = shape[0] if len(shape) == 3 else 1
    if chosen is Family.CONVOLUTIONS:
        return Model(Pixels(shape, peak), Convolutions(colours, classes), chosen)
    if chosen is Family.RESIDUAL:
        raise InvalidInput("family", "is residual, which is for tables", "use linear or convolutions")
    pictures = Pictures(shape[-2], shape[-1], colours) if scattering else Pixels(shape, peak, flat=True)
    return Model(pictures, Linear(pictures.features, classes), Family.LINEAR)
