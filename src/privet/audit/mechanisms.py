"""Audit a mechanism as a black box: draw from it on two neighboring inputs, learn to distinguish them, and count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.attacks import Reals
from privet.audit.many_runs import many_runs
from privet.core import Evidence, InvalidInput, Unit

__all__ = ["audit_draws"]

_FEW = 2000
"""The number of distinct outputs up to which each is counted by itself."""
_ROUNDS = 200
_RIDGE = 1e-3


def audit_draws(present: Any, absent: Any, *, unit: Unit, delta: float = 0.0, confidence: float = 0.95) -> Evidence:
    """Return a lower bound on a mechanism's ε from independent outputs on two neighboring inputs.

    In the manner of DP-Sniper (Bichsel et al. 2021): a third of the outputs trains a score that predicts which input an
    output came from (how often each value occurred, where there are few; else a logistic regression on simple
    features); of the rest, half choose a threshold and half are counted. Nothing is assumed about the mechanism, so
    that this can refute a guarantee. A badly trained score gives a smaller bound, and never one that is too large.

    Args:
        present: Outputs on one input, 64 or more: numbers, vectors or texts, one for each draw.
        absent: Outputs on its neighbor, of the same kind.
        unit: Which neighbors the two inputs are. The evidence is about that unit alone.
        delta: The δ at which ε is stated.
        confidence: The probability that the bound is right.

    Raises:
        InvalidInput: If there are fewer than 64 outputs of either input, or the two are of different kinds.

    >>> drawn = np.random.default_rng(1)
    >>> found = audit_draws(drawn.laplace(1, 1, 20000), drawn.laplace(0, 1, 20000), unit=Unit())
    >>> 0.8 < found.epsilon <= 1
    True
    """
    one, other = _outputs("present", present), _outputs("absent", absent)
    if one.shape[1] != other.shape[1] or one.dtype.kind != other.dtype.kind:
        raise InvalidInput("absent", "are outputs of another kind than present", "draw both from one mechanism")
    score = _taught(one[::3], other[::3])
    tried = [np.concatenate([each[1::3], each[2::3]]) for each in (one, other)]
    # `many_runs` chooses the threshold on every second score, so the two remaining thirds are interleaved first.
    shuffled = [score(each)[_mixed(len(each))] for each in tried]
    return many_runs(*shuffled, unit=unit, delta=delta, confidence=confidence, attack="outputs of a mechanism")


def _mixed(count: int) -> npt.NDArray[np.int64]:
    half = (count + 1) // 2
    order = np.empty(count, dtype=np.int64)
    order[::2], order[1::2] = np.arange(half), np.arange(half, count)
    return order


def _outputs(argument: str, values: Any) -> npt.NDArray[Any]:
    found = np.asarray(values)
    if found.dtype == object or found.dtype.kind in "US":
        found = np.array([str(each) for each in found])
    if found.ndim == 1:
        found = found[:, None]
    if found.ndim != 2 or len(found) < 64:
        raise InvalidInput(argument, f"have the shape {found.shape}", "give 64 outputs or more, one row each")
    return found.astype(np.float64) if found.dtype.kind in "biuf" else found


def _taught(present: npt.NDArray[Any], absent: npt.NDArray[Any]) -> Callable[[npt.NDArray[Any]], Reals]:
    every = np.concatenate([present, absent])
    values, places = np.unique(every, axis=0, return_inverse=True)
    if len(values) <= min(_FEW, len(every) // 4) or every.dtype.kind != "f":
        return _counting(values, places.reshape(-1), len(present))
    return _logistic(present, absent)


def _counting(
    values: npt.NDArray[Any], places: npt.NDArray[np.int64], present: int
) -> Callable[[npt.NDArray[Any]], Reals]:
    """Return the log ratio of how often a value occurred on the two inputs; 0 for a value that never occurred."""
    ones = np.bincount(places[:present], minlength=len(values)) + 0.5
    others = np.bincount(places[present:], minlength=len(values)) + 0.5
    ratios = dict(zip(map(_key, values), np.log(ones / others), strict=True))

    def score(outputs: npt.NDArray[Any]) -> Reals:
        return np.array([ratios.get(_key(row), 0.0) for row in outputs])

    return score


def _key(row: npt.NDArray[Any]) -> object:
    return tuple(None if each != each else each for each in row.tolist())  # all NaNs are one output


def _logistic(present: Reals, absent: Reals) -> Callable[[npt.NDArray[Any]], Reals]:
    """Fit a logistic regression by Newton's method on the outputs, their magnitudes, squares and soft signs."""
    every = np.concatenate([present, absent])
    every = np.where(np.isfinite(every), every, 0.0)
    middle = np.median(every, axis=0)
    spread = np.maximum(np.mean(np.abs(every - middle), axis=0), 1e-300)

    def features(outputs: npt.NDArray[Any]) -> Reals:
        scaled = np.clip((outputs - middle) / spread, -30, 30)
        none = np.isnan(scaled).astype(np.float64)  # NaN outputs are informative, too
        scaled = np.nan_to_num(scaled)
        parts = [np.ones((len(outputs), 1)), scaled, np.abs(scaled), np.tanh(scaled), np.minimum(scaled**2, 30.0), none]
        return np.concatenate(parts, axis=1)

    x = np.concatenate([features(present), features(absent)])
    y = np.concatenate([np.ones(len(present)), np.zeros(len(absent))])
    weights = np.zeros(x.shape[1])
    for _ in range(_ROUNDS):
        chance = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        slope = x.T @ (chance - y) + _RIDGE * weights
        curve = (x * (chance * (1 - chance))[:, None]).T @ x + _RIDGE * np.eye(x.shape[1])
        step = np.linalg.solve(curve, slope)
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break

    def score(outputs: npt.NDArray[Any]) -> Reals:
        return np.asarray(features(outputs) @ weights)

    return score
