"""Results of attacks beside the limits of the guarantee: ROC curves, canaries, and lower bounds on ε."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import floor

from privet.core import Canaries, Evidence, Guarantee, Internal, Typed, digits_up
from privet.report.attack_records import Attacked
from privet.report.card_tables import evidence_table
from privet.report.curves import Curves
from privet.report.figures.attack import roc_lines
from privet.report.figures.drawing import SERIES, Figure, Part, axis, bars, by, capitalize, line, rate_axes, rule
from privet.report.origin import escape_markup, format_score, origin
from privet.report.verdict import Verdict, verdict_of, worst_verdict
from privet.report.words import down, up

__all__ = ["BLIND", "adversaries", "attack_curves", "baseline_warning", "canary_scores"]

BLIND = "blind baseline"
"""The attack that never sees the model; no guarantee limits it."""

_DRAWN = 4
"""How many curves are drawn, the strongest; the table has all of them."""
_STYLES = (("var(--one)", "solid"), ("var(--two)", "dash"), ("var(--three)", "dot"), ("var(--two)", "longdashdot"))
_BINS = 32
_ROWS = 12
"""About how many points of each curve a table has."""
_LEAST = 1e-4
_GUESSING = 0.5


def baseline_warning(attacks: Sequence[Attacked]) -> str | None:
    """Return a warning if the blind baseline tells members from non-members, else None.

    The lower end of its interval for AUC decides (`Outcome.auc`, which holds for any number of rows): if both sides
    have the same distribution, the warning appears in at most 2.5 % of cases at 95 %.
    """
    for attack in attacks:
        if attack.attack == BLIND and attack.auc.lower > _GUESSING:
            return (
                f"Members and non-members differ by themselves (the {BLIND}, which never sees the model, has an AUC of "
                f"at least {attack.auc.lower:.3f}), so that the attacks' numbers say little about the model."
            )
    return None


def attack_curves(attacks: Sequence[Internal[Attacked]], curves: Curves) -> Figure | None:
    """Draw TPR against FPR of each attack on logarithmic axes, with the guarantee's limit."""
    if not attacks:
        return None
    results = [each.value for each in attacks]
    ranked = sorted(results, key=_strength, reverse=True)
    seeing = [each for each in ranked if each.attack != BLIND] or ranked
    best = seeing[0]
    rates = "; ".join(f"TPR {format_score(rate.value, True)} at {100 * (rate.at or 0):g} % FPR" for rate in best.hits)
    return Figure(
        "attacked",
        "What membership attacks achieved",
        f"INTERNAL. The thick line is the limit of the guarantee{by(curves)}, random guessing is dotted. Thin lines "
        f"are lower confidence bounds, which hold for all points of all curves at once with {100 * best.together:g} % "
        f"confidence. {capitalize(best.attack)} is the strongest of {len(seeing)}{f': {rates}' if rates else ''}. "
        "Whether a row is a member was not decided by fair coins: "
        "a curve above the limit would be a reason to look closer, and no proof. "
        f"{baseline_warning(results) or f'The {BLIND} never sees the model, and has no limit.'}",
        ("attack", "FPR", "TPR", "TPR at least"),
        tuple(
            (each.attack, f"{100 * point.alarms:.3g} %", format_score(point.hits, True), _floor(point.lower))
            for each in results
            for point in each.curve[:: max(1, len(each.curve) // _ROWS)]
        ),
        {
            "data": [
                *roc_lines(
                    curves,
                    "limit of the guarantee",
                    {"line": {"color": "var(--ink)", "width": 3}},
                    {"line": {"color": "var(--soft)", "width": 1.5, "dash": "dot"}, "showlegend": False},
                ),
                *(part for place, each in enumerate(ranked[:_DRAWN]) for part in _curve(each, place)),
            ],
            "layout": rate_axes("true-positive rate: members identified") | {"showlegend": True},
        },
    )


def _strength(attack: Attacked) -> tuple[float, ...]:
    """Rank by the TPR at the lowest FPR first, and by AUC second."""
    return (attack.hits[0].value if attack.hits else 0.0, attack.auc.value)


def _floor(share: float) -> str:
    """Return a share in per cent, never above it."""
    return f"{floor(1e4 * share) / 100:.2f} %"


def _curve(attack: Attacked, place: int) -> list[Part]:
    color, dash = _STYLES[place % len(_STYLES)]
    points, name = [point for point in attack.curve if point.alarms > 0], escape_markup(attack.attack)
    drawn = line([(point.alarms, point.hits) for point in points if point.hits > 0], name)
    bound = line([(p.alarms, p.lower) for p in points if p.lower >= _LEAST], f"{name}, at least")
    style = {"color": color, "dash": dash}
    return [
        drawn | {"line": style | {"width": 2}, "legendgroup": name},
        bound | {"line": style | {"width": 1}, "legendgroup": name, "showlegend": False},
    ]


def canary_scores(canaries: Sequence[Typed[Canaries]]) -> tuple[Figure, ...]:
    """Draw the scores that the release gives to included and to excluded canaries."""
    return tuple(_histogram(place, each) for place, each in enumerate(canaries))


def _histogram(place: int, given: Typed[Canaries]) -> Figure:
    canaries = given.value
    low, high = min(canaries.scores), max(canaries.scores)
    width = (high - low) / _BINS or 1.0
    edges = [low + width * i for i in range(_BINS + 1)]
    bins: dict[bool, list[int]] = {True: [0] * _BINS, False: [0] * _BINS}
    totals = {True: 0.0, False: 0.0}
    for score, inside in zip(canaries.scores, canaries.inside, strict=True):
        bins[inside][min(int((score - low) / width), _BINS - 1)] += 1
        totals[inside] += score
    counts = {side: canaries.inside.count(side) for side in (True, False)}
    means = {side: totals[side] / max(counts[side], 1) for side in (True, False)}
    names = {True: "included", False: "excluded"}
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    return Figure(
        f"canaries-{place}",
        f"How the release scores {canaries.kind}",
        f"{len(canaries.scores):,} synthetic canaries, each included by a fair coin of its own ({origin(given)}): "
        f"{counts[True]:,} were included, with a mean score of {means[True]:.3g}, and {counts[False]:,} were excluded, "
        f"with {means[False]:.3g}. The more the two differ, the more the release reveals.",
        ("score", *(f"{names[side]} canaries" for side in (True, False))),
        tuple(
            (f"{a:.3g} to {b:.3g}", f"{bins[True][i]:,}", f"{bins[False][i]:,}")
            for i, (a, b) in enumerate(pairwise(edges))
        ),
        {
            "data": [
                {
                    "type": "bar",
                    "x": middles,
                    "y": bins[side],
                    "name": names[side],
                    "marker": {"color": SERIES[0 if side else 2][0], "pattern": {"shape": "" if side else "/"}},
                    "opacity": 0.75,
                    "hovertemplate": "%{x:.3g}: %{y}",
                }
                for side in (True, False)
            ],
            "layout": {
                "xaxis": axis("score"),
                "yaxis": axis("canaries"),
                "barmode": "overlay",
                "bargap": 0.02,
                "showlegend": True,
            },
        },
    )


def adversaries(evidence: Sequence[Typed[Evidence]], guarantee: Guarantee) -> Figure | None:
    """Draw the lower bound on ε that each adversary proved, beside the ε of the guarantee."""
    if not evidence:
        return None
    bounds = [each.value for each in evidence]
    limit = guarantee.epsilon.upper
    finite = limit != float("inf")
    text = "; ".join(f"{bound.attack}: ε ≥ {down(bound.epsilon)}" for bound in bounds)
    ends = [bound.epsilon for bound in bounds] + ([limit] if finite else [])
    table = evidence_table(evidence, guarantee).only("attack", "ε at least", "confidence", "assumes")
    return Figure(
        "adversaries",
        "What each adversary could prove",
        f"Lower bounds on ε, beside the proven ε ≤ {up(limit)} at δ = {digits_up(guarantee.delta)}. {text}. "
        f"{_conclusion(bounds, guarantee)}",
        (*table.head, "ε at most"),
        tuple((*row, up(limit)) for row in table.rows),
        {
            "data": [
                bars(
                    [bound.epsilon for bound in bounds],
                    [_short(place, bound) for place, bound in enumerate(bounds)],
                    [verdict_of(bound, guarantee).color for bound in bounds],
                    "ε ≥ %{x:.4g}",
                )
                | {
                    "orientation": "h",
                    "text": [f"<b>{down(bound.epsilon)}</b>" for bound in bounds],
                    "textposition": "auto",
                    "textangle": 0,
                    "cliponaxis": False,
                    "name": "ε at least, with evidence",
                },
            ],
            "layout": {
                "xaxis": axis("ε") | {"range": [0, 1.15 * max([*ends, 0.1])]},
                "yaxis": axis("") | {"autorange": "reversed", "ticksuffix": "  "},
                "showlegend": False,
                "shapes": [rule("x", limit, {"color": "var(--one)", "width": 2.5})] if finite else [],
                "annotations": [_label(limit)] if finite else [],
            },
        },
    )


def _conclusion(bounds: Sequence[Evidence], guarantee: Guarantee) -> str:
    verdict = worst_verdict(bounds, guarantee)
    if verdict is Verdict.REFUTES:
        return "Evidence lies above the guarantee: it does not hold."
    if verdict is Verdict.ALARMS:
        return (
            "What lies above the guarantee, in amber, rests on assumptions: either they do not hold, or noise is "
            "missing. Look closer; it proves nothing by itself."
        )
    if any(bound.epsilon > guarantee.epsilon.upper for bound in bounds):
        return "What lies above the guarantee is for another unit or δ: it refutes nothing."
    return "None lies above the guarantee."


def _short(place: int, evidence: Evidence) -> str:
    """Return a name for the axis, in up to three lines; two equal names stay two bars."""
    words, lines = escape_markup(evidence.attack).split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > 18:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "<br>".join(lines[:3]) + "\u200b" * place


def _label(epsilon: float) -> Part:
    return {
        "x": epsilon,
        "y": 1,
        "yref": "paper",
        "text": f"guarantee: ε ≤ {up(epsilon)}",
        "showarrow": False,
        "yanchor": "bottom",
        "xanchor": "right",
        "font": {"color": "var(--one)"},
    }
