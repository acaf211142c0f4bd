"""The five figures of a run's page, one file each, as data for plotly.js."""

from __future__ import annotations

from privet.report.figures.drawing import Figure
from privet.report.figures.every import figures

__all__ = ["Figure", "figures"]
