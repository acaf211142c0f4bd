"""The limit of the guarantee on membership attacks."""

from __future__ import annotations

from privet.report.card import RunCard
from privet.report.curves import Curves
from privet.report.figures.drawing import Figure, Part, by, line, marks, rate_axes
from privet.report.words import percent

__all__ = ["attack", "roc_lines"]

_HIGH = 0.5
"""Labels of larger rates go below their points, away from the top."""


def attack(card: RunCard, curves: Curves) -> Figure:
    """Draw the best true-positive rate of any membership attack, with the diagonal of random guessing."""
    limits = [(limit.false_positive_rate, limit.true_positive_rate) for limit in card.meaning.value.attacks]
    text = ", ".join(f"{percent(tpr)} at {100 * fpr:g} % FPR" for fpr, tpr in limits)
    own = marks(limits) | {
        "text": [percent(tpr) for _, tpr in limits],
        "textposition": ["bottom right" if tpr > _HIGH else "top left" for _, tpr in limits],
    }
    return Figure(
        "attack",
        "How well any membership attack can do",
        f"No attack lies above the solid line{by(curves)}; random guessing lies on the dotted one. "
        f"The true-positive rate (TPR, members identified) is at most {text}.",
        ("false-positive rate", "true-positive rate at most"),
        tuple((f"{100 * fpr:.3g} %", percent(tpr, 4)) for fpr, tpr in curves.roc[::2]),
        {
            "data": [*roc_lines(curves, "limit for any attack"), own],
            "layout": rate_axes("true-positive rate"),
        },
    )


def roc_lines(curves: Curves, name: str, limit: Part | None = None, guessing: Part | None = None) -> list[Part]:
    """Return the guarantee's limit on attacks and the diagonal of guessing, as lines of a figure.

    Args:
        curves: The curves.
        name: What the legend calls the limit.
        limit: Changes of the limit's line.
        guessing: Changes of the diagonal.
    """
    diagonal = line([(fpr, fpr) for fpr, _ in curves.roc], "guessing", 2) | {"hoverinfo": "skip"}
    return [
        line(curves.roc, name) | {"hovertemplate": "%{x:.3%} FPR, %{y:.3%} TPR"} | (limit or {}),
        diagonal | (guessing or {}),
    ]
