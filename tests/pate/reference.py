"""The papers' formulae written out plainly, and the noisy arg-max by brute force: what the room is checked against."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

Reals = npt.NDArray[np.float64]
ORDERS = (1.5, 2.0, 3.0, 5.0, 9.0, 20.0, 40.0)


def printed_theorem_6(q: float, sigma: float, order: float) -> float | None:
    """Papernot et al. 2018, Theorem 6 with the orders of Proposition 10, in 60 digits; None where it does not apply."""
    with localcontext() as context:
        context.prec = 60
        q_, s, a = Decimal(q), Decimal(sigma), Decimal(order)
        mu2 = s * (-q_.ln()).sqrt()
        mu1 = mu2 + 1
        e1, e2 = mu1 / s**2, mu2 / s**2
        if mu2 <= 1 or a > mu1 or q_ * e2.exp() >= 1:
            return None
        if q_ > ((mu2 - 1) * e2).exp() / (mu1 / (mu1 - 1) * mu2 / (mu2 - 1)) ** mu2:
            return None
        first = (1 - q_) / (1 - (q_ * e2.exp()) ** ((mu2 - 1) / mu2))
        second = e1.exp() / q_ ** (1 / (mu1 - 1))
        return float(((1 - q_) * first ** (a - 1) + q_ * second ** (a - 1)).ln() / (a - 1))


def printed_theorem_3(q: float, epsilon: float, order: float) -> float | None:
    """Papernot et al. 2017, Theorem 3, with l = order - 1; None where it does not apply."""
    with localcontext() as context:
        context.prec = 60
        q_, e, moment = Decimal(q), Decimal(epsilon), Decimal(order) - 1
        if q_ > (e.exp() - 1) / ((2 * e).exp() - 1):
            return None
        likely = (1 - q_) * ((1 - q_) / (1 - e.exp() * q_)) ** moment
        return float((likely + q_ * (e * moment).exp()).ln() / moment)


def printed_proposition_7(row: Sequence[int], sigma: float) -> float:
    """Σ over the other labels of ½·erfc(gap/2σ)."""
    top = int(np.argmax(row))
    return sum(0.5 * math.erfc((row[top] - votes) / (2 * sigma)) for i, votes in enumerate(row) if i != top)


def gaussian(sigma: float) -> Reals:
    """Masses of discrete Gaussian noise from -reach to reach."""
    reach = math.ceil(14 * sigma) + 2
    masses = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma * sigma))
    return np.asarray(masses / masses.sum())


def laplace(scale: float) -> Reals:
    """Masses of discrete Laplace noise."""
    reach = math.ceil(60 * scale) + 2
    masses = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return np.asarray(masses / masses.sum())


def winners(row: Sequence[int], noise: Reals) -> Reals:
    """The law of the noisy arg-max, where the first of equals wins."""
    reach = len(noise) // 2
    span = np.arange(min(row) - reach, max(row) + reach + 1)
    upto = np.concatenate(([0.0], np.cumsum(noise)))

    def at_most(x: npt.NDArray[np.int64]) -> Reals:
        return np.asarray(upto[np.clip(x + reach + 1, 0, len(noise))])

    found = []
    for k, own in enumerate(row):
        places = span - own + reach
        inside = (places >= 0) & (places < len(noise))
        mass = np.where(inside, noise[np.clip(places, 0, len(noise) - 1)], 0.0)
        for other, votes in enumerate(row):
            if other != k:
                mass = mass * at_most(span - votes - (1 if other < k else 0))
        found.append(mass.sum())
    return np.array(found)


def passed(support: int, threshold: int, noise: Reals) -> tuple[float, float]:
    """P(support + noise ≥ threshold) and P(less), each summed by itself so that small ones keep their digits."""
    first = max(threshold - support + len(noise) // 2, 0)
    return float(noise[first:].sum()), float(noise[:first].sum())


def neighbours(row: Sequence[int]) -> Iterator[list[int]]:
    """Every row in which one teacher votes for another label."""
    for i in range(len(row)):
        for j in range(len(row)):
            if i != j and row[i] > 0:
                moved = list(row)
                moved[i] -= 1
                moved[j] += 1
                yield moved


def divergence(p: Reals, q: Reals, order: float) -> float:
    """D_a(p‖q) from its definition."""
    keep = p > 0
    return float(logsumexp(order * np.log(p[keep]) + (1 - order) * np.log(q[keep]))) / (order - 1)


def rows_of(teachers: int, labels: int) -> Iterator[list[int]]:
    """Every way to vote, counted."""
    if labels == 1:
        yield [teachers]
        return
    for first in range(teachers + 1):
        for rest in rows_of(teachers - first, labels - 1):
            yield [first, *rest]
