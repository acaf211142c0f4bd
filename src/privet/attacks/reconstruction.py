"""Reconstruction of secret bits from many counts about them (Dinur & Nissim 2003).

Everyone in a table has a secret bit. Counts of the bits over known subsets of the people, each with some error, are
equations: with enough of them, and errors well below √n, nearly every bit follows. Noise for a total ε prevents that:
the probability of guessing one bit, whose two values are equally likely beforehand, is at most e^ε/(1 + e^ε).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.accounting import Profile, delta_of
from privet.attacks.counting import Reals
from privet.attacks.outcome import ConfidenceInterval, limit_of
from privet.core import Event, Guarantee, InvalidInput, Unit, checked

__all__ = ["BitReconstruction", "Fit", "guess_bound", "reconstruct_bits", "recovered_bits"]


class Fit(Enum):
    """Objective by which bits are fitted to answers."""

    LEAST_SQUARES = "least squares"
    """Best where all errors are of one size."""
    LEAST_DEVIATIONS = "least absolute deviations"
    """A linear program, which bears that a part of the answers is off by anything (Dwork, McSherry & Talwar 2007)."""


@dataclass(frozen=True, eq=False)
class BitReconstruction:
    """Share of bits that were reconstructed, beside the baseline without answers and the limit of a guarantee."""

    right: npt.NDArray[np.bool_] = field(repr=False)
    """[people]: whether the bit was reconstructed. This is about real people: it must not be shared."""
    share: ConfidenceInterval
    baseline: float
    """Share of the more common value: guessing it for everybody is right as often."""
    limit: float | None = None
    """Highest share that a guarantee allows, on average over its randomness and over independent bits that are 1 with
    probability `prior`.
    """
    confidence: float = 0.95

    @property
    def exceeds(self) -> bool:
        """Whether significantly more bits were reconstructed than the guarantee allows.

        Where the claim is a guarantee of pure ε and bits are fair coins, each guess is right with the limit's
        probability at most, whatever was released and whatever the other bits are, so that their number is
        stochastically below a binomial one (Steinke, Nasr & Jagielski 2023, §5), and this is wrong with a probability
        of (1 − confidence)/2 at most. For δ > 0, or the whole curve of an event, it is a warning: the test is
        `privet.audit.one_run`.

        The limit is for a prior of ½ unless another was given. Where one value is so common that guessing it for
        everybody beats the limit, that needs no answers and is no failure of the guarantee. The share has to exceed
        both: for a pure ε and bits that are 1 with probability q, max(q, 1 − q, e^ε/(1 + e^ε)) is the highest share
        that is possible.
        """
        return self.limit is not None and self.share.lower > max(self.limit, self.baseline)


def reconstruct_bits(subsets: Any, answers: Any, fit: Fit = Fit.LEAST_SQUARES) -> Reals:
    """Return numbers in [0, 1] that fit the answers best; above ½ the bit is guessed to be 1.

    Fewer answers than people can be enough, but are not always.

    Args:
        subsets: [answers, people]: 1 where the answer counts the person, else 0.
        answers: [answers]: the counts.
        fit: The objective.

    Returns:
        [people].

    Raises:
        InvalidInput: If `subsets` is not a table of 0 and 1, there is not one finite answer for each subset, or the
            answers cannot be fitted.

    >>> reconstruct_bits([[1, 1, 0], [0, 1, 1], [1, 0, 1]], [1.1, 0.9, 2.0]).round(1).tolist()
    [1.0, 0.0, 0.9]
    """
    checked.member("fit", fit, Fit)
    asked, told = np.asarray(subsets, dtype=np.float64), np.asarray(answers, dtype=np.float64)
    if asked.ndim != 2 or not asked.size:
        raise InvalidInput("subsets", f"have the shape {asked.shape}", "give a row for each answer, of 0 and 1")
    if not np.isin(asked, (0.0, 1.0)).all():
        raise InvalidInput("subsets", "hold something else than 0 and 1", "say for each person: counted or not")
    if told.shape != asked.shape[:1]:
        raise InvalidInput("answers", f"have the shape {told.shape}", f"there are {len(asked)} subsets: one for each")
    if not np.isfinite(told).all():
        raise InvalidInput("answers", "hold NaN or an infinite number", "leave these answers and their subsets out")
    if fit is Fit.LEAST_DEVIATIONS:
        return _least_deviations(asked, told)
    # Centered at ½, so that the minimum-norm solution leaves bits at ½ that the answers do not determine.
    return np.asarray(np.clip(0.5 + np.linalg.lstsq(asked, told - asked.sum(axis=1) / 2, rcond=None)[0], 0.0, 1.0))


def recovered_bits(
    secret: Any,
    fitted: Any,
    claim: Guarantee | Event | None = None,
    *,
    prior: float = 0.5,
    unit: Unit | None = None,
    confidence: float = 0.95,
) -> BitReconstruction:
    """Return how many reconstructed bits are right, for the data owner who knows them.

    The interval (Clopper & Pearson 1934) treats people as independent trials. The neighbors of `claim` may differ in
    any way by which a person's bit can change: as every answer counts only ones, a person whose bit is 0 might as well
    not be there, so that the unit may also be add/remove.

    Args:
        secret: [people]: the true bits.
        fitted: [people]: what `reconstruct_bits` returned.
        claim: The guarantee of all answers together, or their event; it limits the share that can be reconstructed.
        prior: The probability, independent for each person, that a bit is 1.
        unit: The unit of privacy for an event; the default unit if omitted. A guarantee has its own.
        confidence: The coverage of the interval.

    Raises:
        InvalidInput: If `secret` is not a list of 0 and 1, `fitted` is not one number for each person, `prior` is not
            in [0, 1], or `confidence` is not between 0 and 1.

    >>> found = recovered_bits([1, 0, 1, 1], [0.9, 0.2, 0.4, 1.0])
    >>> found.share.value, found.baseline
    (0.75, 0.75)
    """
    bits, said = np.asarray(secret), np.asarray(fitted, dtype=np.float64)
    if bits.ndim != 1 or not len(bits) or not np.isin(bits, (0, 1)).all():
        raise InvalidInput("secret", "is not a list of 0 and 1", "give the bit of each person")
    if said.shape != bits.shape or np.isnan(said).any():
        raise InvalidInput(
            "fitted", f"is not one number for each of {len(bits)} people", "give what `reconstruct_bits` returned"
        )
    right = (said > 0.5) == (bits == 1)
    ones = float(bits.mean())
    return BitReconstruction(
        right,
        ConfidenceInterval.of_share(int(right.sum()), len(bits), confidence),
        max(ones, 1 - ones),
        None if claim is None else guess_bound(claim, prior, unit),
        confidence,
    )


def guess_bound(claim: Guarantee | Event, prior: float = 0.5, unit: Unit | None = None) -> float:
    """Return an upper bound on the probability that anybody guesses one bit correctly.

    An attacker who says 1 for a share α of the zeros says so for at most `limit_of`(α) of the ones; the best mix of the
    two errors is 1 − q + q·δ(log((1 − q)/q)), where q is the rarer value's probability (Dong, Roth & Su 2022,
    Prop. 2.12): at even odds, ½ plus half of the total variation. For pure ε that is e^ε/(1 + e^ε), and for an event,
    of which the whole curve is known, it may be less.

    Args:
        claim: The guarantee of the release, or its event.
        prior: The probability, before the release, that the bit is 1.
        unit: The unit of privacy for an event; the default unit if omitted. A guarantee has its own.

    Raises:
        InvalidInput: If `prior` is not in [0, 1].

    >>> from privet.core.event import Laplace
    >>> round(guess_bound(Laplace(1.0)), 4), round(guess_bound(Laplace(1.0), prior=0.9), 4)
    (0.6967, 0.9)
    """
    if not 0 <= checked.finite("prior", prior) <= 1:
        raise InvalidInput("prior", f"is {prior:g}", "give a probability such as 0.5")
    rare = min(prior, 1 - prior)
    if rare == 0:
        return 1.0
    odds = log((1 - rare) / rare)
    if isinstance(claim, Event):
        return min(1 - rare + rare * Profile(claim, unit).delta(odds), 1.0)
    limit = limit_of(claim)
    return min(1 - rare + rare * delta_of(lambda alarms: 1 - limit(alarms), odds), 1.0)


def _least_deviations(asked: Reals, told: Reals) -> Reals:
    """min Σ|e| where e = A·x − b and 0 ≤ x ≤ 1: variables x, and two non-negative parts of each e."""
    from scipy import sparse
    from scipy.optimize import linprog

    answers, people = asked.shape
    each = sparse.identity(answers, format="csr")
    done = linprog(
        np.concatenate([np.zeros(people), np.ones(2 * answers)]),
        A_eq=sparse.hstack([sparse.csr_matrix(asked), each, -each], format="csr"),
        b_eq=told,
        bounds=[(0, 1)] * people + [(0, None)] * (2 * answers),
        method="highs",
    )
    if done.x is None:
        raise InvalidInput("answers", "could not be fitted", "are they counts of people? Leave out absurd ones")
    return np.asarray(np.clip(done.x[:people], 0.0, 1.0))
