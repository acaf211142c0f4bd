"""Losses after sampling, from the loss of the leaf; each class names its theorem."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privet.accounting.laws.atoms import Atoms
from privet.accounting.laws.law import Array, FiniteLoss, Law
from privet.core import NotProven

__all__ = ["Added", "Mixture", "Removed", "Symmetric", "draws_of_one_row"]

_MOST_DRAWS_OF_ONE = 10_000
"""Above this many draws of each row, on average, a mixture over their number is not worth it."""
_ROUNDED_UP = 1 + 1e-9
_ROUNDING = 1e-14
"""More than the rounding error of masses that sum to 1."""


@dataclass(frozen=True)
class Removed:
    """((1 − q)Q + qP, Q): Poisson sampling, the row is removed (Zhu, Dong & Wang 2022, Thm 11)."""

    inner: Law
    rate: float

    @property
    def infinite(self) -> float:
        """Only a sampled row can be revealed."""
        return self.rate * self.inner.infinite

    @property
    def support(self) -> tuple[float, float]:
        """L′ = log(1 − q + q·e^L) is at least log(1 − q)."""
        low, high = self.inner.support
        return _mixed(-math.inf if self._hidden else low, self.rate), _mixed(high, self.rate)

    @property
    def _hidden(self) -> float:
        """The leaf's Q-mass at −∞: what only Q can show, which a batch without the row shows under both."""
        return self.inner.minus if isinstance(self.inner, Atoms) and self.rate < 1 else 0.0

    def cells(self, bounds: Array) -> tuple[Array, Array]:
        """The leaf's cells between the preimages of the bounds."""
        inside = np.expm1(np.minimum(bounds, 700.0)) + self.rate
        with np.errstate(divide="ignore", invalid="ignore"):
            pulled = np.where(inside > 0, np.log(np.maximum(inside, 0.0)) - math.log(self.rate), -np.inf)
        pulled = np.where(bounds > 700.0, bounds - math.log(self.rate), pulled)
        p, q = self.inner.cells(pulled)
        if self._hidden:
            # Its loss is finite here, log(1 − q), and it must not be rounded down with what lies below.
            q[0] = max(0.0, q[0] - self._hidden)
            q[np.searchsorted(bounds, math.log1p(-self.rate), side="right")] += self._hidden
        return (1 - self.rate) * q + self.rate * p, q


@dataclass(frozen=True)
class Added(FiniteLoss):
    """(P, (1 − q)P + qQ): Poisson sampling, the row is added (Zhu, Dong & Wang 2022, Thm 11)."""

    inner: Law
    rate: float

    @property
    def support(self) -> tuple[float, float]:
        """L′ = −log(1 − q + q·e^(−L)) is at most −log(1 − q)."""
        low, high = self.inner.support
        top = math.inf if self.inner.infinite > 0 else high
        return -_mixed(-low, self.rate), -_mixed(-top, self.rate)

    def cells(self, bounds: Array) -> tuple[Array, Array]:
        """The leaf's cells between the preimages of the bounds; what the leaf reveals outright is finite here."""
        inside = np.expm1(np.minimum(-bounds, 700.0)) + self.rate
        with np.errstate(divide="ignore", invalid="ignore"):
            pulled = np.where(inside > 0, math.log(self.rate) - np.log(np.maximum(inside, 0.0)), np.inf)
        pulled = np.where(bounds < -700.0, bounds + math.log(self.rate), pulled)
        p, q = self.inner.cells(pulled)
        if self.inner.infinite > 0:
            p[np.searchsorted(bounds, -math.log1p(-self.rate), side="right")] += self.inner.infinite
        return p, (1 - self.rate) * p + self.rate * q


@dataclass(frozen=True)
class Symmetric:
    """The symmetric pair whose profile is that of `inner` for every α ≥ 1.

    A bound on the hockey-stick divergences of both directions for α ≥ 1 determines those for α < 1, since
    H_α(P‖Q) = 1 − α + α·H_{1/α}(Q‖P); this is the pair with exactly that profile. It has the positive losses of
    `inner`, their mirror image, and at 0 what is left, which is at least 0 wherever P(L > 0) + Q(L > 0) + P(∞) ≤ 1: so
    it is for `Removed` of any leaf with mirrored losses, whose Q(L > 0) is at most ½. That is sampling without
    replacement for replace-one neighbors (Balle, Barthe & Gaboardi 2018, Thm 9).
    """

    inner: Law

    @property
    def infinite(self) -> float:
        """As for the inner pair."""
        return self.inner.infinite

    @property
    def support(self) -> tuple[float, float]:
        """As far below 0 as above."""
        high = max(self.inner.support[1], 0.0)
        return -high, high

    def cells(self, bounds: Array) -> tuple[Array, Array]:
        """Positive losses from the inner pair, negative ones mirrored with P and Q exchanged, the rest at 0."""
        positive = bounds[bounds > 0]
        negative = -bounds[bounds < 0][::-1]
        p_up, q_up = self.inner.cells(np.concatenate(([0.0], positive)))
        p_down, q_down = self.inner.cells(np.concatenate(([0.0], negative)))
        zero = 1.0 - float(p_up[1:].sum()) - float(q_up[1:].sum()) - self.infinite
        left_p, left_q = q_down[1:][::-1], p_down[1:][::-1]
        left_q[0] += self.infinite
        p, q = _around_zero(left_p, p_up[1:], zero, bounds), _around_zero(left_q, q_up[1:], zero, bounds)
        return p, q


