"""Page on the cost of trust: the error of a share with a trusted curator, a trusted shuffler, or nobody to trust."""

from __future__ import annotations

from privet.local.shuffling import cost_of_trust
from privet.report.figures.trust import trust
from privet.report.frame import escape, page_html

__all__ = ["trust_page"]

_POWERS = (2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0)
"""Powers of ten: the numbers of reports on the axis."""


def trust_page(reports: int, *, epsilon: float, delta: float) -> str:
    """Return a page with the errors of a yes-or-no share in three models of trust. It needs no data.

    Args:
        reports: A number of reports that is drawn beside the usual ones.
        epsilon: The ε that all models give.
        delta: The δ.
    """
    sizes = sorted({round(10**power) for power in _POWERS} | {reports})
    figure = trust([cost_of_trust(size, epsilon=epsilon, delta=delta) for size in sizes], epsilon, delta)
    body = [
        '<header><p class="kind">The cost of trust</p>',
        f"<h1>{escape(f'ε = {epsilon:g}')} <small>at δ = {delta:g}</small></h1></header>",
    ]
    return page_html("The cost of trust", body, [figure], footer="Made by Privet, without any data.")
