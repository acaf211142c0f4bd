"""Values of a card in words: where they come from, scores, and their intervals."""

from __future__ import annotations

import html
from typing import Any

from privet.core import Internal, Release, Score, Typed
from privet.report.score_intervals import CONFIDENCE, EXACT, NOISE, NOISE_AND_SAMPLING, SAMPLING, SAMPLING_INDEPENDENT

__all__ = ["INTERVALS", "RELEASED", "escape_markup", "format_interval", "format_score", "origin", "short_interval"]

INTERVALS = "Intervals have 95 % confidence each unless they say otherwise; brackets say what they cover."
"""The line beside a table with intervals from `short_interval`."""
RELEASED = "released under the budget"
"""The origin of a value that a mechanism released."""
_SHORT = {
    SAMPLING: "sampling",
    SAMPLING_INDEPENDENT: "sampling of independent rows",
    NOISE_AND_SAMPLING: "noise + sampling",
    NOISE: "noise alone",
    "the noise": "noise alone",
}


def origin(value: Typed[Any]) -> str:
    """Return where a value comes from: it is public, was released under the budget, or is internal.

    >>> from privet.core.disclosure import Public
    >>> origin(Public(3)), origin(Internal(3))
    ('public', 'INTERNAL')
    """
    return "INTERNAL" if isinstance(value, Internal) else RELEASED if isinstance(value, Release) else "public"


def format_score(value: float | None, share: bool) -> str:
    """Return a score rounded, a share in per cent; a dash if there is no score.

    >>> format_score(0.91234, True), format_score(0.30012, False), format_score(None, True)
    ('91.23 %', '0.3001', '–')
    """
    if value is None:
        return "–"
    return f"{100 * value:.2f} %" if share else f"{value:.4g}"


def format_interval(score: Score) -> str:
    """Return the interval of a score in words, with its confidence and what it covers.

    >>> format_interval(Score("accuracy", 0.9, "the test file"))
    'no interval recorded'
    >>> format_interval(Score("accuracy", 0.9, "held-out rows", True, 0.8, 0.95, 0.95, "the noise"))
    '80.00 % to 95.00 % with 95 % confidence, covers the noise alone'
    """
    if score.value is None and not score.has_interval:
        return "–"
    if score.lower is None or score.upper is None or score.confidence is None:
        return "no interval recorded"
    if score.covers == EXACT:
        return "exact for these rows, which the model was trained on; no estimate for new rows"
    covers = NOISE if score.covers == "the noise" else score.covers or "what was not recorded"
    ends = f"{format_score(score.lower, score.share)} to {format_score(score.upper, score.share)}"
    return f"{ends} with {100 * score.confidence:g} % confidence, covers {covers}"


def short_interval(score: Score) -> str:
    """Return the interval of a score for a narrow table, beside the line `INTERVALS`.

    >>> short_interval(Score("accuracy", 0.9, "held-out rows", True, 0.8, 0.95, 0.95, "the noise"))
    '80.00 % to 95.00 % (noise alone)'
    """
    if not score.has_interval or score.covers == EXACT:
        return format_interval(score)
    sure = "" if score.confidence == CONFIDENCE else f"{100 * (score.confidence or 0.0):g} %: "
    covers = _SHORT.get(score.covers, score.covers or "what was not recorded")
    return f"{format_score(score.lower, score.share)} to {format_score(score.upper, score.share)} ({sure}{covers})"


def escape_markup(text: str) -> str:
    """Return a text for a figure, in which plotly.js would read tags as markup."""
    return html.escape(text, quote=False)