def _around_zero(left: Array, right: Array, zero: float, bounds: Array) -> Array:
    """Join the cells below and above 0; the atom at 0 belongs to the cell that has reached 0.

    An atom of the inner pair at 0 is in both halves, so that what is left may be negative: then as much of that atom
    is taken out of either half (but for rounding errors, which stay).
    """
    spare = min(0.0, zero + _ROUNDING)
    if np.any(bounds == 0.0):
        left, right = left.copy(), right.copy()
        left[-1] = max(0.0, left[-1] + spare / 2)
        right[0] = max(0.0, right[0] + max(zero, 0.0) + spare / 2)
        return np.concatenate((left, right))
    middle = np.maximum(left[-1:] + (max(zero, 0.0) + spare) + right[:1], 0.0)
    return np.concatenate((left[:-1], middle, right[1:]))


@dataclass(frozen=True)
class Mixture:
    """A pair chosen at random by public weights and revealed; `cut` is the weight left out, whose loss is +∞."""

    laws: tuple[Law, ...]
    weights: tuple[float, ...]
    cut: float

    @property
    def infinite(self) -> float:
        """What the chosen pairs reveal, and the weight that was cut off."""
        revealed = math.fsum(w * law.infinite for w, law in zip(self.weights, self.laws, strict=True))
        return self.cut + revealed

    @property
    def support(self) -> tuple[float, float]:
        """The hull of the parts' supports."""
        return min(law.support[0] for law in self.laws), max(law.support[1] for law in self.laws)

    def cells(self, bounds: Array) -> tuple[Array, Array]:
        """Weighted sums; the Q-mass of what was cut off is left out, as its loss is −∞."""
        p, q = np.zeros(len(bounds) + 1), np.zeros(len(bounds) + 1)
        for weight, law in zip(self.weights, self.laws, strict=True):
            inner_p, inner_q = law.cells(bounds)
            p += weight * inner_p
            q += weight * inner_q
        q[0] += self.cut
        return p, q


def draws_of_one_row(draws: int, population: int, tail: float) -> tuple[float, tuple[float, ...], float]:
    """η = P(a row is drawn at all); given that, the chances of 1, 2, … draws, and a bound on the rest, at most `tail`.

    The chances follow from each other by P(k + 1) = P(k)·(m − k)/((k + 1)(n − 1)), and the rest from the ratio, which
    falls: a geometric series. All are rounded up by more than their rounding error.
    """
    if draws > _MOST_DRAWS_OF_ONE * population:
        raise NotProven(f"{draws} draws from {population} rows use each row too often to be priced; use no sampling")
    if population == 1:
        return 1.0, (*(0.0 for _ in range(draws - 1)), 1.0), 0.0
    log_stay = math.log1p(-1 / population)
    chance = -math.expm1(draws * log_stay)
    log_now = math.log(draws) - math.log(population) + (draws - 1) * log_stay - math.log(chance)
    weights, rest = [math.exp(log_now)], math.inf
    for k in range(1, draws):
        ratio = (draws - k) / ((k + 1) * (population - 1))
        rest = weights[-1] * ratio / (1 - ratio) if ratio < 1 else math.inf
        if rest <= tail:
            break
        log_now += math.log(ratio)
        weights.append(math.exp(log_now))
    else:
        rest = 0.0
    return chance, tuple(weight * _ROUNDED_UP for weight in weights), rest * _ROUNDED_UP


def _mixed(loss: float, rate: float) -> float:
    """log(1 − q + q·e^loss), stable at both ends."""
    if loss == math.inf:
        return math.inf
    if loss > 30:
        return float(np.logaddexp(math.log1p(-rate) if rate < 1 else -math.inf, loss + math.log(rate)))
    return math.log1p(rate * math.expm1(loss)) if loss > -math.inf else (math.log1p(-rate) if rate < 1 else -math.inf)
