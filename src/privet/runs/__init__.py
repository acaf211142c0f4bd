"""Runs as library objects: request, read, plan, charge, fit, score, card and pages."""

from __future__ import annotations

__all__: list[str] = []
