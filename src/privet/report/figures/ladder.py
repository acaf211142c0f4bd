"""Every accountant side by side."""

from __future__ import annotations

import math

from privet.accounting import Accountant
from privet.report.card import RunCard
from privet.report.curves import Curves
from privet.report.figures.drawing import Figure, Part, axis
from privet.report.words import ACCOUNTANTS, up, why_not

__all__ = ["ladder"]

# Names, some in two lines, that leave room for the picture on a narrow screen.
_SHORT = {
    Accountant.PLD: "privacy-loss<br>distribution",
    Accountant.RENYI: "Rényi",
    Accountant.ZCDP: "zCDP",
    Accountant.GDP: "Gaussian DP",
    Accountant.ADVANCED: "advanced",
    Accountant.BASIC: "basic",
}


def ladder(card: RunCard, curves: Curves) -> Figure:
    """Return the figure of what each accountant can prove about the same run, on a logarithmic axis."""
    rungs = card.ladder.value
    answers = [(rung.accountant, rung.guarantee.epsilon.upper) for rung in rungs if rung.guarantee]
    told = ", ".join(f"{ACCOUNTANTS[which]} {up(value)}" for which, value in answers if math.isfinite(value))
    shown = [(which, value) for which, value in answers if 0 < value < math.inf]
    return Figure(
        "ladder",
        "What each accountant can prove",
        f"Upper bounds on ε for the same run, the tightest first: {told}." if told else "No finite ε is proven.",
        ("accountant", "ε at most"),
        tuple(
            (ACCOUNTANTS[rung.accountant], up(rung.guarantee.epsilon.upper) if rung.guarantee else why_not(rung))
            for rung in rungs
        ),
        _drawn(shown, card.guarantee.value.accountant) if shown else None,
    )


def _drawn(shown: list[tuple[Accountant, float]], proving: str) -> Part:
    places = [math.log10(value) for _, value in shown]
    low, high = min(places), max(places)
    pad = 0.12 * max(high - low, 1)
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "markers+text",
                "x": [value for _, value in shown],
                "y": [_SHORT[which] for which, _ in shown],
                "text": [f"<b>{up(value)}</b>" for _, value in shown],
                # Towards the middle of the picture, where there is room.
                "textposition": [f"middle {'right' if place <= (low + high) / 2 else 'left'}" for place in places],
                "textfont": {"size": 14},
                "cliponaxis": False,
                "marker": {
                    "color": ["var(--mark)" if which.value == proving else "var(--two)" for which, _ in shown],
                    "size": 13,
                },
                "hovertemplate": "ε ≤ %{x:.4g}",
                "name": "",
            }
        ],
        "layout": {
            "xaxis": axis("ε, logarithmic", decades=high - low) | {"range": [low - pad, high + pad]},
            "yaxis": axis("") | {"autorange": "reversed", "ticksuffix": "  "},
            "showlegend": False,
        },
    }
