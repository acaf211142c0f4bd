"""Sparse vector: is this answer above a threshold? Answers of "no" are free, as many as one likes."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from privet.core import Bounded, BudgetExceeded, Draw, Release, checked, event
from privet.core.random import Rng, discrete_laplace
from privet.mechanisms.additive import checked_confidence, laplace_error
from privet.mechanisms.grid import NoiseGrid
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.reach import ForReach, Of, reach_of
from privet.mechanisms.selection import Scores

__all__ = ["SparseSession", "SparseVector"]


@dataclass(frozen=True)
class SparseVector(ForReach):
    """Which of many answers reach a threshold, until `answers` of them have (Dwork & Roth 2014, Alg. 1).

    Each run has fresh noise on the threshold (half of ε) and on every answer (the other half), and ends with its first
    "yes"; so what is paid for is the number of "yes", in advance. To learn the answer itself, release it besides.

    >>> from privet.core.random import SeededRng
    >>> from privet.mechanisms.count import Count
    >>> alarm = SparseVector.for_epsilon(1.0, Count(), threshold=50).start(rng=SeededRng(1))
    >>> [alarm.ask(Count()([True] * n)).value for n in (3, 5, 90)]
    [False, False, True]
    """

    epsilon: float
    """Of one run, for one of the unit's records."""
    of: Of
    """A clipper of single answers, or of a vector of them; the most that any one moves is what counts.

    Made for counts, or sums of numbers that are not negative, it adds half of the noise to the answers, and takes no
    others: no sum that someone who comes might make smaller.
    """
    threshold: float
    answers: int = 1
    """How many times "yes" may be said."""

    def __post_init__(self) -> None:
        checked.positive("epsilon", self.epsilon)
        checked.finite("threshold", self.threshold)
        checked.count("answers", self.answers)
        super().__post_init__()

    @staticmethod
    def for_epsilon(epsilon: float, of: Of, *, threshold: float, answers: int = 1) -> SparseVector:
        """Return the mechanism that is ε-DP for the unit; the answers share ε.

        Args:
            epsilon: The privacy cost of one release, for the unit of the clipper.
            of: The clipper whose answers are to be released, or its reach.
            threshold: What answers are compared with.
            answers: How many times "yes" may be said.

        Raises:
            InvalidInput: ε or δ is out of range.
        """
        unit = reach_of(of).unit
        share = checked.positive("epsilon", epsilon) / checked.count("answers", answers) * (1 - 2.0**-50)
        return SparseVector(share / unit.records * (1 - 2.0**-50), of, threshold, answers)

    @property
    def event(self) -> event.Repeated:
        """One pure block for each "yes", for the neighbors of the unit."""
        return event.Repeated(event.Pure(self.epsilon, self.reach.unit.neighbours), self.answers)

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """The scale of the noise on the threshold, and on each answer, in steps."""
        moved = Fraction(Scores(self.reach).moved)
        half = Fraction(self.epsilon) * self.reach.unit.records / 2
        return moved / half, Scores(self.reach).ways * moved / half

    @property
    def grid(self) -> NoiseGrid:
        """Where answers are compared."""
        return Scores(self.reach).grid

    @property
    def expected_error(self) -> float:
        """A bound on the mean error of one comparison: that of both noises."""
        return sum(laplace_error(float(scale)) for scale in self.scales) * self.grid.step

    def interval(self, confidence: float) -> float:
        """Return by how much an answer is misjudged, at most, in as many queries as the reach has coordinates.

        Args:
            confidence: The confidence, between 0 and 1.
        """
        # No noise is larger than this: Dwork & Roth 2014, Thm 3.24, with the discrete tail 2·e^(-m/t)/(1 + e^(-1/t)).
        miss = checked_confidence(confidence) / (self.reach.dimension + self.answers)
        return sum(float(scale) * math.log(1 / miss) + 1 for scale in self.scales) * self.grid.step + self.grid.step

    def start(self, *, rng: Rng, source: str = SOURCE) -> SparseSession:
        """Start a session for one query after another; charge for the event first.

        Args:
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.
        """
        return SparseSession(self, rng, Draw(source, self.event, secrets.token_hex(16)))

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[tuple[bool, ...]]:
        """Return for each coordinate whether it reaches the threshold, up to the last "yes" of the budget.

        Args:
            query: An answer of the clipper that the mechanism was made for.
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.

        Raises:
            InvalidInput: The answer could move further than the mechanism was made for.

        Guarantee: as for a session in which the coordinates are asked about one by one.
        """
        self.reach.require(query)
        session = self.start(rng=rng, source=source)
        answers = []
        for step in self.grid.steps(query.value).reshape(-1).tolist():
            if session.left == 0:
                break
            answers.append(session._answer(step))  # noqa: SLF001 - the other half of this class
        return Release(tuple(answers), (session.draw,), query.unit, rng.kind)


@dataclass
class SparseSession:
    """Questions and answers; all of them together are one draw."""

    plan: SparseVector
    rng: Rng = field(repr=False)
    draw: Draw = field(repr=False)
    left: int = field(init=False)
    """How many times "yes" may still be said."""
    _threshold: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.left = self.plan.answers
        self._renew()

    def ask(self, query: Bounded[Any]) -> Release[bool]:
        """Return whether the answer reaches the threshold, as far as noise lets one see.

        Args:
            query: An answer of the clipper that the mechanism was made for.

        Raises:
            InvalidInput: The answer could move further than the mechanism was made for.
            BudgetExceeded: "yes" was said as often as was charged.

        Guarantee: pure ε for all answers of a run up to its first "yes", for the unit and neighbors of the reach
        (Dwork & Roth 2014, Thm 3.23; Lyu, Su & Li 2017 for monotone answers). *Proof.* Let no answer move by more than
        m steps from one data set to its neighbor, and let the noise be discrete Laplace of scale 2m/ε on the threshold
        and w·2m/ε on the answers, w = 2. Map every run on the one to a run with the same answers on the other: the
        threshold's noise rises by m, at a factor of e^(ε/2); whatever was below it is below it still; and the noise of
        the "yes" rises by the m of the threshold and by as much as its own answer fell, by 2m together, at a factor of
        e^(ε/2). For monotone answers w = 1 is enough. Where someone comes, no answer falls, so that the "yes" needs no
        more than the m of the threshold; where someone goes, no answer rises, the threshold stays, and the "yes" needs
        no more than the m of its own fall. With one answer among them that moves the other way it would need 2m again,
        which costs ε, and 3ε/2 in all: that is why a plan made for a count takes no answer that might fall. Answers are
        rounded to whole steps, which keeps their direction and m (see `grid`). All answers of a session are one draw,
        which `join` counts once.
        """
        steps = self.plan.grid.single_steps(query, monotone=self.plan.reach.monotone)
        if self.left == 0:
            problem = f'"yes" was said {self.plan.answers} times, which is what was paid for'
            raise BudgetExceeded(f"{problem}; start another session and charge for it")
        return Release(self._answer(steps), (self.draw,), query.unit, self.rng.kind)

    def _renew(self) -> None:
        step = self.plan.grid.step
        limit = float(2**52)
        public = math.ceil(min(max(self.plan.threshold / step, -limit), limit))
        self._threshold = public + discrete_laplace(self.plan.scales[0], None, self.rng)

    def _answer(self, step: int) -> bool:
        above = bool(np.int64(step) + discrete_laplace(self.plan.scales[1], None, self.rng) >= self._threshold)
        if above:
            self.left -= 1
            self._renew()
        return above
