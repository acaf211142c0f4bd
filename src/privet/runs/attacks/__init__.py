"""Attacks on finished runs: their rows, shadow models, outcomes, canaries, the ladder of adversaries."""

from __future__ import annotations

__all__: list[str] = []
