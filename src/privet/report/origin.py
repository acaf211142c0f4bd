"""Where a value comes from, in a word, and values as they are shown."""

from __future__ import annotations

import html
from typing import Any

from privet.core.disclosure import Internal, Typed
from privet.core.release import Release
from privet.core.scores import Score
from privet.report.score_intervals import CONFIDENCE, EXACT, NOISE, NOISE_AND_SAMPLING, SAMPLING, SAMPLING_INDEPENDENT

__all__ = ["INTERVALS", "interval", "origin", "plain", "rounded", "short_interval"]

INTERVALS = "Intervals have 95 % confidence each unless they say otherwise; in brackets is what they cover."
_SHORT = {
    SAMPLING: "sampling",
    SAMPLING_INDEPENDENT: "sampling of independent rows",
    NOISE_AND_SAMPLING: "noise + sampling",
    NOISE: "noise alone",
    "the noise": "noise alone",
}


def origin(value: Typed[Any]) -> str:
    """Whether a value is public, paid for, or internal.

    >>> from privet.core.disclosure import Public
    >>> origin(Public(3)), origin(Internal(3))
    ('public', 'INTERNAL')
    """
    return "INTERNAL" if isinstance(value, Internal) else "paid for" if isinstance(value, Release) else "public"


def rounded(value: float | None, share: bool) -> str:
    """A score, as a share in per cent or as it is; a dash where there is none.

    >>> rounded(0.91234, True), rounded(0.30012, False), rounded(None, True)
    ('91.23 %', '0.3001', '–')
    """
    if value is None:
        return "–"
    return f"{100 * value:.2f} %" if share else f"{value:.4g}"


def interval(score: Score) -> str:
    """The interval of a score, with its confidence and what it covers.

    >>> interval(Score("accuracy", 0.9, "the test file"))
    'no interval recorded'
    >>> interval(Score("accuracy", 0.9, "held-out rows", True, 0.8, 0.95, 0.95, "the noise"))
    '80.00 % to 95.00 % with 95 % confidence, covers the noise alone'
    """
    if score.value is None and not score.has_interval:
        return "–"
    if score.lower is None or score.upper is None or score.confidence is None:
        return "no interval recorded"
    if score.covers == EXACT:
        return "exact for these rows, which the model has seen; no estimate for new ones"
    covers = NOISE if score.covers == "the noise" else score.covers or "what was not recorded"
    ends = f"{rounded(score.lower, score.share)} to {rounded(score.upper, score.share)}"
    return f"{ends} with {100 * score.confidence:g} % confidence, covers {covers}"


def short_interval(score: Score) -> str:
    """The interval for a table on a terminal, beside the line `INTERVALS`.

    >>> short_interval(Score("accuracy", 0.9, "held-out rows", True, 0.8, 0.95, 0.95, "the noise"))
    '80.00 % to 95.00 % (noise alone)'
    """
    if not score.has_interval or score.covers == EXACT:
        return interval(score)
    sure = "" if score.confidence == CONFIDENCE else f"{100 * (score.confidence or 0.0):g} %: "
    covers = _SHORT.get(score.covers, score.covers or "what was not recorded")
    return f"{rounded(score.lower, score.share)} to {rounded(score.upper, score.share)} ({sure}{covers})"


def plain(text: str) -> str:
    """A text for a figure, where plotly.js would take a tag for markup."""
    return html.escape(text, quote=False)
