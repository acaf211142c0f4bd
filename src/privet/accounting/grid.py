"""A loss law on an evenly spaced grid, rounded so that it is certainly worse, or certainly better, than the truth.

Worse: the masses of each cell are split between its two ends so that both the P- and the Q-mass are kept; the finer
pair is a post-processing of the split one, so the split one dominates it ("connect the dots", Doroshenko et al. 2022).
Better: cells centred on the grid points are merged, which is post-processing of the true pair; neighbors lend each
other a little mass so that the merged loss lies on or just above the grid point, and is then rounded down.
Both errors are of second order in the grid's step. All masses are positive sums and differences within one tail, so
nothing cancels; what rounding error is left is moved to the safe side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privet.accounting.laws import Array, Law

__all__ = ["LossGrid", "optimistic", "pessimistic"]

_ROUNDING = 1e-15
"""The relative rounding error of a tail mass m is at most this times 1 + |log m|; and that of a cell's bound."""
_LEAST = 1e-316
"""What the Q-mass of a cell may be that underflowed to 0, atom by atom."""
_LENT = 0.45
"""No cell lends more than this share of itself to one side."""


@dataclass(frozen=True)
class LossGrid:
    """P-masses at the losses offset + (first + j)·step for j = 0, 1, …, and the P-mass at +∞."""

    step: float
    offset: float
    first: int
    mass: Array
    infinite: float

    @property
    def losses(self) -> Array:
        """The grid points."""
        return self.offset + self.step * np.arange(self.first, self.first + len(self.mass), dtype=np.float64)


def pessimistic(law: Law, step: float, low: float, high: float) -> LossGrid:
    """A grid law that dominates `law`: whatever is priced with it is an upper bound."""
    offset, first, bounds = _points(law, step, low, high)
    p, q = law.cells(bounds)
    inner_p, inner_q = p[1:-1], q[1:-1]
    scaled = _scaled(inner_q, bounds[:-1])
    slack = _tails(p)[1:-1] + _scaled(_tails(q)[1:-1], bounds[:-1])
    up = np.clip((inner_p - scaled + slack) / -np.expm1(-step), 0.0, inner_p)
    mass = np.zeros(len(bounds))
    mass[:-1] += inner_p - up
    mass[1:] += up
    mass[0] += p[0]  # rounded up
    return LossGrid(step, offset + _ROUNDING, first, mass, law.infinite + float(p[-1]))


def optimistic(law: Law, step: float, low: float, high: float) -> LossGrid:
    """A grid law that `law` dominates: whatever is priced with it is a lower bound."""
    offset, first, points = _points(law, step, low, high)
    p_all, q_all = law.cells(_balanced(law, points, step))
    p, q = p_all[1:-1], np.maximum(q_all[1:-1], _LEAST)  # what underflowed may have been this much
    fullest = int(np.argmax(p))
    moved = float(np.log(p[fullest]) - np.log(q[fullest]) - points[fullest]) - 1e-12 if p[fullest] > 0 else math.inf
    if abs(moved) < step:  # the fullest cell has no neighbors large enough to lend to it: the grid comes to its mean
        offset, points = offset + moved, points + moved
    scaled = _scaled(q, points)
    slack = _tails(p_all)[1:-1] + _scaled(_tails(q_all)[1:-1], points)
    excess = p - scaled - slack  # ≥ 0: the merged loss is certainly at least the grid point
    # A cell below its grid point borrows from the next higher cell, one above it from the next lower cell.
    from_above = np.append((p[1:] - _scaled(q[1:], points[:-1])) * (1 - 1e-6), 0.0)
    from_below = np.append(0.0, (_scaled(q[:-1], points[1:]) - p[:-1]) * (1 + 1e-6))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        take_high = np.where((excess < 0) & (from_above > 0), -excess / from_above, 0.0)
        ratio = np.where((excess > 0) & (from_below > 0), np.minimum(excess / from_below, 1e12), 0.0)
    lost = (excess < 0) & ((take_high > _LENT) | (from_above <= 0))  # too coarse here: round down a whole step
    take_high = np.where(lost, 0.0, take_high)
    lent_down = np.append(0.0, take_high[:-1])
    left_over = np.append(1.0, 1.0 - lent_down[:-1])  # what the next lower cell has not lent yet
    take_low = np.minimum(ratio, left_over)
    for _ in range(7):  # the map is decreasing: bounds from above and below in turn, ending below
        remaining = 1.0 - lent_down - np.append(take_low[1:], 0.0)
        take_low = np.minimum(ratio * np.maximum(remaining, 0.0), left_over)
    lent = lent_down + np.append(take_low[1:], 0.0)
    merged = p * (1 - lent)
    merged[:-1] += take_high[:-1] * p[1:]
    merged[1:] += take_low[1:] * p[:-1]
    near = np.append(False, p[1:] - _scaled(q[1:], points[:-1]) - slack[1:] >= 0)  # one step down is certainly enough
    mass = np.where(lost, 0.0, merged)
    mass[:-1] += np.where(lost & near, merged, 0.0)[1:]
    mass[:-2] += np.where(lost & ~near, merged, 0.0)[2:]
    mass[-2] += p_all[-1]  # rounded down, past the last point since the grid may have moved by up to a step
    return LossGrid(step, offset - _ROUNDING, first, mass, law.infinite)


