"""PATE runs: from private rows, or from files of votes, to a student and its card."""

from __future__ import annotations

__all__: list[str] = []
