"""What `privet attack` and `privet audit` are made of: the rows of a run, shadow models, outcomes, canaries."""

from __future__ import annotations

__all__: list[str] = []
