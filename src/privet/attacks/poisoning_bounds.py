"""How much poisoned rows can do at most to a model that was trained with differential privacy."""

from __future__ import annotations

import numpy as np

from privet.accounting import Profile
from privet.attacks.counting import Reals
from privet.core import Event, Guarantee, InvalidInput, Unit, checked

__all__ = ["certified_rows", "poisoning_bound"]

_UP = 1 + 1e-12
_POINTS = 240
_LEAST_DELTA = 1e-9
"""Beyond the ε of this δ a profile is not asked: what it could add is below it."""
_NOTHING = np.array([0.0]), np.array([1.0])
"""The pairs of what promises nothing."""


def poisoning_bound(clean: float, given: Event | Guarantee, rows: int, *, unit: Unit | None = None) -> float:
    """An attack that succeeds with probability `clean` at most on a data set succeeds with this probability at most
    once so many rows of it are poisoned; so does the mean of a score between 0 and 1.

    Args:
        clean: an upper limit on the attack's success without poison, over the randomness of training.
        given: what was done (its whole privacy profile is used, which is tighter), or its guarantee.
        rows: how many rows are poisoned.
        unit: for an event, what poisoning a row means: added (`add/remove`, the default) or exchanged (`replace`).

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
    """The largest number of poisoned rows with which the attack provably succeeds with a probability below `threshold`.

    `clean` comes from runs without poison: `at_most(successes, runs, error)` of them, each with fresh randomness; the
    answer is then right but for that error. See `poisoning_bound` for the proof; fewer rows can do no more, as each
    data set of the proof has one row more than the last.

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
    """One more row: `limit_of`, on pairs that are computed once, as its search would begin anew for each row."""
    with np.errstate(over="ignore", invalid="ignore"):
        up = np.where(chance > 0, np.exp(epsilons) * chance, 0.0) + deltas
        down = 1 - np.exp(-epsilons) * np.maximum(1 - chance - deltas, 0.0)
    return min(1.0, float(min(up.min(), down.min())) * _UP)


def _profile(given: Event | Guarantee, unit: Unit | None) -> tuple[Reals, Reals]:
    """Pairs of ε and δ that hold; some of infinitely many, which loosens the limit and never breaks it."""
    whose = given.unit if isinstance(given, Guarantee) else unit or Unit()
    if whose.records != 1:
        raise InvalidInput("unit", f"is {whose}", "give the guarantee for one row: rows are counted here")
    if isinstance(given, Guarantee):
        if unit not in (None, given.unit):
            raise InvalidInput("unit", "is another than the guarantee's", "leave it out, or give the event")
        if not np.isfinite(given.epsilon.upper):  # it promises nothing, also of what never happened without poison
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
