"""What may be changed without changing what is computed or promised."""

from __future__ import annotations

from dataclasses import dataclass

from privet.core import InvalidInput, checked

__all__ = ["Performance"]


@dataclass(frozen=True)
class Performance:
    """Knobs that cannot change privacy: the result is the same, up to rounding, whatever they are.

    >>> Performance(micro_batch=64).micro_batch
    64
    """

    micro_batch: int | str | None = "auto"
    """At most this many rows go through the model at once; None is all; "auto" takes so many that what is kept of them
    until they are clipped stays small (200 MB), which saves memory and, with large models, time."""

    def __post_init__(self) -> None:
        if isinstance(self.micro_batch, str) and self.micro_batch != "auto":
            raise InvalidInput("micro_batch", f"is {self.micro_batch!r}", 'give a number, "auto" or None')
        if self.micro_batch is not None and not isinstance(self.micro_batch, str):
            checked.count("micro_batch", self.micro_batch)
