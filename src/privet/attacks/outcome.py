"""Evaluation of membership attacks: ROC curve, AUC, and true-positive rates at low false-positive rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import betainc

from privet.accounting import Profile, best_true_positive_rate, piecewise
from privet.attacks.counting import Reals, at_least, at_most, checked_scores, lower_limits
from privet.core import Event, Guarantee, InvalidInput, Unit, checked
from privet.ensemble import generator

__all__ = ["Band", "ConfidenceInterval", "Limit", "Outcome", "limit_of"]

_POINTS, _ROUNDS = 40, 40

Limit = Callable[[float], float]
"""Function from a false-positive rate to the highest true-positive rate that any attack can reach."""


@dataclass(frozen=True)
class ConfidenceInterval:
    """Estimate with its confidence interval."""

    value: float
    lower: float
    upper: float

    @staticmethod
    def of_share(successes: int, trials: int, confidence: float = 0.95) -> ConfidenceInterval:
        """Return the share of successes with its interval for independent trials (Clopper & Pearson 1934).

        Args:
            successes: The number of successes.
            trials: The number of trials; at least one.
            confidence: The coverage of the interval; each end fails with half of the remaining probability at most.

        Raises:
            InvalidInput: If there are no trials, more successes than trials, or `confidence` is not between 0 and 1.

        >>> ConfidenceInterval.of_share(9, 10)
        ConfidenceInterval(value=0.9, lower=0.554..., upper=0.997...)
        """
        miss = (1 - checked.confidence("confidence", confidence)) / 2
        checked.count("trials", trials)
        return ConfidenceInterval(
            successes / trials, at_least(successes, trials, miss), at_most(successes, trials, miss)
        )


@dataclass(frozen=True, eq=False)
class Band:
    """Points that all lie on or below the true ROC curve simultaneously, except with probability `error` at most."""

    alarms: Reals = field(repr=False)
    """Upper limits on the false-positive rate."""
    hits: Reals = field(repr=False)
    """Lower limits on the true-positive rate, one for each of `alarms`."""
    error: float

    def above(self, limit: Limit) -> bool:
        """Return whether a point of the band lies above a limit.

        Args:
            limit: The highest true-positive rate for each false-positive rate, such as `limit_of` returns.
        """
        return any(hit > limit(alarm) for alarm, hit in zip(self.alarms.tolist(), self.hits.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Outcome:
    """Scores of an attack for members and for non-members (outsiders); a higher score means a likelier member.

    >>> found = Outcome("guessing", np.linspace(0, 1, 200), np.linspace(0, 1, 200))
    >>> round(found.auc().value, 2), round(found.hits(0.01).value, 3)
    (0.5, 0.01)
    """

    attack: str
    members: Reals = field(repr=False)
    outsiders: Reals = field(repr=False)

    def __post_init__(self) -> None:
        checked.text("attack", self.attack)
        for name in ("members", "outsiders"):
            object.__setattr__(self, name, checked_scores(name, getattr(self, name), 2))

    def hits(self, alarms: float, confidence: float = 0.95) -> ConfidenceInterval:
        """Return the true-positive rate at a given false-positive rate.

        The threshold is the lowest that keeps the false-positive rate among the non-members at hand within `alarms`;
        the interval (Clopper & Pearson 1934) is for the members, given that threshold.

        Args:
            alarms: The highest false-positive rate, above 0.
            confidence: The coverage of the interval.

        Raises:
            InvalidInput: If `alarms` is not in (0, 1], there are fewer than 1/alarms non-members, or `confidence` is
                not between 0 and 1.
        """
        share = checked.probability("alarms", alarms)
        needed = ceil(1 / share)
        if len(self.outsiders) < needed:
            problem = f"is {share:g}, and there are {len(self.outsiders)} outsiders"
            raise InvalidInput("alarms", problem, f"it takes {needed:,} of them or more")
        allowed = int(share * len(self.outsiders) + 1e-9)
        threshold = np.sort(self.outsiders)[::-1][allowed] if allowed < len(self.outsiders) else -np.inf
        count = int(np.count_nonzero(self.members > threshold))
        return ConfidenceInterval.of_share(count, len(self.members), confidence)

    def auc(self, confidence: float = 0.95) -> ConfidenceInterval:
        """Return the AUC: the probability that a member scores above a non-member, ties counting half.

        What is proven of the interval, for any sizes and any two distributions of independent scores: each end is wrong
        with half of the error at most. The value is a two-sample U-statistic: with k the smaller side, it is the mean,
        over all ways to give each of k a partner of its own on the other side, of the mean of k independent numbers in
        [0, 1] (Hoeffding 1963, Section 5). So for a convex f the mean of f(k·value) is at most that of f(B), B binomial
        of k trials with the true chance; and P(k·value ≥ x) ≤ E(B − t)₊ / (x − t) for every t < x, of which the least
        is taken (Bentkus 2004). Even perfectly separated scores leave an interval of some width: for k = 4 it starts
        at 0.025^(1/4) = 0.40.

        It is wider than normal approximations (by a fifth where the variance is the largest that there can be; by half
        for guessing with sides of one size), whose ends are wrong far more often than stated where there are few rows.
        Examples of *one* trained model are not independent, as for `band`.

        Args:
            confidence: The coverage of the interval.

        Raises:
            InvalidInput: If `confidence` is not between 0 and 1.

        >>> Outcome("all told apart", np.ones(9), np.zeros(4)).auc()
        ConfidenceInterval(value=1.0, lower=0.397..., upper=1.0)
        """
        value = float(_ranked(self.members, self.outsiders).mean())
        count = min(len(self.members), len(self.outsiders))
        error = (1 - checked.confidence("confidence", confidence)) / 2
        return ConfidenceInterval(
            value, _mean_at_least(value, count, error), 1 - _mean_at_least(1 - value, count, error)
        )

    def roc(self) -> tuple[Reals, Reals]:
        """Return the false-positive rates and the true-positive rates for every threshold."""
        edges = np.unique(np.concatenate([self.members, self.outsiders]))[::-1]
        alarms = len(self.outsiders) - np.searchsorted(np.sort(self.outsiders), edges, side="left")
        hits = len(self.members) - np.searchsorted(np.sort(self.members), edges, side="left")
        first = np.zeros(1)
        return (
            np.concatenate([first, alarms / len(self.outsiders)]),
            np.concatenate([first, hits / len(self.members)]),
        )

    def band(self, error: float = 0.05) -> Band:
        """Return a simultaneous lower confidence band of the ROC curve.

        The number and the ranks of its thresholds are fixed beforehand.

        What is proven, where scores are independent, those of members with one distribution and those of non-members
        with another: all points lie on or below the true curve at once, except with probability `error`. Let t be the
        k-th highest of m non-members. As scores are a rising function of uniform numbers, P(non-member > t) is at most
        a Beta(k, m − k + 1) number, whatever ties there are, so it exceeds its Clopper–Pearson limit for k − 1 of m
        with probability ≤ a. t does not depend on members, so their hits above it are binomial, and miss their own
        limit with probability ≤ a. With K ranks (1, 2, 4, … from either end) and a = error / 2K the rest is a union
        bound.

        What is not: the examples of *one* trained model are not independent trials, as all members shaped it together.
        The band is then a description of this model, and not a test of its guarantee: see `exceeds`.

        Args:
            error: The probability with which a point of the band may lie above the true curve.

        Raises:
            InvalidInput: If `error` is not between 0 and 1.
        """
        if not 0 < checked.finite("error", error) < 1:
            raise InvalidInput("error", f"is {error:g}", "give a probability such as 0.05")
        trials, total = len(self.members), len(self.outsiders)
        doubled = 2 ** np.arange(max(1, int(np.log2(total))), dtype=np.int64)
        ranks = np.unique(np.concatenate([doubled, total + 1 - doubled]))
        each = error / (2 * len(ranks))
        thresholds = np.sort(self.outsiders)[::-1][ranks - 1]
        counts = trials - np.searchsorted(np.sort(self.members), thresholds, side="right")
        return Band(1 - lower_limits(total - ranks + 1, total, each), lower_limits(counts, trials, each), error)

    def exceeds(self, limit: Limit | Guarantee | Event, error: float = 0.05) -> bool:
        """Return whether the band lies above the limit that a guarantee implies (see `limit_of`) at some point.

        Guarantee bounds hold for each record's own test, over the randomness of training. So this *refutes* a guarantee
        (and is wrong with probability `error` at most) where each score is from a run of its own, on one of two
        neighboring data sets. For the examples of one model it is a warning: averaged over training runs, the
        true-positive rate at a fixed threshold is below the limit at the average false-positive rate (the limit is
        concave), but the rate in one run may deviate by more than the band accounts for, as its members are not
        independent. The test that is sound there is another one: members chosen by independent fair coins, and
        `privet.audit.one_run` of `coins()`.

        Args:
            limit: A guarantee, an event, or the highest true-positive rate for each false-positive rate.
            error: The probability with which a point of the band may lie above the true curve.

        Raises:
            InvalidInput: If `error` is not between 0 and 1.
        """
        return self.band(error).above(limit_of(limit) if isinstance(limit, (Guarantee, Event)) else limit)

    def coins(self, key: str = "privet") -> tuple[Reals, npt.NDArray[np.bool_]]:
        """Return all scores in random order, and which of them belong to members.

        They are the input of `privet.audit.guessed` and `privet.audit.one_run`. That test (Steinke, Nasr & Jagielski
        2023) assumes nothing about the scores. It assumes that each example was included by a fair coin of its own,
        which neither the run nor the attack saw; a training set of a fixed size, split off a pool, does not satisfy
        this. The order is random so that ties do not reveal membership.

        Args:
            key: Seed of the order.

        Returns:
            The scores, and a truth value for each: whether it belongs to a member.
        """
        scores = np.concatenate([self.members, self.outsiders])
        order = torch.randperm(len(scores), generator=generator(key, "coins")).numpy()
        return scores[order], order < len(self.members)


def limit_of(claim: Guarantee | Event, unit: Unit | None = None) -> Limit:
    """Return the highest true-positive rate that a claim allows any attack on one record, by false-positive rate.

    For an event the whole trade-off curve is used; for a guarantee, its (ε, δ).

    Args:
        claim: A guarantee, or the event whose privacy profile is used.
        unit: The unit of privacy for an event; the default unit if omitted. A guarantee has its own.

    Returns:
        A function from a false-positive rate to a true-positive rate.

    >>> from privet.core.event import Gaussian
    >>> round(limit_of(Gaussian(1.0))(0.01), 3)
    0.092
    """
    if isinstance(claim, Guarantee):
        tradeoff = piecewise(claim.epsilon.upper, claim.delta) if claim.epsilon.upper < np.inf else None
        return lambda alarms: 1.0 if tradeoff is None else max(alarms, 1 - tradeoff(alarms))
    profile = Profile(claim, unit)
    return lambda alarms: best_true_positive_rate(profile.delta, alarms)


def _mean_at_least(value: float, count: int, error: float) -> float:
    """Return a lower confidence limit: the largest p at which so high a value has probability `error` at most."""
    total = count * value
    top = ceil(total) - 1
    if top < 0:
        return 0.0
    # The minimum over t is at an integer, as E(B − t)₊ is linear between integers; trying only some loosens it a bit.
    steps = np.unique(np.geomspace(1, count + 1, _POINTS).astype(np.int64)) - 1
    below = top - steps[steps <= top]
    low, high = 0.0, value
    for _ in range(_ROUNDS):
        chance = (low + high) / 2
        # E(B − t)₊ = k·p·P(B' ≥ t) − t·P(B > t), where B' has one trial less.
        first = np.maximum(below, 1)
        some = np.where(below > 0, betainc(first, count - first, chance), 1.0)
        excess = count * chance * some - below * betainc(below + 1, count - below, chance)
        low, high = (chance, high) if float((excess / (total - below)).min()) <= error else (low, chance)
    return low


def _ranked(some: Reals, others: Reals) -> Reals:
    """Return, for each of `some`, the share of the others that is below it, ties counting half."""
    ordered = np.sort(others)
    both = np.searchsorted(ordered, some, side="left") + np.searchsorted(ordered, some, side="right")
    return np.asarray(both / (2 * len(others)))
