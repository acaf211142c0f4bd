"""Per-example gradients, in factored form, from one forward and one backward pass; see `backward.Engine`."""

from __future__ import annotations

from privet.training.engine.squares import Squares as Squares

__all__: list[str] = []
