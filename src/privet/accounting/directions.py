"""All parts of a composition for one direction of the neighbors: its laws, how far they reach, and their curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from privet.accounting.canonical import CountedEvent
from privet.accounting.convolution import LossCurve, compose, cumulants
from privet.accounting.dominating_pairs import brackets
from privet.accounting.grid import optimistic, pessimistic
from privet.accounting.laws import Array, GaussianLoss, Law, reach
from privet.accounting.pure import sum_up
from privet.core import Unit

__all__ = ["Direction", "Side", "directions", "unpriced"]

_CUT = 1e-5
"""Tails whose total mass is below this share of δ are cut to an infinite loss."""
_FEW = 4
"""With more laws than this their grids share the work."""
_TILTS: Array = np.geomspace(0.02, 2e5, 72)


@dataclass(frozen=True)
class Side:
    """Laws with their counts, all bounding the truth from the same side."""

    laws: tuple[tuple[Law, int], ...]
    ends: tuple[tuple[float, float], ...] = field(compare=False)
    MOST_CELLS: ClassVar[int] = 1 << 21
    """How many cells the widest law may have; with many laws, each has fewer."""

    @property
    def gaussian(self) -> float | None:
        """μ, if all of this is one Gaussian, which has a closed form."""
        law = self.laws[0][0]
        return law.mu if len(self.laws) == 1 and isinstance(law, GaussianLoss) else None

    @property
    def single(self) -> Law | None:
        """The law, if all of this is one run: its δ(ε) needs no grid."""
        return self.laws[0][0] if len(self.laws) == 1 and self.laws[0][1] == 1 else None

    @property
    def revealed(self) -> float:
        """The chance that some loss is infinite: δ can never be below it."""
        log_kept = math.fsum(n * math.log1p(-law.infinite) if law.infinite < 1 else -math.inf for law, n in self.laws)
        return -math.expm1(log_kept)

    @property
    def largest(self) -> float:
        """The largest loss there can be: ε at δ = 0."""
        tops = [law.support[1] for law, _n in self.laws]
        # max(0, NaN) would be 0: a loss that could not be computed is not known to be finite
        if self.revealed > 0 or any(math.isnan(top) for top in tops):
            return math.inf
        total = sum_up((n, max(0.0, top)) for (_law, n), top in zip(self.laws, tops, strict=True))
        return math.nextafter(total * (1 + 1e-15), math.inf)  # above 0 too: a loss may have underflowed

    @property
    def widest(self) -> float:
        """The longest reach among the laws."""
        return max(high - low for low, high in self.ends)

    @property
    def finest(self) -> float:
        """The smallest step that fits into memory and takes no longer than seconds."""
        return self.widest / self.MOST_CELLS * max(1.0, len(self.laws) / _FEW)

    def curve(self, step: float, tilt: float, worse: bool) -> LossCurve:
        """δ(ε) of the composition, on a grid that errs on the asked side; `step` may be too small for this side."""
        make, step = pessimistic if worse else optimistic, max(step, self.finest)
        grids = [(make(law, step, *ends), n) for (law, n), ends in zip(self.laws, self.ends, strict=True)]
        return compose(grids, tilt)

    def first_step(self, tilt: float, tolerance: float) -> float:
        """A grid that moves ε by about `tolerance`: copies·step²·(tilt + 1)/12 for a smooth law."""
        copies = sum(count for _law, count in self.laws)
        step = math.sqrt(12 * tolerance / (copies * (tilt + 1)))
        return max(min(step, self.widest / 1000), self.finest, 1e-13)

    def tilt_for(self, delta: float) -> tuple[float, float]:
        """A good tilt for a target δ and the ε it points to; nothing certified rests on it."""
        totals, order = self._cumulants(), _TILTS + 1
        guesses = (totals - math.log(delta)) / _TILTS + np.log(_TILTS / order) - np.log(order) / _TILTS
        best = int(np.argmin(guesses))
        if guesses[best] > 0:
            return float(_TILTS[best]), float(guesses[best])
        return float(_TILTS[int(np.argmin(totals))]), 0.0

    def tilt_at(self, epsilon: float) -> float:
        """A good tilt for a given ε; nothing certified rests on it."""
        return float(_TILTS[int(np.argmin(self._cumulants() - _TILTS * epsilon))])

    def _cumulants(self) -> Array:
        totals = np.zeros(len(_TILTS))
        for (law, count), (low, high) in zip(self.laws, self.ends, strict=True):
            totals += count * cumulants(pessimistic(law, max((high - low) / 1500, 1e-12), low, high), _TILTS)
        return totals


@dataclass(frozen=True)
class Direction:
    """What bounds one direction from above and from below."""

    above: Side | None
    below: Side | None


def unpriced(parts: Sequence[CountedEvent], unit: Unit) -> list[CountedEvent]:
    """Parts without a dominating pair: only Rényi can price them."""
    return [part for part in parts if brackets(part, unit, 0.0)[0].above is None]


def directions(parts: Sequence[CountedEvent], unit: Unit, delta: float, joined: Law | None = None) -> list[Direction]:
    """The distinct directions of the neighbors, masses far below `delta` cut; `joined` stands for unpriced parts."""
    copies = sum(part.count for part in parts)
    tail = delta * _CUT / max(copies, 1)
    pairs = [(brackets(part, unit, tail), part.count) for part in parts]
    distinct: list[Direction] = []
    for side in (0, 1):
        above = [(pair[side].above, count) for pair, count in pairs]
        below = [(pair[side].below, count) for pair, count in pairs]
        way = Direction(_side([*above, (joined, 1)], delta), _side(below, delta))
        if way not in distinct:
            distinct.append(way)
    return distinct


def _side(laws: Sequence[tuple[Law | None, int]], delta: float) -> Side | None:
    """All plain Gaussians are one Gaussian: μ² adds up."""
    known = [(law, n) for law, n in laws if law is not None]
    gaussians = [math.sqrt(n) * law.mu for law, n in known if isinstance(law, GaussianLoss)]
    merged: list[tuple[Law, int]] = [(law, n) for law, n in known if not isinstance(law, GaussianLoss)]
    if gaussians:
        merged.append((GaussianLoss(math.hypot(*gaussians)), 1))
    if not merged:
        return None
    copies = sum(count for _law, count in merged)
    return Side(tuple(merged), tuple(reach(law, max(delta * _CUT / copies, 1e-290)) for law, _count in merged))
