"""The losses of shuffled reports of one ε₀-DP randomizer, for neighbors in which one report's answer is replaced.

Above. Write p = e^ε₀ and ω(y) for the least chance of the report y over all answers, with mass γ (the blanket of Balle,
Bell, Gascón & Nissim 2019). Whether a report came from the blanket does not depend on its sender's answer, so the other
n − 1 senders' reports that did not may be given away, and what is left is a batch of B + 1 reports, B ~ Bin(n − 1, γ),
one of them ours. Hence (their Lemma 5.3), with Z = (r₀ − e^ε·r₁)/ω at y ~ ω and Z = 0 with the chance 1 − γ,

    δ(ε) ≤ E[(Z₁ + … + Z_n)₊] / n,

where r₀ and r₁ are the laws of the report for the two answers. K-ary randomized response is ω = 1/(p + K − 1) for every
report, and Z takes the values p − e^ε, 1 − p·e^ε and, K − 2 times, 1 − e^ε.

*Every* ε₀-DP randomizer is covered by K = 2. As ω ≤ r ≤ p·ω, Z lies between 1 − p·e^ε and p − e^ε; E[Z] = 1 − e^ε; and
E[Z₊] is the δ(ε) of a single report, at most (p − e^ε)/(p + 1) (Kairouz, Oh & Viswanath 2015, Thm 3.1). So E[(Z − t)₊]
for t ≥ 0, and E[(t − Z)₊] for t ≤ 0, convex functions of t with known bounds at both ends, lie below the chords, which
are those of binary randomized response: its Z is larger in convex order, and so are sums of n. This is the pair that
Feldman, McMillan & Talwar 2021 compare with, with Bin(n − 1, 2/(p + 1)) clones where they have Bin(n − 1, e^−ε₀).

Given B + 1 = m reports of which N₁ + N₂ = d are one of the two answers, N₁ ~ Bin(d, 1/2) under ω, and

    P ∝ (p − 1)·N₁ + m,   Q ∝ (p − 1)·N₂ + m.

Several m share a row under the least of them, since another report of the blanket only hides more. Several d share the
largest, d′: as N₁ − e^ε·N₂ drifts by −(e^ε − 1)/2 with each step, Jensen's inequality shows that d steps with m are
below d′ steps with m − (p − 1)(d′ − d)/2. Masses outside of the windows (Bernstein's inequality) get the loss ε₀, which
is the largest there is; rounding moves all losses up by twice its bound on the masses, relatively.

Below. The others all hold a third answer (the first, if there are two), and only the reports of one answer are counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from privet.accounting.laws.atoms import Atoms, randomized_response
from privet.accounting.laws.law import Array

__all__ = ["crowd", "crowd_below"]

_Integers = npt.NDArray[np.int64]

_LARGEST = 30.0
"""Above this ε₀ nobody hides anybody, and a report is priced by itself."""
_SMALLEST = 1e-12
"""Below this ε₀ rounding is larger than what a crowd could hide, and a report is priced by itself, too."""
_MOST_REPORTS = 10**10
"""More than these are priced as these: fewer only hide less."""
_ULP = 2.0**-52
_CELLS = 1 << 13
_ALIKE, _ALIKE_SEVERAL = 4e-4, 4e-3
"""How far the numbers of reports that share a row may differ, relatively: for two answers, and for more."""
_NEAR = 7.0
"""Beyond so many standard deviations rows may be coarse: they hardly ever happen."""
_WORTH = 0.05
"""A share of reports of other answers that is not worth the rows that it needs: two answers are then the bound."""


@dataclass(frozen=True)
class _Rows:
    """Rows of N₁ ~ Bin(steps, 1/2): the chance of each row, its m, and m less what merged rows cost."""

    chance: Array
    steps: Array
    reports: Array
    floor: Array


@lru_cache(maxsize=64)
def crowd(epsilon: float, categories: int, reports: int, tail: float, clones: float | None = None) -> Atoms:
    """A law that dominates `reports` shuffled reports; masses below `tail` may be cut to the loss ε₀.

    With two categories it holds for every randomizer that is ε₀-DP, and with more for randomized response alone.
    `clones` is the chance that another report is one of the blanket, where it is known to be no more than that.
    """
    if reports == 1 or not _SMALLEST <= epsilon <= _LARGEST:
        return randomized_response(epsilon, categories)
    growth = math.exp(epsilon)
    if 2 < categories < 2 + _WORTH * (growth + categories - 1):
        return crowd(epsilon, 2, reports, tail)
    gamma = categories / (growth + categories - 1)
    cut = min(max(tail, 1e-250), 1e-14) / (8 * growth)
    first, others = _binomial(min(reports, _MOST_REPORTS) - 1, gamma if clones is None else clones, cut)
    alike = _ALIKE if categories == 2 else _ALIKE_SEVERAL
    starts = _starts(others, max(1, int(alike * (first + int(np.argmax(others))))), len(others))
    chances: Array = np.add.reduceat(others, starts)
    sizes: Array = np.asarray(first + 1.0 + starts, dtype=np.float64)
    longest = len(others)
    if categories == 2:
        parts = [_Rows(chances, sizes, sizes, sizes)]
    else:
        parts = [
            _either_answer(c, m, growth, categories, cut) for c, m in zip(chances.tolist(), sizes.tolist(), strict=True)
        ]
        longest += max(len(part.steps) for part in parts)
    losses, masses = (
        np.concatenate(arrays) for arrays in zip(*(_atoms(part, growth, gamma, cut) for part in parts), strict=True)
    )
    eta = 8 * _ULP * (longest + _half_width(float(sizes[-1]), cut) + 64) + 1e-14
    top = float(np.max(np.abs(losses)))
    points, p = _on_grid(losses, masses, top)
    points = np.concatenate((points, [0.0, epsilon]))
    p = np.concatenate((p, [max(0.0, 1 - float(p.sum())), 4 * growth * cut])) * (1 + eta)
    positive = p > 0
    points = points[positive] + 2 * eta
    return Atoms(points, p[positive], p[positive] * np.exp(-points))


@lru_cache(maxsize=64)
def crowd_below(epsilon: float, categories: int, reports: int) -> tuple[Atoms, Atoms] | None:
    """Laws that randomized response dominates, for the answer that goes and for the one that comes."""
    if reports == 1 or not _SMALLEST <= epsilon <= _LARGEST or reports > _MOST_REPORTS:
        return None
    growth = math.exp(epsilon)
    other = 1 / (growth + categories - 1)
    _, pmf = _binomial(reports - 1, other, 1e-30)
    before, after = np.append(0.0, pmf), np.append(pmf, 0.0)
    p = growth * other * before + (1 - growth * other) * after
    q = other * before + (1 - other) * after
    eta = 8 * _ULP * (len(pmf) + 64)
    return _lowered(p, q, eta), _lowered(q, p, eta)


def _lowered(p: Array, q: Array, eta: float) -> Atoms:
    representable = (p > 1e-290) & (q > 1e-290)
    losses = np.log(p[representable] / q[representable]) - 2 * eta
    masses = p[representable] * (1 - eta)
    return Atoms(losses, masses, masses * np.exp(-losses))


def _binomial(trials: int, chance: float, tail: float) -> tuple[int, Array]:
    """The least number in a window outside of which lies less than `tail`, and the masses from there on."""
    mean, log = trials * chance, math.log(2 / tail)
    reach = log / 3 + math.sqrt(log * log / 9 + 2 * mean * (1 - chance) * log)
    low, high = max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach))
    mode = min(max(int((trials + 1) * chance), low), high)
    odds = chance / (1 - chance)
    up, down = np.arange(mode, high, dtype=np.float64), np.arange(mode, low, -1, dtype=np.float64)
    above, below = np.cumprod((trials - up) / (up + 1) * odds), np.cumprod(down / (trials - down + 1) / odds)
    masses = np.concatenate((below[::-1], [1.0], above))
    return low, masses / masses.sum()


def _starts(masses: Array, width: int, most: int) -> _Integers:
    """Where merged rows begin: `width` together near the mean; half a deviation, and `most` at most, far out."""
    places = np.arange(len(masses))
    mean = float(masses @ places)
    deviation = math.sqrt(float(masses @ (places - mean) ** 2))
    low, high = max(0, int(mean - _NEAR * deviation)), min(len(masses), int(mean + _NEAR * deviation) + 1)
    far = max(1, width, min(int(deviation / 2), most))
    return np.concatenate((np.arange(0, low, far), np.arange(low, high, width), np.arange(high, len(masses), far)))


def _half_width(steps: float, tail: float) -> int:
    """How far N₁ ~ Bin(steps, 1/2) strays from its mean, but for a mass of `tail` (Hoeffding's inequality)."""
    return min(math.ceil(math.sqrt(steps * math.log(2 / tail) / 2)) + 1, int(steps) // 2 + 1)


def _either_answer(chance: float, reports: float, growth: float, categories: int, cut: float) -> _Rows:
    """The rows for K ≥ 3 answers: d ~ Bin(m, 2/K) of m reports are one of the two that matter."""
    first, masses = _binomial(int(reports), 2 / categories, cut)
    width = 1 + int(min(2 * _ALIKE_SEVERAL * reports / (growth - 1), len(masses) / 160))
    starts = _starts(masses, width, 1 + int(reports / (2 * growth)))  # so that no floor falls below 3/4 of m
    rows = np.add.reduceat(masses, starts) * chance
    ends = np.append(starts[1:], len(masses)) - 1.0
    floor = reports - (growth - 1) * (ends - starts) / 2
    return _Rows(rows, first + ends, np.full_like(rows, reports), floor)


def _atoms(rows: _Rows, growth: float, gamma: float, cut: float) -> tuple[Array, Array]:
    """Losses and P-masses of all rows, without what lies outside of the windows."""
    half = _half_width(float(rows.steps.max()), cut)
    steps, mode = rows.steps[:, None], np.floor(rows.steps / 2)[:, None]
    away = np.arange(half, dtype=np.float64)[None, :]
    above = np.cumprod(np.maximum(steps - mode - away, 0.0) / (mode + away + 1), axis=1)
    below = np.cumprod(np.maximum(mode - away, 0.0) / (steps - mode + away + 1), axis=1)
    masses = np.concatenate((below[:, ::-1], np.ones_like(mode), above), axis=1)
    masses *= (rows.chance / masses.sum(axis=1))[:, None]
    one = mode + np.arange(-half, half + 1, dtype=np.float64)[None, :]
    floor = rows.floor[:, None]
    p = (growth - 1) * one + floor
    q = (growth - 1) * (steps - one) + floor
    positive = masses > 0
    weighted = gamma * masses * p / rows.reports[:, None]
    return np.log(p[positive] / q[positive]), weighted[positive]


def _on_grid(losses: Array, masses: Array, top: float) -> tuple[Array, Array]:
    """Each atom split between the two grid points around it, so that both masses stay (Doroshenko et al. 2022)."""
    step = 2 * top / _CELLS
    if step == 0 or len(losses) <= _CELLS:
        return losses, masses
    cell = np.clip(np.floor((losses + top) / step).astype(np.int64), 0, _CELLS - 1)
    up = np.clip(np.expm1(np.minimum(-top + cell * step - losses, 0.0)) / math.expm1(-step), 0.0, 1.0)
    p = np.bincount(cell, weights=masses * (1 - up), minlength=_CELLS + 1).astype(np.float64)
    p += np.bincount(cell + 1, weights=masses * up, minlength=_CELLS + 1)
    return np.asarray(-top + np.arange(_CELLS + 1) * step, dtype=np.float64), p
