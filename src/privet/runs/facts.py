"""What is known of a data set without its rows, or was released: all that a plan may depend on."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from privet.core import Unit, Whose
from privet.data import Number, Schema
from privet.training import DataKind

__all__ = ["PublicFacts"]


@dataclass(frozen=True)
class PublicFacts:
    """The public description of a data set. No field depends on private rows except through a release."""

    name: str
    schema: Schema | None
    """Of a table. None for images, and where it is still to be learned."""
    classes: tuple[str, ...]
    """Empty for a regression."""
    shape: tuple[int, ...] | None
    """Of an image; None for tables."""
    peak: int
    """The largest value of a pixel."""
    rows: int | None
    """The number of rows, where it is public or was released."""
    is_schema_released: bool = False
    """Whether the schema was learned under the budget."""
    has_test_rows: bool = False
    """Whether there are public rows to evaluate on."""
    public_rows: int = 0
    """How many public rows without labels there are."""
    is_schema_drafted: bool = False
    """Whether the schema was read from these public rows."""
    voting_teachers: int | None = None
    """How many teachers voted elsewhere, where their votes came as files and there are no private rows here."""
    are_silos_disjoint: bool = False
    """Whether it was checked that nobody is in two of the silos that voted."""

    @property
    def kind(self) -> DataKind:
        """Whether the rows are a table or images."""
        return DataKind.TABLE if self.shape is None else DataKind.PICTURES

    @property
    def is_regression(self) -> bool:
        """Whether the target is a number, as far as the schema is known."""
        return self.schema is not None and isinstance(self.schema.label, Number)

    @property
    def whose(self) -> Whose:
        """Whose data is protected: one row, or all rows of a user."""
        return Whose.EXAMPLE if self.schema is None or self.schema.user is None else Whose.USER

    @property
    def unit(self) -> Unit:
        """The privacy unit of every release of the run."""
        return Unit(whose=self.whose)

    @property
    def rows_per_user(self) -> int:
        """How many rows of one unit are used at most."""
        return 1 if self.schema is None else self.schema.most_rows_per_user or 1

    @property
    def can_hold_out(self) -> bool:
        """Whether there are private rows here, of which one unit has a bounded number, so that a score has a price."""
        is_bounded = self.whose is Whose.EXAMPLE or (
            self.schema is not None and self.schema.most_rows_per_user is not None
        )
        return self.voting_teachers is None and is_bounded

    @property
    def units(self) -> int | None:
        """About how many units there are: rows, or users who have as many rows as they may."""
        return None if self.rows is None else ceil(self.rows / self.rows_per_user)
