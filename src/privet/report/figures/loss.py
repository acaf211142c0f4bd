"""The privacy-loss distribution."""

from __future__ import annotations

import math

from privet.core import digits_up
from privet.report.card import RunCard
from privet.report.curves import Curves
from privet.report.figures.drawing import Figure, Part, axis, filled, line, rule
from privet.report.loss import LossDensity
from privet.report.words import up

__all__ = ["loss"]

_TITLE = "The privacy loss, and δ in its tail"
_HEAD = ("loss", "density")


def loss(card: RunCard, curves: Curves) -> Figure:
    """Draw the density of the privacy loss; beyond ε the plain tail, and the part of it that δ counts."""
    density, delta = curves.loss, card.guarantee.value.delta
    if density is None:
        reason = "Nothing to draw: no loss distribution stands behind this bound, or the loss never exceeds its ε."
        return Figure("loss", _TITLE, reason, _HEAD, (), None)
    # An accountant looser than the loss itself states a larger ε, beyond which less than δ is left.
    tight = math.isclose(density.delta, delta, rel_tol=0.02)
    exact = delta if tight else density.delta
    looser = (
        ""
        if tight
        else f" That is less than the stated δ = {digits_up(delta)}: the loss is the run's own, whatever is stated."
    )
    points = list(zip(density.losses, density.density, strict=True))
    return Figure(
        "loss",
        _TITLE,
        "How likely each privacy loss is when the person is in the data, on a logarithmic scale. "
        f"The loss exceeds ε = {up(density.epsilon)} with a probability of about {density.tail:.2g}: the plain tail. "
        f"The exact δ = {exact:.3g} counts each loss only by how far it lies beyond ε, as 1 − e^(ε − loss).{looser}",
        _HEAD,
        tuple((f"{x:.4g}", f"{y:.3g}") for x, y in points[:: max(1, len(points) // 20)]),
        _drawn(density, points, exact),
    )


def _drawn(density: LossDensity, points: list[tuple[float, float]], exact: float) -> Part:
    beyond = [(x, y) for x, y in points if x >= density.epsilon]
    counted = [(x, -y * math.expm1(density.epsilon - x)) for x, y in beyond if x > density.epsilon]
    top = math.log10(max(y for _, y in points))
    bottom = math.log10(min((y for _, y in counted), default=1e-12))
    edge = rule("x", density.epsilon, {"color": "var(--mark)", "width": 1.5, "dash": "dot"})
    label = {
        "x": density.epsilon,
        "y": 0.98,
        "yref": "paper",
        "xanchor": "left",
        "showarrow": False,
        "text": f" ε = {up(density.epsilon)}",
    }
    return {
        "data": [
            line(points, "density of the loss"),
            line(beyond, f"plain tail ≈ {density.tail:.2g}", 1) | filled("var(--two-soft)"),
            line(counted, f"exact: δ = {exact:.3g}", 2) | filled("var(--three-soft)"),
        ],
        "layout": {
            "xaxis": axis("privacy loss"),
            "yaxis": axis("density, logarithmic", decades=top - bottom) | {"range": [bottom, top + 0.5]},
            "shapes": [edge],
            "annotations": [label],
        },
    }
