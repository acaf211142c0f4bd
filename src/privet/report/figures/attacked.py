"""What attacks found, beside what the guarantee leaves to them: curves, canaries, and the ladder of adversaries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import floor

from privet.core.disclosure import Internal, Typed
from privet.core.guarantee import Evidence, Guarantee, digits_up
from privet.core.scores import Canaries
from privet.report.attack_records import Attacked
from privet.report.curves import Curves
from privet.report.figures.drawing import SERIES, Figure, Part, axis, by, line
from privet.report.origin import origin, plain, rounded
from privet.report.standing import Standing, standing, worst
from privet.report.words import down, up

__all__ = ["BLIND", "adversaries", "attack_curves", "canary_scores", "differing"]

BLIND = "blind baseline"
"""The attack that never sees the model, and that no guarantee limits."""

_DRAWN = 4
"""So many curves are drawn, the strongest; all of them stand in the table."""
_STYLES = (("var(--one)", "solid"), ("var(--two)", "dash"), ("var(--three)", "dot"), ("var(--two)", "longdashdot"))
_BINS = 32
_ROWS = 12
"""So many points of each curve a table has, about."""
_LEAST = 1e-4
_GUESSING = 0.5


def differing(attacks: Sequence[Attacked]) -> str | None:
    """What to say where the blind baseline tells members from outsiders; nothing where it does not.

    The lower end of its interval for AUC decides (`Outcome.auc`, which holds for any number of rows): of pairs of sides
    that are alike, 2.5 % at most are told this at 95 %.
    """
    for each in attacks:
        if each.attack == BLIND and each.auc.lower > _GUESSING:
            return (
                f"Members and outsiders differ by themselves (the {BLIND}, which never sees the model, has an AUC of "
                f"{each.auc.lower:.3f} or more), so that the attacks' numbers say little about the model."
            )
    return None


def attack_curves(attacks: Sequence[Internal[Attacked]], curves: Curves) -> Figure | None:
    """Members found against outsiders accused, on logarithmic axes, with the guarantee's limit drawn in."""
    if not attacks:
        return None
    found = [each.value for each in attacks]
    limits = {"range": [-4, 0.05], "tickformat": ".2~%"}
    ranked = sorted(found, key=_strength, reverse=True)
    seeing = [each for each in ranked if each.attack != BLIND] or ranked
    best, drawn = seeing[0], ranked[:_DRAWN]
    told = "; ".join(
        f"{rounded(rate.value, True)} of members at {100 * (rate.at or 0):g} % of outsiders" for rate in best.hits
    )
    return Figure(
        "attacked",
        "What membership attacks found",
        f"INTERNAL. The thick line is the limit of the guarantee{by(curves)}, guessing is dotted. Thin lines are lower "
        f"confidence bounds, which hold for all points of all curves at once with {100 * best.together:g} % "
        f"confidence. {_capital(best.attack)} is the strongest of {len(seeing)}{f': it finds {told}' if told else ''}. "
        "Members and outsiders of one run are no fair coins: "
        "a curve above the limit would be a reason to look closer, and no proof. "
        f"{differing(found) or f'The {BLIND} never sees the model, and has no limit.'}",
        ("attack", "outsiders accused", "members found", "at least"),
        tuple(
            (each.attack, f"{100 * point.alarms:.3g} %", rounded(point.hits, True), _floor(point.lower))
            for each in found
            for point in each.curve[:: max(1, len(each.curve) // _ROWS)]
        ),
        {
            "data": [
                line(curves.roc, "limit of the guarantee")
                | {"line": {"color": "var(--ink)", "width": 3}, "hovertemplate": "%{x:.3%} false, %{y:.3%} true"},
                line([(fpr, fpr) for fpr, _ in curves.roc], "guessing")
                | {"line": {"color": "var(--soft)", "width": 1.5, "dash": "dot"}}
                | {"hoverinfo": "skip", "showlegend": False},
                *(part for place, each in enumerate(drawn) for part in _curve(each, place)),
            ],
            "layout": {
                "xaxis": axis("outsiders wrongly accused", decades=4) | limits,
                "yaxis": axis("members found", decades=4) | limits,
                "showlegend": True,
            },
        },
    )


def _strength(found: Attacked) -> tuple[float, ...]:
    """By few false alarms first, and AUC second."""
    return (found.hits[0].value if found.hits else 0.0, found.auc.value)


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def _floor(share: float) -> str:
    """In per cent, never above it."""
    return f"{floor(1e4 * share) / 100:.2f} %"


def _curve(found: Attacked, place: int) -> list[Part]:
    colour, dash = _STYLES[place % len(_STYLES)]
    shown = [point for point in found.curve if point.alarms > 0]
    drawn = line([(point.alarms, point.hits) for point in shown if point.hits > 0], plain(found.attack))
    bound = line([(p.alarms, p.lower) for p in shown if p.lower >= _LEAST], plain(f"{found.attack}, at least"))
    return [
        drawn | {"line": {"color": colour, "dash": dash, "width": 2}, "legendgroup": plain(found.attack)},
        bound
        | {
            "line": {"color": colour, "dash": dash, "width": 1},
            "legendgroup": plain(found.attack),
            "showlegend": False,
        },
    ]


def canary_scores(canaries: Sequence[Typed[Canaries]]) -> tuple[Figure, ...]:
    """How the release scores canaries that were put in, and those that were not."""
    return tuple(_histogram(place, each) for place, each in enumerate(canaries))


def _histogram(place: int, given: Typed[Canaries]) -> Figure:
    found = given.value
    low, high = min(found.scores), max(found.scores)
    width = (high - low) / _BINS or 1.0
    edges = [low + width * i for i in range(_BINS + 1)]
    sides: dict[bool, list[int]] = {True: [0] * _BINS, False: [0] * _BINS}
    for score, inside in zip(found.scores, found.inside, strict=True):
        sides[inside][min(int((score - low) / width), _BINS - 1)] += 1
    means = {
        side: sum(score for score, inside in zip(found.scores, found.inside, strict=True) if inside is side)
        / max(found.inside.count(side), 1)
        for side in (True, False)
    }
    names = {True: "put in", False: "left out"}
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    return Figure(
        f"canaries-{place}",
        f"How the release scores {found.kind}",
        f"{len(found.scores):,} made-up canaries, each put in by a fair coin of its own ({origin(given)}): "
        f"{found.inside.count(True):,} were, with a mean score of {means[True]:.3g}, and "
        f"{found.inside.count(False):,} were not, with {means[False]:.3g}. The more the two differ, the more was told.",
        ("score", *(f"canaries {names[side]}" for side in (True, False))),
        tuple(
            (f"{a:.3g} to {b:.3g}", f"{sides[True][i]:,}", f"{sides[False][i]:,}")
            for i, (a, b) in enumerate(pairwise(edges))
        ),
        {
            "data": [
                {
                    "type": "bar",
                    "x": middles,
                    "y": sides[side],
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
    """What each adversary proved of ε, beside the ε that the guarantee allows."""
    if not evidence:
        return None
    found = [each.value for each in evidence]
    limit = guarantee.epsilon.upper
    finite = limit != float("inf")
    told = "; ".join(f"{each.attack}: ε ≥ {down(each.epsilon)}" for each in found)
    ends = [each.epsilon for each in found] + ([limit] if finite else [])
    verdict = "None lies above the guarantee."
    stands = worst(found, guarantee)
    if stands is Standing.REFUTES:
        verdict = "Evidence lies above the guarantee: it does not hold."
    elif stands is Standing.ALARMS:
        verdict = (
            "What lies above the guarantee, in amber, rests on assumptions: either they do not hold, or noise is "
            "missing. Look closer; it proves nothing by itself."
        )
    elif any(each.epsilon > limit for each in found):
        verdict = "What lies above the guarantee is for another unit or δ: it refutes nothing."
    return Figure(
        "adversaries",
        "What each adversary could prove",
        f"Lower bounds on ε, beside the proven ε ≤ {up(limit)} at δ = {digits_up(guarantee.delta)}. {told}. {verdict}",
        ("adversary", "ε at least", "ε at most", "confidence", "assumes"),
        tuple(
            (
                each.attack,
                down(each.epsilon),
                up(limit),
                f"{100 * each.confidence:g} %",
                "; ".join(each.assumptions) or "nothing",
            )
            for each in found
        ),
        {
            "data": [
                {
                    "type": "bar",
                    "orientation": "h",
                    "x": [each.epsilon for each in found],
                    "y": [_short(place, each) for place, each in enumerate(found)],
                    "text": [f"<b>{down(each.epsilon)}</b>" for each in found],
                    "textposition": "auto",
                    "textangle": 0,
                    "cliponaxis": False,
                    "marker": {"color": [standing(each, guarantee).colour for each in found]},
                    "hovertemplate": "ε ≥ %{x:.4g}",
                    "name": "ε at least, with evidence",
                },
            ],
            "layout": {
                "xaxis": axis("ε") | {"range": [0, 1.15 * max([*ends, 0.1])]},
                "yaxis": axis("") | {"autorange": "reversed", "ticksuffix": "  "},
                "showlegend": False,
                "shapes": [_limit(limit)] if finite else [],
                "annotations": [_named(limit)] if finite else [],
            },
        },
    )


def _short(place: int, found: Evidence) -> str:
    """A name for the axis, in two lines; two that are alike stay two bars."""
    words, lines = plain(found.attack).split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > 18:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "<br>".join(lines[:3]) + "\u200b" * place


def _limit(epsilon: float) -> Part:
    return {
        "type": "line",
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "x0": epsilon,
        "x1": epsilon,
        "line": {"color": "var(--one)", "width": 2.5},
    }


def _named(epsilon: float) -> Part:
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
