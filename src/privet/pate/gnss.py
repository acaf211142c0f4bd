"""The sanitized ε of Papernot et al. (2018): smooth sensitivity with normal noise (GNSS), as a confidence limit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from privet.accounting import rdp_to_epsilon
from privet.core import Approximate, InvalidInput, Release, checked
from privet.core.random import Rng
from privet.mechanisms import SOURCE
from privet.pate.plan import Plan, matching
from privet.pate.sanitization import SanitizedEpsilon, checked_terms, cost_table, limited, widened
from privet.pate.tails import Reals
from privet.pate.votes import Counts, Votes

__all__ = ["Gnss", "gnss_rdp", "smooth_sensitivity"]

_FLOOR = 1e-9
"""The least smooth sensitivity: noise must not vanish, and its logarithm must be finite."""
_GRID = 2.0**-20
_OWN_ORDERS = 200


def gnss_rdp(order: float, beta: float, sigma: float) -> float:
    """D_a of a number with normal noise of deviation σ·S, S a β-smooth bound on its local sensitivity: the worst case.

    With S = 1 and S' = r on a neighbor, the number moves by min(1, r) at most, and the divergence of the two normals
    is largest at r = e^-β (proof in `docs/pate.md`). It is exact, and infinite for a ≥ 1/(1 - e^-2β).

    >>> round(gnss_rdp(8.0, 0.02, 4.0), 4)
    0.354
    """
    spread = 1 + order * math.expm1(-2 * beta)
    if spread <= 0:
        return math.inf
    moved = order * math.exp(-2 * beta) / (2 * sigma * sigma * spread)
    scaled = -beta - (2 * beta + math.log(spread)) / (2 * (order - 1))
    return (moved + scaled) * (1 + 1e-12) + 1e-14


def smooth_sensitivity(table: Reals, largest: Counts, beta: float) -> float:
    """Of Σ table[v] over the questions' largest counts v, where one unit moves every v by 1 at most.

    max over d of e^(-βd)·Σ (the largest step of the table within d of v): the local sensitivity of a sum is at most the
    sum of theirs, each at its worst (Nissim, Raskhodnikova & Smith 2007, Def. 2.1 and Claim 3.2).
    """
    steps = np.abs(np.diff(table))
    reach = np.maximum(np.append(steps, 0.0), np.insert(steps, 0, 0.0))  # the steps to either side of v
    queries = np.bincount(largest, minlength=len(table)).astype(np.float64)
    largest_step, decay = _FLOOR, 1.0
    for _ in range(len(table)):
        largest_step = max(largest_step, decay * float(queries @ reach))
        reach, decay = widened(reach), decay * math.exp(-beta)
    return largest_step * (1 + 1e-12)


@dataclass(frozen=True)
class Gnss:
    """Release the data-dependent price with normal noise in proportion to its smooth sensitivity.

    All of it is fixed before any vote is seen. The width of the limit depends on the smooth sensitivity, which is
    private: its logarithm, which a unit moves by β at most, is released with noise too. `SmoothCeiling` costs less.

    >>> from privet.pate import Confident
    >>> plan = Plan(Confident(200, 150.0, 40.0), questions=640, teachers=250, labels=10)
    >>> round(Gnss(plan, delta=1e-5).own_rdp, 2)
    0.4
    """

    plan: Plan
    delta: float
    """At which ε is stated."""
    order: float = 9.0
    """The one Rényi order at which everything is computed."""
    sigma: float = 7.0
    """Noise over the smooth sensitivity."""
    beta: float | None = None
    """How fast the smooth sensitivity may change; unless given, 0.3 over the order."""
    width_multiplier: float = 5.0
    """Noise on the logarithm of the smooth sensitivity, over β."""
    failure: float = 1e-3
    own_delta: float = 1e-6
    """The δ of the block that a ledger charges for the release itself."""

    def __post_init__(self) -> None:
        checked_terms(self.plan, self.delta, self.order, self.failure)
        checked.positive("own_delta", checked.share("own_delta", self.own_delta))
        for name, value in (("sigma", self.sigma), ("beta", self.smooth), ("width_multiplier", self.width_multiplier)):
            checked.positive(name, value)
        if not math.isfinite(self.own_rdp):
            raise InvalidInput("beta", f"is {self.smooth} at order {self.order}", "stay below 1/(2·order)")

    @property
    def smooth(self) -> float:
        """`beta`, filled in."""
        return 0.3 / self.order if self.beta is None else self.beta

    @property
    def own_rdp(self) -> float:
        """What the release costs at the order: the number, and the logarithm of its smooth sensitivity."""
        return self._own(self.order)

    @cached_property
    def event(self) -> Approximate:
        """The same as one block: what a ledger charges for the release, beside the labels."""
        highest = -1 / math.expm1(-2 * self.smooth)
        orders = 1 + np.geomspace(1e-3, 0.999, _OWN_ORDERS) * (highest - 1)
        values = [self._own(float(order)) for order in orders]
        epsilon = rdp_to_epsilon(orders.tolist(), values, self.own_delta)
        return Approximate(epsilon, self.own_delta, self.plan.unit.neighbours)

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

        Guarantee: (ε, δ)-DP as `event` has it, for the plan's unit, whatever the votes are: normal noise in proportion
        to a β-smooth bound (`gnss_rdp`), and normal noise on the logarithm of that bound. Assumes continuous noise;
        the first number is rounded up to a public grid. With probability 1 - `failure` both noises stay within their
        limits, and then the labels' D_a on these data, in the direction away from them, is at most `rdp`, provided that
        the questions were fixed beforehand.
        """
        matching(self.plan, votes)
        largest = votes.counts.max(axis=1)
        smooth = smooth_sensitivity(self.table, largest, self.smooth * (1 - 1e-9))
        noise = rng.normal(2)
        number = float(self.table[largest].sum()) + self.sigma * smooth * float(noise[0])
        width = math.log(smooth) + self.smooth * self.width_multiplier * float(noise[1])
        far = -float(ndtri(self.failure / 2))
        above = self.sigma * far * math.exp(width + self.smooth * self.width_multiplier * far)
        rdp = math.ceil((number + above) / _GRID) * _GRID
        limit = limited(self.plan, rdp, self.own_rdp, self.order, self.delta, self.failure)
        return Release.of(limit, self.event, unit=self.plan.unit, source=source, randomness=rng.kind)

    def _own(self, order: float) -> float:
        return gnss_rdp(order, self.smooth, self.sigma) + order / (2 * self.width_multiplier**2)
