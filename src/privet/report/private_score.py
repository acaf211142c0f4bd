"""Mean score of a model on private rows, released by one draw of noise on two sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core import Bounded, Event, Release, Unit, checked
from privet.core.random import Rng
from privet.mechanisms import Cells, DiscreteLaplaceMechanism, Histogram, LaplaceMechanism, Norm, VectorSum
from privet.report.score_intervals import CONFIDENCE, noisy_parts, noisy_share

__all__ = ["ScoreMechanism", "share_of"]

_HALF = (1 - CONFIDENCE) / 2
"""The allowed error of the noise, and that of the sampling."""
_PER_DRAW = 1 - _HALF / 2
"""The confidence of each of the two draws behind a score."""


@dataclass(frozen=True)
class ScoreMechanism:
    """Mechanism for the mean of scores in [0, 1], one for each row, that keeps the number of rows private.

    A row with the score s adds (s, 1 - s) to two sums. Both get noise, and the mean is the first one's share of both.

    Guarantee: pure ε for `unit`. The vector of one row has the L1 norm s + (1 - s) = 1, so that a unit with at most
    `rows` rows moves the two sums together by `rows` in L1, and by twice that when replaced. One draw of Laplace noise
    of that distance over ε on both sums is ε-DP (Dwork, McSherry, Nissim & Smith 2006, Prop. 1); halves of ε for a sum
    and a count would need twice the noise on each. Where every score is 0 or 1, the sums are a histogram of two bins,
    and the noise is whole (Ghosh, Roughgarden & Sundararajan 2012). A row whose score is no number scores 0. No row
    raises, and of a user's rows beyond `rows` none is used.

    Attributes:
        epsilon: The privacy cost of one release.
        unit: Whose data is protected.
        rows: The largest number of rows that one unit contributes.
        is_binary: Whether every score is 0 or 1, as for an accuracy.
    """

    epsilon: float
    unit: Unit = Unit()
    rows: int = 1
    is_binary: bool = True

    @cached_property
    def noise(self) -> DiscreteLaplaceMechanism | LaplaceMechanism:
        """The noise on both sums, known before any row is read."""
        if self.is_binary:
            return DiscreteLaplaceMechanism.for_epsilon(self.epsilon, self._clipper)
        return LaplaceMechanism.for_epsilon(self.epsilon, self._clipper)

    @property
    def event(self) -> Event:
        """The event of one release."""
        return self.noise.event

    @property
    def reach(self) -> float:
        """The largest error of each sum through the noise, at the confidence that an interval allows for."""
        return self.noise.interval(_PER_DRAW)

    @property
    def _clipper(self) -> Histogram | VectorSum:
        if self.is_binary:
            return Histogram(Cells(0.0, 1.0, 2), self.unit, self.rows)
        return VectorSum(2, 1.0, Norm.L1, self.unit, self.rows)

    def release(
        self, scores: npt.ArrayLike, users: npt.NDArray[Any] | None = None, *, rng: Rng, source: str
    ) -> Release[tuple[float, float]]:
        """Return the noisy sums of the scores and of 1 less each score; `share_of` and `interval` are free.

        Guarantee: that of `event`, for `unit` (see the class).

        Args:
            scores: One score for each row.
            users: The user of each row, where the unit is a user.
            rng: The source of the noise.
            source: The name of the data, for the release.
        """
        sums: Release[Any] = self.noise.release(self.query(scores, users), rng=rng, source=source)
        return sums.map(lambda both: (float(both[0]), float(both[1])))

    def query(self, scores: npt.ArrayLike, users: npt.NDArray[Any] | None = None) -> Bounded[Any]:
        """Return the two sums without noise, with the distance that one unit can move them by.

        Args:
            scores: One score for each row.
            users: The user of each row, where the unit is a user.
        """
        losses = (1.0 - np.nan_to_num(np.asarray(scores, dtype=np.float64), nan=0.0)).clip(0.0, 1.0)
        return self._clipper(losses if self.is_binary else np.stack([1.0 - losses, losses], 1), users)

    def interval(self, gained: float, lost: float) -> tuple[float, float]:
        """Return the 95 % interval of the mean score on new rows: noise and sampling have half of the error each.

        Args:
            gained: The noisy sum of the scores.
            lost: The noisy sum of 1 less each score.
        """
        ends = noisy_share if self.is_binary else noisy_parts
        return ends(gained, lost, self.reach, _HALF, self.rows)

    def half_width(self, rows: int) -> float:
        """Return the expected half-width of the interval, before anything is drawn.

        It is that of a mean score of one half, the widest case.

        Args:
            rows: About how many rows are scored: a public or released number.
        """
        low, high = self.interval(*[checked.count("rows", rows) / 2] * 2)
        return (high - low) / 2


def share_of(gained: float, lost: float, *, otherwise: float) -> float:
    """Return the first one's share of two noisy sums, of which neither counts below 0.

    Args:
        gained: The noisy sum of the scores.
        lost: The noisy sum of 1 less each score.
        otherwise: The share where nothing is left of both.
    """
    right, wrong = max(gained, 0.0), max(lost, 0.0)
    return right / (right + wrong) if right + wrong > 0 else otherwise
