"""Lines on a logarithmic axis, as a small picture that needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

__all__ = ["Chart", "Line", "svg"]

_WIDE, _HIGH, _LEFT, _BELOW, _ABOVE, _LEGEND = 720, 400, 60, 50, 40, 130
_COLOURS = ("#1b6ca8", "#c1440e", "#2f7d32", "#7b3fa0", "#8a6d00", "#444444")


@dataclass(frozen=True)
class Line:
    """Points of one line; without a name it is not in the legend, and takes the colours from the first again."""

    name: str
    points: tuple[tuple[float, float], ...]
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """A title, what is across, and the lines."""

    title: str
    across: str
    lines: tuple[Line, ...]


def svg(chart: Chart) -> str:
    """The picture; across is logarithmic.

    >>> svg(Chart("up", "x", (Line("a", ((1.0, 0.0), (10.0, 1.0))),))).count("<polyline")
    1
    """
    xs = [log10(x) for line in chart.lines for x, _ in line.points]
    ys = [y for line in chart.lines for _, y in line.points]
    low, high = min(xs), max(xs)
    step = 10.0 ** floor(log10((max(ys) - min(ys)) or 1.0))
    bottom, top = step * floor(min(ys) / step), step * ceil(max(ys) / step)
    top = top if top > bottom else bottom + step

    def place(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + (log10(x) - low) / ((high - low) or 1.0) * (_WIDE - _LEFT - _LEGEND)
        return across, _HIGH - _BELOW - (y - bottom) / (top - bottom) * (_HIGH - _BELOW - _ABOVE)

    size = f'viewBox="0 0 {_WIDE} {_HIGH}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDE}" height="{_HIGH}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-size="14">{escape(chart.title)}</text>',
        f'<text x="{(_LEFT + _WIDE - _LEGEND) / 2:.0f}" y="{_HIGH - 12}">{escape(chart.across)}</text>',
    ]
    for y in (bottom + share * (top - bottom) / 4 for share in range(5)):
        at = place(10**low, y)[1]
        parts.append(f'<path d="M{_LEFT} {at:.1f}H{_WIDE - _LEGEND}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{y:.4g}</text>')
    shown = sorted({x for line in chart.lines for x, _ in line.points})
    last = -100.0
    for x in shown:
        across = place(x, bottom)[0]
        if across - last >= 45:
            parts.append(f'<text x="{across:.1f}" y="{_HIGH - _BELOW + 18}" text-anchor="middle">{x:.3g}</text>')
            last = across
    named = max(1, sum(bool(line.name) for line in chart.lines))
    for number, line in enumerate(chart.lines):
        colour = _COLOURS[number % named % len(_COLOURS)]
        points = " ".join(f"{across:.1f},{up:.1f}" for across, up in (place(*point) for point in sorted(line.points)))
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        if line.name:
            down = _ABOVE + 18 * number
            parts.append(f'<text x="{_WIDE - _LEGEND + 12}" y="{down + 4}" fill="{colour}">{escape(line.name)}</text>')
    return "\n".join([*parts, "</svg>", ""])
