"""The exact laws of mechanisms, written down a second time and summed rather than drawn.

Each is a dictionary or a row of probabilities for a given true answer. They are taken from the papers' definitions and
from the public fields of a mechanism, not from its code.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Row = npt.NDArray[np.float64]


def laplace_mass(scale: float, x: npt.NDArray[Any]) -> Row:
    """P(X = x) ∝ e^(-|x|/scale) on the integers."""
    return np.asarray(math.tanh(0.5 / scale) * np.exp(-np.abs(x) / scale))


def laplace_upper(scale: float, x: npt.NDArray[Any]) -> Row:
    """P(X ≥ x)."""
    x = np.asarray(x, dtype=np.float64)
    above = np.exp(-np.maximum(x, 1) / scale) / (1 + math.exp(-1 / scale))
    below = 1 - np.exp(-np.maximum(1 - x, 1) / scale) / (1 + math.exp(-1 / scale))
    return np.asarray(np.where(x >= 1, above, below))


def gaussian_mass(sigma: float, x: npt.NDArray[Any]) -> Row:
    """P(X = x) ∝ e^(-x²/2σ²) on the integers."""
    wide = np.arange(-math.ceil(40 * sigma), math.ceil(40 * sigma) + 1)
    return np.asarray(np.exp(-(np.asarray(x, float) ** 2) / (2 * sigma**2)) / np.exp(-(wide**2) / (2 * sigma**2)).sum())


def hockey_stick(p: Row, q: Row, epsilon: float) -> float:
    """The δ at ε from P to Q."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def largest_loss(p: Row, q: Row) -> float:
    """max |log(P/Q)|."""
    return float(np.abs(np.log(p) - np.log(q)).max())


def shifted_delta(sigma: float, shift: Sequence[int], epsilon: float) -> float:
    """The δ at ε of numbers that move by `shift`, each with discrete Gaussian noise of its own; exact up to 14σ.

    The loss at noise x is Σ (2·s·x + s²)/2σ², so that the law of Σ s·x is enough.
    """
    noise = np.arange(-math.ceil(14 * sigma), math.ceil(14 * sigma) + 1)
    total = np.ones(1)
    for each in shift:
        spread = np.zeros((len(noise) - 1) * abs(each) + 1)
        spread[:: max(abs(each), 1)] += gaussian_mass(sigma, noise) if each else 1.0
        total = np.convolve(total, spread)
    moved = np.arange(len(total)) - len(total) // 2
    loss = (2 * moved + sum(each * each for each in shift)) / (2 * sigma**2)
    return float((total * np.maximum(-np.expm1(epsilon - loss), 0)).sum())


def exponential_law(scores: Sequence[float], rate: float) -> Row:
    """P(i) ∝ e^(rate·score)."""
    weights = np.exp(rate * (np.asarray(scores, float) - max(scores)))
    return np.asarray(weights / weights.sum())


def permute_and_flip_law(scores: Sequence[float], rate: float) -> Row:
    """All orders, each equally likely; in each, the first whose coin comes up."""
    coin = np.exp(rate * (np.asarray(scores, float) - max(scores)))
    found = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for i in order:
            found[i] += left * coin[i] / len(orders)
            left *= 1 - coin[i]
    return found


def noisy_max_law(scores: Sequence[int], scale: float) -> Row:
    """Σ over the winner's noisy score z: those before it stay below z, those after it at most reach it."""
    z = np.arange(min(scores) - math.ceil(45 * scale), max(scores) + math.ceil(45 * scale) + 1)
    found = []
    for i, mine in enumerate(scores):
        chance = laplace_mass(scale, z - mine)
        for j, other in enumerate(scores):
            if j != i:
                chance = chance * (1 - laplace_upper(scale, z - other + (0 if j < i else 1)))
        found.append(chance.sum())
    return np.array(found)


def above_threshold_law(answers: Sequence[int], threshold: int, scale: float, noise: float) -> Row:
    """The chance that the first "yes" is to answer 0, 1, …, or to none of them: Σ over the threshold's noise."""
    r = np.arange(-math.ceil(45 * scale), math.ceil(45 * scale) + 1)
    left, found = laplace_mass(scale, r), []
    for answer in answers:
        yes = laplace_upper(noise, threshold + r - answer)
        found.append(float((left * yes).sum()))
        left = left * (1 - yes)
    return np.array([*found, float(left.sum())])


def neighbours(
    values: Sequence[Any], size: int, near: Callable[[tuple[Any, ...], tuple[Any, ...]], bool]
) -> list[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """All pairs of rows of `size` values that are neighbours."""
    everything = list(itertools.product(values, repeat=size))
    return [(one, other) for one in everything for other in everything if near(one, other)]
