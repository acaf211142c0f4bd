"""The attacker's limit."""

from __future__ import annotations

from privet.report.card import RunCard
from privet.report.curves import Curves
from privet.report.figures.drawing import Figure, axis, by, line, marks
from privet.report.words import percent

__all__ = ["attack"]

_HIGH = 0.5
"""From here on labels go below their points, away from the top."""


def attack(card: RunCard, curves: Curves) -> Figure:
    """The best true-positive rate of any membership attack, with the diagonal of guessing."""
    seen = [(found.false_positive_rate, found.true_positive_rate) for found in card.meaning.value.attacks]
    told = ", ".join(f"{percent(tpr)} at {100 * fpr:g} %" for fpr, tpr in seen)
    limits = {"range": [-4, 0.05], "tickformat": ".2~%"}
    own = marks(seen) | {
        "text": [percent(tpr) for _, tpr in seen],
        "textposition": ["bottom right" if tpr > _HIGH else "top left" for _, tpr in seen],
    }
    return Figure(
        "attack",
        "How well any membership attack can do",
        f"No attack lies above the solid line{by(curves)}; guessing lies on the dotted one. "
        f"Members found at most, at that share of outsiders wrongly accused: {told}.",
        ("false-positive rate", "true-positive rate at most"),
        tuple((f"{100 * fpr:.3g} %", percent(tpr, 4)) for fpr, tpr in curves.roc[::2]),
        {
            "data": [
                line(curves.roc, "limit for any attack") | {"hovertemplate": "%{x:.3%} false, %{y:.3%} true"},
                line([(fpr, fpr) for fpr, _ in curves.roc], "guessing", 2) | {"hoverinfo": "skip"},
                own,
            ],
            "layout": {
                "xaxis": axis("outsiders wrongly accused", decades=4) | limits,
                "yaxis": axis("members found", decades=4) | limits,
            },
        },
    )
