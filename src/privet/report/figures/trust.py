"""The cost of trust: one question, one (ε, δ), and three models of whom the respondents have to trust."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privet.local.shuffling import TrustCosts
from privet.report.figures.drawing import Figure, axis, line

__all__ = ["HEAD", "row_of", "trust"]

HEAD = ("reports", "central ±", "shuffled ±", "local ±", "ε₀ of a shuffled report", "local / central")


def row_of(costs: TrustCosts) -> tuple[str, ...]:
    """Return one row of the table: standard errors in per cent, to two digits."""
    errors = (costs.central, costs.shuffled, costs.local)
    cells = (f"{100 * error:.2g} %" for error in errors)
    return f"{costs.reports:,}", *cells, f"{costs.local_epsilon:.2f}", f"{costs.local / costs.central:,.0f}×"


def trust(rows: Sequence[TrustCosts], epsilon: float, delta: float) -> Figure:
    """Draw the standard error of a share against the number of reports, on logarithmic axes (slopes −1 and −1/2)."""
    lines = {
        "local: nobody is trusted": [(each.reports, each.local) for each in rows],
        "shuffled: the shuffler is trusted": [(each.reports, each.shuffled) for each in rows],
        "central: the curator is trusted": [(each.reports, each.central) for each in rows],
    }
    last = rows[-1]
    decades = max(1.0, math.log10(last.reports / rows[0].reports))
    return Figure(
        "trust",
        "How well a share is known, by whom one has to trust",
        f"Standard error of a yes-or-no share at ε = {epsilon:g}, δ = {delta:g}. Central noise falls like 1/n and "
        f"local noise like 1/√n, a gap of √n; shuffling closes most of it: with {last.reports:,} reports local noise "
        f"is {last.local / last.central:,.0f} times the central one, shuffled noise {last.shuffled / last.central:.2g} "
        "times.",
        HEAD,
        tuple(map(row_of, rows)),
        {
            "data": [line(points, name, series) for series, (name, points) in enumerate(lines.items())],
            "layout": {
                "xaxis": axis("honest reports", decades=decades),
                "yaxis": axis("standard error of the share", decades=decades + 1),
                "showlegend": True,
            },
        },
    )
