"""What ε and δ mean for one person: how well the best attack can do, and how far an attacker's belief can move."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from privet.accounting.search import falling_root
from privet.accounting.tradeoff import tradeoff_of
from privet.core import InvalidInput, Record, checked

__all__ = [
    "FALSE_POSITIVE_RATES",
    "PRIORS",
    "Attack",
    "Belief",
    "Meaning",
    "belief",
    "best_true_positive_rate",
    "loss_within",
    "meaning",
    "posterior",
    "tail_of",
]

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)
PRIORS = (0.01, 0.1, 0.5)
_FARTHEST = 1e6


@dataclass(frozen=True)
class Attack(Record):
    """No membership attack with this false-positive rate has a larger true-positive rate."""

    false_positive_rate: float
    true_positive_rate: float


@dataclass(frozen=True)
class Belief(Record):
    """A belief of `prior` becomes at most `posterior`, but for an event whose probability is at most `exceeding`."""

    prior: float
    posterior: float
    exceeding: float


@dataclass(frozen=True)
class Meaning(Record):
    """A guarantee in terms of attacks and beliefs, with sentences to print."""

    attacks: tuple[Attack, ...]
    beliefs: tuple[Belief, ...]
    sentences: tuple[str, ...] = ()
    """Written from the numbers, in the words of this version, whatever a stored record says."""

    def __post_init__(self) -> None:
        written = (*map(_attack_in_words, self.attacks), *map(_belief_in_words, self.beliefs))
        object.__setattr__(self, "sentences", written)

    @classmethod
    def kinds(cls) -> Mapping[str, type[Record]]:
        """A meaning holds attacks and beliefs."""
        return {"Meaning": Meaning, "Attack": Attack, "Belief": Belief}


def best_true_positive_rate(delta_curve: Callable[[float], float], fpr: float) -> float:
    """Return the largest true-positive rate of any membership attack at a false-positive rate.

    `delta_curve(ε)` is an upper bound on δ(ε) in both directions.

    Args:
        delta_curve: An upper bound on δ(ε) in both directions.
        fpr: The false-positive rate.
    """
    return max(fpr, 1 - tradeoff_of(delta_curve, fpr))


def posterior(prior: float, loss: float) -> float:
    """Return the belief after a release (Bayes): the odds grow by e^loss.

    Args:
        prior: The belief before the release.
        loss: The privacy loss.

    >>> posterior(0.5, math.log(3.0))
    0.75
    """
    prior = checked.probability("prior", prior)
    if prior == 1 or loss == math.inf:
        return 1.0
    return 1 / (1 + (1 - prior) / prior * math.exp(-loss)) if loss > -700 else 0.0


def tail_of(epsilon: float, delta: float) -> Callable[[float], float]:
    """The tail P(L > l) of the privacy loss that a bare (ε, δ) leaves possible: δ/(1 − e^(−t)) at l = ε + t, t > 0.

    It is *not* true that the loss exceeds ε with probability at most δ. (ε, δ)-DP says E[max(0, 1 − e^(ε−L))] ≤ δ, and
    where L > ε + t the term inside is more than 1 − e^(−t), so (1 − e^(−t))·P(L > ε + t) ≤ δ. Up to l = ε nothing
    follows.
    """
    epsilon, delta = checked.nonnegative("epsilon", epsilon), checked.share("delta", delta)

    def tail(loss: float) -> float:
        if delta == 0:
            return 0.0 if loss >= epsilon else 1.0
        return min(1.0, delta / -math.expm1(epsilon - loss) * (1 + 1e-14)) if loss > epsilon else 1.0

    return tail


def loss_within(tail: Callable[[float], float], chance: float) -> float:
    """Return the least loss, rounded up, that is exceeded with probability at most `chance`.

    Args:
        tail: An upper bound on P(L > l), from the loss distribution or from `tail_of`.
        chance: How often the stated belief may be exceeded.

    Returns:
        The loss; infinite if there is none.
    """
    chance = checked.share("chance", chance)
    if tail(0.0) <= chance:
        return 0.0
    high = 1.0
    while tail(high) > chance:
        high *= 2
        if high > _FARTHEST:
            return math.inf
    return falling_root(lambda loss: tail(loss) - chance, 0.0, high, tolerance=1e-12)


def belief(prior: float, tail: Callable[[float], float], chance: float = 0.001) -> Belief:
    """Return how far a belief that someone is in the data can rise, except with probability `chance`.

    `tail(l)` is a bound on P(L > l), over the randomness of the release, when the person *is* in the data; in the other
    direction, when they are not, the same holds for a belief that falls. Where even the best loss is exceeded more
    often than `chance` (a bare δ above it), the row says what holds with twice the least tail.

    Args:
        prior: The belief before the release.
        tail: An upper bound on P(L > l), from the loss distribution or from `tail_of`.
        chance: How often the stated belief may be exceeded.

    >>> round(belief(0.5, tail_of(math.log(3.0), 0.0)).posterior, 6)
    0.75
    """
    loss = loss_within(tail, chance)
    if math.isinf(loss):
        floor = tail(_FARTHEST)
        if floor >= 0.5:
            return Belief(prior, 1.0, 0.0)
        loss = loss_within(tail, 2 * floor)
    return Belief(prior, posterior(prior, loss), tail(loss))


def meaning(delta_curve: Callable[[float], float], tail: Callable[[float], float], *, chance: float = 0.001) -> Meaning:
    """Return what an attacker can learn: bounds on attacks and on beliefs, with sentences to print.

    `delta_curve` bounds δ(ε) in both directions; `tail` bounds P(L > l), from the loss distribution or from `tail_of`.

    Args:
        delta_curve: An upper bound on δ(ε) in both directions.
        tail: An upper bound on P(L > l), from the loss distribution or from `tail_of`.
        chance: How often the stated belief may be exceeded.

    Returns:
        Attacks at false-positive rates of 0.1 %, 1 % and 10 %, and beliefs from 1 %, 10 % and 50 %.
    """
    if not callable(delta_curve) or not callable(tail):
        raise InvalidInput("delta_curve", "and tail must be functions of one number")
    attacks = tuple(Attack(x, best_true_positive_rate(delta_curve, x)) for x in FALSE_POSITIVE_RATES)
    beliefs = tuple(belief(prior, tail, chance) for prior in PRIORS)
    return Meaning(attacks, beliefs)


def _attack_in_words(attack: Attack) -> str:
    fpr, tpr = _percent(attack.false_positive_rate), _percent(attack.true_positive_rate)
    return f"At a {fpr} false-positive rate, any membership-inference attack has a true-positive rate of at most {tpr}."


def _belief_in_words(row: Belief) -> str:
    prior = f"A prior belief of {_percent(row.prior)} that someone is in the data"
    if row.posterior == 1.0:
        return f"{prior} may rise to certainty."
    rare = f", except with a probability of {_percent(row.exceeding)}" if row.exceeding > 0 else ""
    return f"{prior} rises to at most {_percent(row.posterior)}{rare}."


def _percent(share: float) -> str:
    """Rounded up to two digits of what is there or of what is missing, so that no sentence promises too much."""
    percent = 100 * share
    if not 0 < percent < 100:
        return "0 %" if percent <= 0 else "100 %"
    smaller = min(percent, 100 - percent)
    digits = max(0, (1 if percent < 10 or smaller < 1 else 0) - math.floor(math.log10(min(smaller, 10))))
    rounded = math.ceil(percent * 10**digits * (1 - 1e-12)) / 10**digits
    return f"{rounded:.{digits}f}".rstrip("0").rstrip(".") + " %" if digits else f"{rounded:.0f} %"
