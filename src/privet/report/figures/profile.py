"""δ against ε."""

from __future__ import annotations

import math

from privet.core import digits_up
from privet.report.card import RunCard
from privet.report.curves import Curves
from privet.report.figures.drawing import Figure, axis, by, line, marks, pointer
from privet.report.words import up

__all__ = ["profile"]


def profile(card: RunCard, curves: Curves) -> Figure:
    """Return the figure of the privacy profile of one run, with the stated guarantee on or above it."""
    upper, delta = card.guarantee.value.epsilon.upper, card.guarantee.value.delta
    marked = math.isfinite(upper) and delta > 0
    told = f" The stated one is ε ≤ {up(upper)} at δ = {digits_up(delta)}." if marked else ""
    title = "The whole trade between ε and δ"
    if not curves.profile:
        return Figure("profile", title, "At no ε is δ below 1.", ("ε", "δ at most"), (), None)
    deltas = [found for _, found in curves.profile]
    farthest = curves.profile[-1][0]
    # Steps: δ never grows with ε, so what holds at a point holds up to the next; a slanted line would promise more.
    drawn = line(curves.profile, "δ(ε)")
    drawn["line"] |= {"shape": "hv"}
    label = pointer(
        upper,
        math.log10(delta) if marked else 0,
        "this guarantee",
        across=-50 if upper > farthest / 2 else 60,
        above=-40,
    )
    return Figure(
        "profile",
        title,
        f"Every point on the curve is a guarantee of the same run{by(curves)}: a larger ε has a smaller δ.{told}",
        ("ε", "δ at most"),
        tuple(
            (f"{epsilon:.4g}", f"{found:.3g}")
            for epsilon, found in curves.profile[:: max(1, len(curves.profile) // 20)]
        ),
        {
            "data": [drawn, *([marks([(upper, delta)])] if marked else [])],
            "layout": {
                "xaxis": axis("ε") | {"rangemode": "tozero"},
                "yaxis": axis("δ, logarithmic", decades=math.log10(max(deltas) / min(deltas))),
                "annotations": [label] if marked else [],
                "showlegend": False,
            },
        },
    )
