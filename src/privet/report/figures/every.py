"""The one list of figures."""

from __future__ import annotations

from collections.abc import Callable

from privet.report.card import RunCard
from privet.report.curves import Curves
from privet.report.figures.attack import attack
from privet.report.figures.drawing import Figure
from privet.report.figures.growth import growth
from privet.report.figures.ladder import ladder
from privet.report.figures.loss import loss
from privet.report.figures.profile import profile

__all__ = ["FIGURES", "figures"]

FIGURES: tuple[Callable[[RunCard, Curves], Figure], ...] = (ladder, attack, growth, profile, loss)
"""Every figure, in the order of the page."""


def figures(card: RunCard, curves: Curves) -> tuple[Figure, ...]:
    """Return all figures of a card."""
    return tuple(make(card, curves) for make in FIGURES)