def _balanced(law: Law, points: Array, step: float) -> Array:
    """Bounds of cells around the grid points such that each cell's mean loss is close to its point.

    Half-way where the law is smooth; a cell in which the density falls like e^(−s·x) begins 1/s − 1/(e^s − 1) below.
    """
    halves = np.concatenate((points - step / 2, points[-1:] + step / 2))
    p, _q = law.cells(halves)
    with np.errstate(divide="ignore"):
        logs = np.log(p[1:-1])
    logs = np.maximum(logs, -745.0)
    slope = np.clip((np.append(logs[:1], logs[:-1]) - np.append(logs[1:], logs[-1:])) / 2, -60.0, 60.0)
    steep = np.abs(slope) > 1e-3
    safe = np.where(steep, slope, 1.0)
    below = np.where(steep, 1 / safe - 1 / np.expm1(safe), 0.5)
    return np.concatenate((points - step * below, points[-1:] + step / 2))


def _points(law: Law, step: float, low: float, high: float) -> tuple[float, int, Array]:
    """The grid's offset, first index and points: one point lies at the mean loss of the fullest cell.

    With a small sampling rate nearly all mass sits in one cell, at a tiny loss that must not be rounded T times over.
    """
    coarse = np.linspace(low, high, 65) if high > low else np.array([low - step, low + step])
    for _ in range(12):
        p, _q = law.cells(coarse)
        fullest = int(np.argmax(p[1:-1]))
        left, right = float(coarse[fullest]), float(coarse[fullest + 1])
        if right - left <= step:
            break
        coarse = np.linspace(left, right, 65)
    center = (left + right) / 2
    offset = center
    for _ in range(3):
        p, q = law.cells(np.array([offset - step / 2, offset + step / 2]))
        if p[1] <= 0 or q[1] <= 0:
            break
        offset = float(np.log(p[1]) - np.log(q[1])) - 1e-12
    if not abs(offset - center) <= step:
        offset = center
    first, last = int(np.floor((low - offset) / step)), int(np.ceil((high - offset) / step)) + 1
    return offset, first, offset + step * np.arange(first, last + 1, dtype=np.float64)


def _scaled(q: Array, losses: Array) -> Array:
    """e^loss · q without overflow; an underflowed q counts as 0, which is on the safe side for an upper price."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(q > 0, np.exp(np.minimum(losses + np.log(q), 700.0)), 0.0)


def _tails(mass: Array) -> Array:
    """The nearer tail of each cell, times what its relative rounding error may be: exponents have errors of their own.

    A tail of mass m is e^(−x) with x about |log m|, and x itself is off by a few units in its last place.
    """
    tail = np.minimum(np.cumsum(mass), np.cumsum(mass[::-1])[::-1])
    return np.asarray(_ROUNDING * tail * (1 - np.log(np.clip(tail, _LEAST, 1.0))))
