"""ε against steps."""

from __future__ import annotations

import math

from privet.core import IndependentBatches, Repeated, Sampled, ShuffledEpoch, digits_up
from privet.report.card import RunCard
from privet.report.curves import Curves
from privet.report.figures.drawing import SERIES, Figure, axis, by, line, marks, pointer
from privet.report.words import counted, is_open, up

__all__ = ["growth"]


def growth(card: RunCard, curves: Curves) -> Figure:
    """Return the figure of ε as a function of the number of steps, for several δ."""
    what, upper = _counted(card), card.guarantee.value.epsilon.upper
    lines = [
        line(list(zip(curves.counts, row, strict=True)), f"δ = {digits_up(delta)}", index)
        | {"mode": "lines+markers", "marker": {"symbol": SERIES[index][2], "size": 6}}
        for index, (delta, row) in enumerate(zip(curves.deltas, curves.by_delta, strict=True))
    ]
    finite = math.isfinite(upper)
    label = f"this run: ε ≤ {up(upper)}"
    spec = {
        "data": [*lines, *([marks([(curves.own_count, upper)])] if finite else [])],
        "layout": {
            "xaxis": axis(f"{what}, logarithmic", decades=4),
            "yaxis": axis("ε") | {"rangemode": "tozero"},
            "annotations": [pointer(math.log10(curves.own_count), upper, label, across=-70, above=34)]
            if finite
            else [],
        },
    }
    after = (
        f"After {counted(curves.own_count, what[:-1])}, this run has ε ≤ {up(upper)}."
        if finite
        else "No finite ε was found for this run."
        if is_open(card.guarantee.value)
        else "This run has ε = ∞."
    )
    return Figure(
        "growth",
        f"How ε grows with the number of {what}",
        f"ε against {what} for δ = {', '.join(digits_up(delta) for delta in curves.deltas)}{by(curves)}. {after}",
        (what, *(f"ε at δ = {delta:.3g}" for delta in curves.deltas)),
        tuple(
            (f"{count:,}", *(up(row[index]) for row in curves.by_delta)) for index, count in enumerate(curves.counts)
        ),
        spec if any(drawn["x"] for drawn in lines) else None,
    )


def _counted(card: RunCard) -> str:
    """What is repeated: steps, or whole epochs where a pass over the data is priced as one."""
    event = card.event.value
    step = event.event if isinstance(event, Repeated) else event
    passes = (ShuffledEpoch, IndependentBatches)
    return "epochs" if isinstance(step, Sampled) and isinstance(step.by, passes) else "steps"
