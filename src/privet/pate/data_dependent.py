"""What the labels cost *these* data: bounds that depend on the votes, and so are private themselves.

All of them bound D_a(M(D)‖M(D')) for the data D at hand and each of its neighbors D', in this direction only. M is one
question; questions and aggregator are fixed beforehand, so that the bounds of all questions add up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from privet.accounting import canonical, rdp_to_epsilon, renyi
from privet.core import Event, NotProven, Unit, Unpublishable, checked
from privet.pate.aggregator import Aggregator
from privet.pate.plan import Plan, matching
from privet.pate.tails import Reals
from privet.pate.votes import Counts, PrivateRecord, Votes, moved_teachers

__all__ = [
    "ORDERS",
    "DataDependent",
    "data_dependent",
    "label_cost",
    "log_missed",
    "question_cost",
    "rdp_of",
    "require_one_teacher",
    "tested_cost",
]

ORDERS: tuple[float, ...] = (1.5, *map(float, range(2, 65)), *(float(round(64 * 2 ** (j / 4))) for j in range(1, 13)))
"""The Rényi orders that are searched, fixed beforehand."""
_UP, _TINY = 1 + 1e-9, 1e-14
_WARNING = "not publishable, one-sided, for this data set only"


class DataDependent(PrivateRecord, Unpublishable):
    """An ε that was computed from private votes: *not publishable, one-sided, for this data set only*.

    It is neither a guarantee nor an event nor a number, so that no budget takes it, and it neither prints nor pickles.
    `epsilon` is for those who may see the votes themselves. `sanitized` makes something of it that may leave.
    """

    __slots__ = ("delta", "epsilon", "order", "questions")
    REFUSAL = ("a data-dependent ε", f"it is {_WARNING}; see `sanitized`")

    epsilon: float
    delta: float
    order: float
    questions: int

    def __init__(self, epsilon: float, delta: float, order: float, questions: int) -> None:
        for name, value in zip(self.__slots__, (delta, epsilon, order, questions), strict=True):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"DataDependent(<private ε: {_WARNING}>)"


def data_dependent(plan: Plan, votes: Votes, delta: float, *, orders: Sequence[float] = ORDERS) -> DataDependent:
    """Return the ε that all queries of the plan cost these data, the least over the orders. Internal.

    Every question of the plan counts, answered or not, with the chance that it is answered in its price; where the
    plan stops early that is post-processing. The questions must not depend on earlier answers.

    Args:
        plan: The plan of the queries.
        votes: The private votes.
        delta: The δ at which ε is stated.
        orders: The Rényi orders, fixed beforehand.

    Raises:
        InvalidInput: The votes are not those of the plan.
        NotProven: A unit can change more than one teacher.
    """
    require_one_teacher(plan.unit)
    share = checked.share("delta", delta)
    matching(plan, votes)
    missed, support = log_missed(plan.aggregator, votes.counts), plan.aggregator.support(votes.counts)
    costs = [float(tested_cost(plan, support, label_cost(plan, missed, order), order).sum()) for order in orders]
    epsilons = [rdp_to_epsilon([order], [cost], share) for order, cost in zip(orders, costs, strict=True)]
    at = int(np.argmin(epsilons))
    whatever = plan.guarantee(share).epsilon.upper  # holds for these data as well
    return DataDependent(min(epsilons[at], whatever), share, orders[at], votes.questions)


def require_one_teacher(unit: Unit) -> Unit:
    """The unit, if one teacher is all that it can change: the bounds here are for one vote that moves."""
    if moved_teachers(unit) != 1:
        raise NotProven(f"a data-dependent price for {unit}: it is proven for a unit that changes one teacher alone")
    return unit


def log_missed(aggregator: Aggregator, counts: Counts) -> Reals:
    """log of a bound on the probability that the label with the most votes does not win, for each row.

    Papernot et al. 2018, Proposition 7, with the exact law of the discrete noise: Σ over the other labels of the chance
    that they come out level or ahead.
    """
    return _summed(aggregator.log_ahead(_gaps(counts)))


def label_cost(plan: Plan, log_q: Reals, order: float) -> Reals:
    """D_a of one label where the likeliest is missed with probability q at most; never above the data-independent."""
    return np.minimum(
        plan.aggregator.given_missed(log_q, order),
        rdp_of(plan.aggregator.vote(plan.unit, plan.labels), plan.unit, order),
    )


def question_cost(plan: Plan, counts: Counts, order: float) -> Reals:
    """D_a of one question at the order, test and label together, for each row of counts."""
    label = label_cost(plan, log_missed(plan.aggregator, counts), order)
    return tested_cost(plan, plan.aggregator.support(counts), label, order)


def tested_cost(plan: Plan, support: Counts, label: Reals, order: float) -> Reals:
    """D_a of the test of a number and of the label together, where the label by itself costs `label`.

    With P the chance that the test is passed, and P' on neighboring data, e^((a-1)D) = (1-P)^a·(1-P')^(1-a) +
    P^a·P'^(1-a)·e^((a-1)·label). The tested number is one more or less on neighbors, or the same: the worst of the
    three is taken. It is never more than test and label added up.
    """
    test = plan.aggregator.test
    if test is None:
        return label
    added = label + rdp_of(test.event(plan.unit), plan.unit, order)
    yes, no = test.log_chances(support)
    worst = np.zeros_like(label)
    with np.errstate(invalid="ignore"):
        for moved in (-1, 0, 1):
            other_yes, other_no = test.log_chances(support + moved)
            passed = order * yes + (1 - order) * other_yes + (order - 1) * label
            failed = order * no + (1 - order) * other_no
            worst = np.maximum(worst, np.logaddexp(passed, failed) / (order - 1))
    # chances that a float64 does not hold leave the sum of both
    return np.where(np.isfinite(worst), np.minimum(worst * _UP + _TINY, added), added)


def rdp_of(event: Event, unit: Unit, order: float) -> float:
    """Return D_a of an event at one order, whatever the data are."""
    return renyi.total(canonical(event).parts, unit, (order,)).values[0]


def _gaps(counts: Counts) -> Counts:
    """How far each other label is behind the largest count; the first of the largest is left out."""
    ordered = np.sort(counts, axis=1)
    gaps: Counts = ordered[:, -1:] - ordered[:, :-1]
    return gaps


def _summed(logs: Reals) -> Reals:
    return np.asarray(np.minimum(logsumexp(logs, axis=1), 0.0))
