"""The five figures of a run's page, one file each, as data for plotly.js."""

from __future__ import annotations

from privet.report.figures.attack_results import BLIND as BLIND
from privet.report.figures.attack_results import baseline_warning as baseline_warning
from privet.report.figures.drawing import Figure
from privet.report.figures.every import figures
from privet.report.figures.tables import linked_rows as linked_rows
from privet.report.figures.trust import HEAD as HEAD
from privet.report.figures.trust import row_of as row_of

__all__ = ["Figure", "figures"]
