"""Several answers of one person under one ε: the budget split among them, or one of them drawn and given all of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from privet.core import Approximate, Composed, Event, InvalidInput, Neighbours, Pure, Unit, checked
from privet.core.random import Rng
from privet.local.mean import MeanMechanism, ReportSum
from privet.local.oracle import FrequencyOracle, Tally
from privet.local.randomizer import ONE_REPORT

__all__ = ["Part", "SampledQuestions", "SplitQuestions", "State", "split_epsilon"]

Part: TypeAlias = FrequencyOracle | MeanMechanism
State: TypeAlias = Tally | ReportSum
_Answers: TypeAlias = Sequence[npt.ArrayLike]


def split_epsilon(epsilon: float, weights: Sequence[float]) -> tuple[float, ...]:
    """Return ε in parts, in proportion to the weights; each is rounded down, so that their sum is at most ε.

    Args:
        epsilon: The ε of all answers together.
        weights: One for each question.

    Raises:
        InvalidInput: There are no weights, or one is not positive.

    >>> split_epsilon(1.0, [1, 1, 2])
    (0.25, 0.25, 0.5)
    """
    whole = Fraction(checked.positive("epsilon", epsilon))
    shares = [Fraction(checked.positive("weights", weight)) for weight in weights]
    if not shares:
        raise InvalidInput("weights", "are none", "give one for each question")
    return tuple(_down(whole * share / sum(shares)) for share in shares)


def _down(exact: Fraction) -> float:
    near = float(exact)
    return near if Fraction(near) <= exact else math.nextafter(near, 0.0)


@dataclass(frozen=True)
class _Questions:
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts:
            raise InvalidInput("parts", "are none", "give one oracle or mechanism for each question")

    @property
    def unit(self) -> Unit:
        """All answers of one person."""
        return ONE_REPORT

    def aggregate(self, reports: Sequence[npt.NDArray[Any]]) -> tuple[State, ...]:
        """Return a state for each question.

        Args:
            reports: For each question, its reports.

        Raises:
            InvalidInput: A report could not have been made.
        """
        return tuple(part.aggregate(row) for part, row in zip(self.parts, reports, strict=True))

    def _rows(self, answers: _Answers) -> list[npt.NDArray[Any]]:
        rows = [np.atleast_1d(np.asarray(row)) for row in answers]
        if len(rows) != len(self.parts) or len({len(row) for row in rows}) != 1:
            problem = "do not hold one answer of each person to each question"
            raise InvalidInput("answers", problem, "give a row for each")
        return rows


@dataclass(frozen=True)
class SplitQuestions(_Questions):
    """Everybody answers every question, each under its own part of ε.

    >>> from privet.local.unary import OptimizedUnary
    >>> both = SplitQuestions.of(1.0, [lambda e: OptimizedUnary(2, e), lambda e: OptimizedUnary(3, e)])
    >>> [part.epsilon for part in both.parts]
    [0.5, 0.5]
    """

    @staticmethod
    def of(
        epsilon: float, builders: Sequence[Callable[[float], Part]], weights: Sequence[float] | None = None
    ) -> SplitQuestions:
        """Return questions whose parts of ε sum to it.

        Args:
            epsilon: The ε of all answers together.
            builders: For each question, from its part of ε to its oracle or mechanism.
            weights: One for each question; equal, by default.

        Raises:
            InvalidInput: There are no questions, or a weight is not positive.
        """
        shares = split_epsilon(epsilon, [1.0] * len(builders) if weights is None else weights)
        return SplitQuestions(tuple(build(share) for build, share in zip(builders, shares, strict=True)))

    @property
    def event(self) -> Event:
        """The composition of all answers."""
        return self.parts[0].event if len(self.parts) == 1 else Composed(tuple(part.event for part in self.parts))

    def randomize(self, answers: _Answers, rng: Rng) -> tuple[npt.NDArray[Any], ...]:
        """Return the reports of each question, in the order of the people.

        Args:
            answers: For each question, the answers of all people.
            rng: The randomness of the reports.

        Raises:
            InvalidInput: A value is no possible answer. Nothing is drawn.
        """
        rows = self._rows(answers)
        return tuple(part.randomize(row, rng) for part, row in zip(self.parts, rows, strict=True))


@dataclass(frozen=True)
class SampledQuestions(_Questions):
    """Everybody draws one question, evenly and without looking at the answers, and answers it under the whole ε.

    For k questions this has k times fewer answers of about k² times less variance: the better choice unless ε is large.
    """

    @property
    def event(self) -> Event:
        """The dearest of the questions, since only one of them is answered and which one says nothing."""
        events = [part.event for part in self.parts]
        epsilon = max(part.epsilon for part in self.parts)
        delta = max(event.delta if isinstance(event, Approximate) else 0.0 for event in events)
        return Approximate(epsilon, delta, Neighbours.REPLACE) if delta else Pure(epsilon, Neighbours.REPLACE)

    def randomize(self, answers: _Answers, rng: Rng) -> tuple[npt.NDArray[Any], ...]:
        """Return for each question the reports of those who drew it.

        Args:
            answers: For each question, the answers of all people.
            rng: The randomness of the reports, and of the question that each person draws.

        Raises:
            InvalidInput: A value is no possible answer. Nothing is drawn.
        """
        rows = self._rows(answers)
        drawn = rng.below(len(self.parts), len(rows[0]))
        return tuple(
            part.randomize(row[drawn == i], rng) for i, (part, row) in enumerate(zip(self.parts, rows, strict=True))
        )
