"""Dots in two panels, numbered, with a list of what the numbers mean: a small picture that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor

__all__ = ["Dot", "Panel", "svg"]

_WIDE, _HIGH, _LEFT, _BELOW, _ABOVE, _GAP, _LEGEND = 980, 420, 55, 55, 45, 60, 215
_PANEL = (_WIDE - _LEFT - _GAP - _LEGEND) / 2
_PLAIN, _PRIVATE = "#c1440e", "#1b6ca8"


@dataclass(frozen=True)
class Dot:
    """One recipe: where it stands in a panel, with twice its standard error up and down."""

    name: str
    across: float
    up: float
    error: float
    private: bool


@dataclass(frozen=True)
class Panel:
    """A title, the dots, and what guessing would find."""

    title: str
    dots: Sequence[Dot]
    guessing: float


def svg(panels: tuple[Panel, Panel], across: str) -> str:
    """The picture. Private recipes are joined, in the order in which they come.

    >>> dot = Dot("a", 80.0, 5.0, 0.5, private=True)
    >>> svg((Panel("one", [dot], 1.0), Panel("two", [dot], 1.0)), "accuracy").count("<circle")
    2
    """
    size = f'viewBox="0 0 {_WIDE} {_HIGH}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDE}" height="{_HIGH}" fill="white"/>',
    ]
    for place, panel in enumerate(panels):
        parts += _panel(panel, _LEFT + place * (_PANEL + _GAP), across)
    for number, dot in enumerate(panels[0].dots, 1):
        colour = _PRIVATE if dot.private else _PLAIN
        at = f'x="{_WIDE - _LEGEND + 25}" y="{_ABOVE + 22 * number}"'
        parts.append(f'<text {at} fill="{colour}">{number}  {escape(dot.name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, left: float, across: str) -> list[str]:
    xs = [dot.across for dot in panel.dots]
    ys = [panel.guessing, *(dot.up + sign * 2 * dot.error for dot in panel.dots for sign in (1, -1))]
    first, last = floor(min(xs)), max(ceil(max(xs)), floor(min(xs)) + 1)
    step = next(each for each in (0.5, 1, 2, 5, 10, 20) if max(ys) - min(ys) <= 8 * each)
    bottom, top = step * floor(min(ys) / step), step * ceil(max(ys) / step + 1e-9)

    def place(x: float, y: float) -> tuple[float, float]:
        down = _HIGH - _BELOW - (y - bottom) / (top - bottom) * (_HIGH - _BELOW - _ABOVE)
        return left + (x - first) / (last - first) * _PANEL, down

    parts = [
        f'<text x="{left}" y="22" font-size="14">{escape(panel.title)}</text>',
        f'<text x="{left + _PANEL / 2:.0f}" y="{_HIGH - 15}" text-anchor="middle">{escape(across)}</text>',
    ]
    for y in (bottom + step * number for number in range(round((top - bottom) / step) + 1)):
        at = place(first, y)[1]
        parts.append(f'<path d="M{left} {at:.1f}h{_PANEL:.0f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{y:g}</text>')
    for mark in range(first, last + 1):
        at = place(mark, bottom)[0]
        parts.append(f'<text x="{at:.1f}" y="{_HIGH - _BELOW + 18}" text-anchor="middle">{mark}</text>')
    guessing = place(first, panel.guessing)[1]
    parts.append(f'<path d="M{left} {guessing:.1f}h{_PANEL:.0f}" stroke="#444" stroke-dasharray="5 4"/>')
    parts.append(f'<text x="{left + 4}" y="{guessing - 4:.1f}" fill="#444" font-size="11">guessing</text>')
    joined = " ".join("{:.1f},{:.1f}".format(*place(dot.across, dot.up)) for dot in panel.dots if dot.private)
    parts.append(f'<polyline points="{joined}" fill="none" stroke="{_PRIVATE}" stroke-width="1.5"/>')
    for number, dot in enumerate(panel.dots, 1):
        colour = _PRIVATE if dot.private else _PLAIN
        x, y = place(dot.across, dot.up)
        low, high = (place(dot.across, dot.up + sign * 2 * dot.error)[1] for sign in (-1, 1))
        parts.append(f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="{colour}"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
        beside = y + 15 if dot.private else y - 5
        parts.append(f'<text x="{x + 5:.1f}" y="{beside:.1f}" fill="{colour}">{number}</text>')
    return parts
