"""Upper bounds on the effect of poisoned rows on a model that was trained with differential privacy."""

from __future__ import annotations

import numpy as np

from privet.accounting import Profile
from privet.attacks.counting import Reals
from privet.core import Event, Guarantee, InvalidInput, Unit, checked

__all__ = ["certified_rows", "poisoning_bound"]

_UP = 1 + 1e-12
_POINTS = 240
_LEAST_DELTA = 1e-9
"""A profile is not evaluated beyond the ε of this δ: the bound could improve by less than this."""
_NOTHING = np.array([0.0]), np.array([1.0])
"""The (ε, δ) pairs of a claim without any privacy."""


def poisoning_bound(clean: float, given: Event | Guarantee, rows: int, *, unit: Unit | None = None) -> float:
    """Return an upper bound on an attack's probability of success with poisoned rows.

    The attack succeeds with probability `clean` at most on a clean data set. The bound also holds for the mean of a
    score between 0 and 1.

    Args:
        clean: An upper bound on the attack's success without poison, over the randomness of training.
        given: The event (its whole privacy profile is used, which is tighter), or its guarantee.
        rows: How many rows are poisoned.
        unit: For an event, what poisoning a row means: adding it (`add/remove`, the default) or exchanging it
            (`replace`).

    Raises:
        InvalidInput: If `clean` is not in [0, 1], `rows` is below 1, or the unit has several records or is not that of
            the guarantee.

    Proof. Let D₀ be clean and Dᵢ₊₁ a neighbor of Dᵢ with one more poisoned row. Training is (ε, δ(ε))-private for
    every ε ≥ 0, and "the attack succeeds" is an event of its output. With p the chance of success on Dᵢ, the chance on
    Dᵢ₊₁ is at most e^ε·p + δ(ε); and failure has at least the chance e^−ε·(1 − p − δ(ε)), as 1 − p is at most
    e^ε times it, plus δ(ε). Both limits rise with p. So the least of them over all ε, applied once for each row, is a
    limit for the last data set, whatever the rows hold. (This is group privacy of trade-off functions, Dong, Roth & Su
    2022, Thm 2.14; for one (ε, δ) it is e^(kε)·p + δ·(e^(kε) − 1)/(e^ε − 1), Ma, Zhu & Hsu 2019, or better.) A score
    between 0 and 1 is the mean, over a uniform threshold, of events that it is above the threshold; the limits are
    linear in p for each ε, and so carry over to the mean.

    >>> from privet.core.event import Gaussian
    >>> round(poisoning_bound(0.01, Gaussian(10.0), rows=3), 3)          # Φ(Φ⁻¹(0.01) + 3/10)
    0.021
    """
    checked.count("rows", rows)
    epsilons, deltas = _profile(given, unit)
    chance = _chance("clean", clean)
    for _ in range(rows):
        chance = _once(chance, epsilons, deltas)
    return chance


def certified_rows(
    given: Event | Guarantee, *, clean: float, threshold: float, unit: Unit | None = None, most: int = 100_000
) -> int:
    """Return the largest number of poisoned rows with which the attack provably stays below `threshold`.

    See `poisoning_bound` for the proof; fewer rows can do no more, as each data set of the proof has one row more than
    the last.

    Args:
        given: The event (its whole privacy profile is used, which is tighter), or its guarantee.
        clean: An upper bound on the attack's success without poison, over the randomness of training. Use
            `at_most(successes, runs, error)` of clean runs, each with fresh randomness; the answer then holds except
            with probability `error`.
        threshold: The probability of success that the attack must stay below.
        unit: For an event, what poisoning a row means: adding it (`add/remove`, the default) or exchanging it
            (`replace`).
        most: The number of rows at which the search stops.

    Raises:
        InvalidInput: If `clean` or `threshold` is not in [0, 1], `clean` is not below `threshold`, `most` is below 1,
            or the unit has several records or is not that of the guarantee.

    >>> from privet.core.event import Gaussian
    >>> certified_rows(Gaussian(10.0), clean=0.01, threshold=0.05)        # Φ(Φ⁻¹(0.01) + k/10) < 0.05
    6
    """
    chance, below = _chance("clean", clean), _chance("threshold", threshold)
    if chance >= below:
        problem = f"is {clean:g}, and the attack may succeed with {threshold:g} only"
        raise InvalidInput("clean", problem, "even without poison this is not shown: try more clean runs")
    epsilons, deltas = _profile(given, unit)
    for rows in range(checked.count("most", most)):
        chance = _once(chance, epsilons, deltas)
        if chance >= below:
            return rows
    return most


def _once(chance: float, epsilons: Reals, deltas: Reals) -> float:
    """Apply the bound for one more row: `limit_of`, on pairs that are computed once instead of once for each row."""
    with np.errstate(over="ignore", invalid="ignore"):
        up = np.where(chance > 0, np.exp(epsilons) * chance, 0.0) + deltas
        down = 1 - np.exp(-epsilons) * np.maximum(1 - chance - deltas, 0.0)
    return min(1.0, float(min(up.min(), down.min())) * _UP)


def _profile(given: Event | Guarantee, unit: Unit | None) -> tuple[Reals, Reals]:
    """Return (ε, δ) pairs that hold: finitely many, which can only loosen the bound."""
    whose = given.unit if isinstance(given, Guarantee) else unit or Unit()
    if whose.records != 1:
        raise InvalidInput("unit", f"is {whose}", "give the guarantee for one row: rows are counted here")
    if isinstance(given, Guarantee):
        if unit not in (None, given.unit):
            raise InvalidInput("unit", "is another than the guarantee's", "leave it out, or give the event")
        if not np.isfinite(given.epsilon.upper):  # no privacy, not even for events of probability 0
            return _NOTHING
        return np.array([given.epsilon.upper]), np.array([given.delta])
    profile = Profile(given, whose)
    pure = profile.epsilon(0.0)
    last = pure if np.isfinite(pure) else profile.epsilon(_LEAST_DELTA)
    if not np.isfinite(last):
        return _NOTHING
    epsilons = last * np.linspace(0.0, 1.0, _POINTS) ** 2
    return epsilons, np.array([profile.delta(float(epsilon)) for epsilon in epsilons])


def _chance(argument: str, value: float) -> float:
    found = checked.finite(argument, value)
    if not 0 <= found <= 1:
        raise InvalidInput(argument, f"is {found:g}", "give a probability from 0 to 1")
    return found
