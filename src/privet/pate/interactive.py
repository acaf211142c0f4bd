"""Interactive GNMax: teachers answer where they disagree with the student."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privet.core import InvalidInput, checked
from privet.core.random import Rng
from privet.pate.aggregator import NO_ANSWER
from privet.pate.confident import ThresholdedGNMax
from privet.pate.votes import Counts

__all__ = ["Interactive"]


@dataclass(frozen=True)
class Interactive(ThresholdedGNMax):
    """GNMax where the teachers disagree with the student; where they do not, the student's own label if it is sure.

    Papernot et al. 2018, Algorithm 2: the threshold is compared with the largest excess of the votes over what the
    student expects of them. The student must have been made from public data and earlier releases alone: then its
    expectations are public, and its own label is free.

    >>> import numpy as np
    >>> sure = np.array([[0.99, 0.01]])
    >>> again = Interactive(threshold=200, threshold_sigma=150.0, sigma=40.0, student=sure, confidence=0.9)
    >>> again.support(np.array([[250, 0]])).tolist()
    [2]
    """

    student: Any = field(repr=False, compare=False)
    """The student's probabilities: one row for each query, one column for each label."""
    confidence: float = 0.9
    """Above this probability the student's own label is taken where the teachers agree with it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        checked.probability("confidence", self.confidence)
        student = np.array(self.student, dtype=np.float64)
        if student.ndim != 2 or not np.isfinite(student).all() or student.min(initial=0.0) < 0:
            raise InvalidInput("student", "is no table of probabilities", "give one row for each question")
        if (abs(student.sum(axis=1) - 1) > 1e-3).any():
            raise InvalidInput("student", "has a row that does not add up to 1", "give probabilities, not scores")
        student.setflags(write=False)
        object.__setattr__(self, "student", student)

    def support(self, counts: Counts) -> Counts:
        """Return the largest excess of the votes over the student's expectation, which is rounded to whole votes.

        Args:
            counts: One row of votes for each query.

        Raises:
            InvalidInput: The student has predicted other queries.
        """
        if counts.shape != self.student.shape:
            problem = f"has the shape {self.student.shape}, and the votes {counts.shape}"
            raise InvalidInput("student", problem, "predict every question")
        expected = np.rint(self.student * counts[0].sum()).astype(np.int64)
        return np.asarray((counts - expected).max(axis=1))

    def labels_of(self, counts: Counts, answers: int, rng: Rng) -> Counts:
        """Return labels for the first `answers` rows that pass the test, and the student's own where it is sure.

        Args:
            counts: One row of votes for each query.
            answers: How many labels may be drawn.
            rng: The randomness of the noise.

        Raises:
            InvalidInput: The student has predicted other queries.
        """
        labels = super().labels_of(counts, answers, rng)
        own = np.where(self.student.max(axis=1) > self.confidence, self.student.argmax(axis=1), NO_ANSWER)
        return np.where(labels == NO_ANSWER, own, labels)
