"""A data-dependent ε that may leave, as an upper confidence limit: by a smooth ceiling, the best that we know.

What is sanitized is a bound that depends on each question through its largest count v alone: with M teachers and m
labels, the others share M - v votes, and as the chance T to overtake is convex in the gap, the label with the most
votes is missed with probability at most T(2v - M) + (m - 2)·T(v). One unit moves v by 1 at most, so that all there is
to know about neighbors, near and far, follows from one public table over v.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privet.accounting import rdp_to_epsilon
from privet.core import DiscreteGaussian, InvalidInput, NotProven, Release, checked
from privet.core.random import Rng, discrete_gaussian
from privet.mechanisms import SOURCE, gaussian_width
from privet.pate.data_dependent import label_cost, rdp_of, require_one_teacher, tested_cost
from privet.pate.interactive import Interactive
from privet.pate.plan import Plan, matching
from privet.pate.tails import Reals
from privet.pate.votes import Counts, Votes

__all__ = ["SanitizedEpsilon", "SmoothCeiling", "ceiling_of", "checked_terms", "cost_table", "limited", "widened"]

_FLOOR = 1e-9
"""The least ceiling: its logarithm must be finite."""
_STEPS = 128
"""Steps of the grid in one β."""
_ORDERS = tuple(float(round(2 ** (2 + j / 4))) for j in range(21))
_BETAS = (1.25, 2.5, 5.0, 10.0, 20.0, 40.0)
"""Over the number of teachers."""
_NOISES = (2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 14.0, 20.0)
"""Orders, discounts and noises among which `SmoothCeiling.suited` chooses."""


@dataclass(frozen=True)
class SanitizedEpsilon:
    """What the labels and this number cost together, *for this data set*, unless the noise was unlucky.

    One-sided: it bounds how much likelier the outputs are on these data than on any neighbor of them. It is released
    and may be shown, and is no guarantee: no budget takes it.
    """

    epsilon: float
    """An upper confidence limit, with the price of its own release in it."""
    delta: float
    failure: float
    """The probability, over the noise of the release, that the limit is too low."""
    order: float
    rdp: float
    """The limit of what the labels alone cost these data, at the order."""
    own_rdp: float
    """What this release costs at the order, whatever the data are."""


def cost_table(plan: Plan, order: float) -> Reals:
    """A bound on D_a of one question by its largest count, from 0 to all teachers: public."""
    largest = np.arange(plan.teachers + 1)
    gaps = np.maximum(2 * largest - plan.teachers, 0)
    ahead = plan.aggregator.log_ahead(gaps)
    if plan.labels > 2:
        ahead = np.logaddexp(ahead, math.log(plan.labels - 2) + plan.aggregator.log_ahead(largest))
    missed = np.where(gaps > 0, np.minimum(ahead, 0.0), 0.0)
    return tested_cost(plan, largest, label_cost(plan, missed, order), order)


def widened(table: Reals) -> Reals:
    """At each place the largest of the table there and one step to either side."""
    ends = np.pad(table, 1, mode="edge")
    largest: Reals = np.maximum(table, np.maximum(ends[2:], ends[:-2]))
    return largest


def ceiling_of(table: Reals, largest: Counts, beta: float) -> float:
    """max over d of e^(-βd)·Σ max of the table within d of v, over the questions' largest counts v.

    At least Σ table[v] (d = 0). On neighboring data every v is one more or less at most, so that what is within d here
    is within d + 1 there: the ceilings differ by a factor of e^β at most.
    """
    queries = np.bincount(largest, minlength=len(table)).astype(np.float64)
    ceiling, decay = _FLOOR, 1.0
    most = float(queries.sum() * table.max())
    for _ in range(len(table)):
        if decay * most <= ceiling:  # nothing further away can be more
            break
        ceiling = max(ceiling, decay * float(queries @ table))
        table, decay = widened(table), decay * math.exp(-beta)
    return ceiling * (1 + 1e-12)


def checked_terms(plan: Plan, delta: float, order: float, failure: float) -> None:
    """Refuse what cannot be sanitized."""
    require_one_teacher(plan.unit)
    if isinstance(plan.aggregator, Interactive):
        raise NotProven("a sanitized ε of Interactive: what it tests does not tell the largest count")
    checked.positive("delta", checked.share("delta", delta))
    if not 0 < checked.finite("failure", failure) < 0.5:
        raise InvalidInput("failure", f"is {failure}", "give a probability above 0 and below 1/2, such as 0.001")
    if checked.finite("order", order) <= 1:
        raise InvalidInput("order", f"is {order}", "give a Rényi order above 1, such as 12")


def limited(plan: Plan, rdp: float, own_rdp: float, order: float, delta: float, failure: float) -> SanitizedEpsilon:
    """The limit of D_a as one of ε: never above what the plan costs whatever the votes are, at the same order."""
    whatever = rdp_of(plan.event, plan.unit, order)
    most = min(max(rdp, 0.0), whatever)
    return SanitizedEpsilon(rdp_to_epsilon([order], [most + own_rdp], delta), delta, failure, order, most, own_rdp)


@dataclass(frozen=True)
class SmoothCeiling:
    """Release the logarithm of a smooth ceiling of the data-dependent price, with discrete Gaussian noise.

    All of it is fixed before any vote is seen. Neighbors' logarithms differ by β at most, so that the noise is that of
    one number of known sensitivity: cheaper than `Gnss`, and without the assumption of continuous noise.

    >>> from privet.pate import Confident
    >>> plan = Plan(Confident(200, 150.0, 40.0), questions=640, teachers=250, labels=10)
    >>> SmoothCeiling(plan, delta=1e-5).event
    DiscreteGaussian(sigma=640.0, bound=128.0, dimension=1)
    """

    plan: Plan
    delta: float
    """At which ε is stated."""
    order: float = 12.0
    """The one Rényi order at which everything is computed."""
    beta: float | None = None
    """How much a step to a neighbor discounts; unless given, 10 over the number of teachers."""
    noise_multiplier: float = 5.0
    """Noise on the logarithm, over β."""
    failure: float = 1e-3

    def __post_init__(self) -> None:
        checked_terms(self.plan, self.delta, self.order, self.failure)
        checked.positive("beta", self.smooth)
        checked.positive("noise_multiplier", self.noise_multiplier)

    @classmethod
    def suited(cls, plan: Plan, delta: float, guess: Sequence[int], *, failure: float = 1e-3) -> SmoothCeiling:
        """Return the order, β and noise with the least ε if the votes turn out like a guess.

        The guess is public: from votes on public data, from an earlier release, or an assumption such as "nine in ten
        agree". *Never* from the votes at hand: then the choice itself would tell of them. Whatever the guess is, the
        release is as private, and its limit as true; where it is far from the votes, the limit is wide.

        Args:
            plan: The plan of the queries.
            delta: The δ at which ε is stated.
            guess: The largest count of each query, from public knowledge.
            failure: The probability that the limit may be too low.

        Raises:
            InvalidInput: The guess is not one count for each query.

        >>> from privet.pate import GNMax
        >>> plan = Plan(GNMax(30.0), questions=300, teachers=250, labels=10)
        >>> found = SmoothCeiling.suited(plan, 1e-5, [180] * 15 + [240] * 285)
        >>> found.order, found.smooth, found.noise_multiplier
        (16.0, 0.08, 7.0)
        """
        checked_terms(plan, delta, _ORDERS[0], failure)
        largest = np.asarray(guess)
        whole = largest.dtype.kind in "iu" and largest.shape == (plan.questions,)
        if not whole or not 0 <= largest.min() <= largest.max() <= plan.teachers:
            problem = f"is not one whole number from 0 to {plan.teachers} for each of {plan.questions} questions"
            raise InvalidInput("guess", problem, "guess how many teachers agree on each")
        best, least = cls(plan, delta, failure=failure), math.inf
        for order in _ORDERS:
            table = cost_table(plan, order)
            for beta in (share / plan.teachers for share in _BETAS):
                ceiling = ceiling_of(table, largest, beta)
                for noise in _NOISES:
                    way = cls(plan, delta, order, beta, noise, failure)
                    expected = way._limit(math.log(ceiling) / way._step).epsilon
                    if expected < least:
                        best, least = way, expected
        return best

    @property
    def smooth(self) -> float:
        """`beta`, filled in."""
        return 10 / self.plan.teachers if self.beta is None else self.beta

    @property
    def event(self) -> DiscreteGaussian:
        """What the release itself does: a ledger charges it beside the labels."""
        return DiscreteGaussian(self.noise_multiplier * _STEPS, _STEPS)

    @property
    def own_rdp(self) -> float:
        """What the release costs at the order."""
        return rdp_of(self.event, self.plan.unit, self.order)

    @cached_property
    def table(self) -> Reals:
        """That of `cost_table`, at the order."""
        return cost_table(self.plan, self.order)

    def release(self, votes: Votes, *, rng: Rng, source: str = SOURCE) -> Release[SanitizedEpsilon]:
        """Return the limit, with its failure probability and its own privacy cost.

        Args:
            votes: The private votes.
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.

        Raises:
            InvalidInput: The votes are not those of the plan.

        Guarantee: that of `event`, for the plan's unit, whatever the votes are: the logarithm of the ceiling, rounded
        up to a grid of β/128, moves by 128 steps at most. With probability 1 - `failure` over the noise, the labels'
        D_a on these data, in the direction away from them, is at most `rdp`, provided that the questions were fixed
        beforehand. Whatever the votes are a number comes out, and every number can.
        """
        matching(self.plan, votes)
        # a little less than β, so that rounding cannot move the logarithm by more than β
        ceiling = ceiling_of(self.table, votes.counts.max(axis=1), self.smooth * (1 - 1e-9))
        noisy = math.ceil(math.log(ceiling) / self._step) + discrete_gaussian(self.event.sigma, None, rng)
        limit = self._limit(noisy)
        return Release.of(limit, self.event, unit=self.plan.unit, source=source, randomness=rng.kind)

    @property
    def _step(self) -> float:
        """Of the grid on which the logarithm is released."""
        return self.smooth / _STEPS

    def _limit(self, noisy: float) -> SanitizedEpsilon:
        """What follows from the noisy logarithm, in steps of the grid."""
        rdp = math.exp(self._step * (noisy + gaussian_width(self.event.sigma, 2 * self.failure)))
        return limited(self.plan, rdp, self.own_rdp, self.order, self.delta, self.failure)
