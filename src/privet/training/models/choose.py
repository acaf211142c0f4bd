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
    """Families of models."""

    AUTO = "auto"
    LINEAR = "linear"
    RESIDUAL = "residual"
    CONVOLUTIONS = "convolutions"


class Model(nn.Module):
    """Model of two parts: a feature extractor that costs no privacy, and a head that is trained.

    Where features are expensive to compute, as for pictures, compute them once with `front` and train `head` on them.
    Otherwise train the model itself on rows.
    """

    def __init__(self, front: nn.Module, head: nn.Module, family: Family) -> None:
        super().__init__()
        self.front, self.head, self.family = front, head, family

    @property
    def features(self) -> int:
        """Number of inputs of the head."""
        return int(getattr(self.front, "features", 1))

    def forward(self, rows: Tensor) -> Tensor:
        """Return the outputs of the head on the features of rows.

        Args:
            rows: Rows of a table as in `Table.x`, or pictures.

        Returns:
            One score for each row and class, or one prediction for each row.
        """
        found: Tensor = self.head(self.front(rows))
        return found

    def losses(self, rows: Tensor, targets: Tensor, pull: float = 0.0) -> Tensor:
        """Return one loss for each row, as computed by the head.

        Args:
            rows: Rows of a table as in `Table.x`, or pictures.
            targets: Target of each row: a class number, or a number for regression.
            pull: Weight of the center in an example's gradient.
        """
        found: Tensor = self.head.losses(self.front(rows), targets, pull)  # type: ignore[operator]
        return found

    def centres(self) -> Iterator[nn.Parameter]:
        """Return the parameters that track the mean of the features."""
        own = getattr(self.head, "centres", None)
        return iter(()) if own is None else own()


def decided(shape: Schema | tuple[int, ...], rows: int, family: Family | str = Family.AUTO) -> Family:
    """Return the family that `auto` stands for, by public facts only; any other family is returned as it is.

    Args:
        shape: Schema of a table, or shape of a picture.
        rows: Public, approximate number of rows.
        family: The requested family.
    """
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
    """Return a model for a table with this schema, or for pictures of this shape.

    Args:
        shape: A schema, or (height, width), or (colors, height, width).
        classes: Number of classes; 0 for regression.
        rows: Public, approximate number of rows.
        family: Family of the model; `auto` chooses the linear one, on scattering features for pictures, and a residual
            network for tables of 100,000 rows or more.
        bins: Number of bins for each number of a table.
        scattering: Whether a linear model of pictures uses scattering features instead of pixels.
        peak: Largest value of a pixel.

    Returns:
        The untrained model.

    Raises:
        InvalidInput: The family does not fit the data, or the shape is not that of a picture.
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
