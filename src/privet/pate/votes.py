"""Teachers' votes: private counts, and how far one unit of the training data can move them.

Every record (every user, where users are kept together) is in the shard of one teacher, and no record moves another to
a different shard. A record that comes or goes then changes one teacher, whose vote on a question goes from one label
to another: two counts move by 1 each, so that L1 = 2 and L2 = √2, and the largest count moves by 1 at most.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from privet.accounting import span
from privet.core import InvalidInput, Unit, checked
from privet.mechanisms import Reach, replaces

__all__ = ["Counts", "PrivateRecord", "Votes", "moved_teachers", "top_reach", "vote_reach"]

Counts: TypeAlias = npt.NDArray[np.int64]


def moved_teachers(unit: Unit) -> int:
    """How many teachers one unit can change: one for each record that comes or goes, two for one that is replaced.

    A replaced record may have another id, and so another shard.

    >>> moved_teachers(Unit())
    1
    """
    replaces(unit)  # refuses neighbors that say nothing about records
    return int(span(unit))


def vote_reach(unit: Unit, labels: int) -> Reach:
    """How far one unit moves the counts of one question."""
    teachers = float(moved_teachers(unit))
    l2 = math.nextafter(math.sqrt(2) * teachers, math.inf)
    return Reach(unit, l0=2 * teachers, l1=2 * teachers, l2=l2, linf=teachers, dimension=labels, whole=True)


def top_reach(unit: Unit) -> Reach:
    """How far one unit moves the largest count of one question, or the largest count less a public number each."""
    return Reach(unit, linf=float(moved_teachers(unit)), whole=True)


class PrivateRecord:
    """A record that cannot be changed, printed, pickled, copied or written as JSON, as a `Bounded` value cannot."""

    __slots__ = ()
    REFUSAL: ClassVar[tuple[str, str]]
    """What it is, as the subject of a sentence, and why it stays or what to do."""

    def _refuse(self, what: str) -> NoReturn:
        subject, reason = self.REFUSAL
        raise TypeError(f"{subject} {what}; {reason}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{self.REFUSAL[0]} cannot be changed; {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self.REFUSAL[0]} cannot be changed; {name} cannot be deleted")

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._refuse("cannot be pickled or copied")

    def __getstate__(self) -> NoReturn:
        self._refuse("cannot hand out their state")

    def to_json(self) -> NoReturn:
        """Raise `TypeError`: private records have no JSON."""
        self._refuse("cannot be written as JSON")


class Votes(PrivateRecord):
    """How many teachers voted for each label, for each question: private until an aggregator has added its noise.

    It refuses to be printed, pickled, changed or written as JSON, as a `Bounded` value does.

    >>> Votes([[3, 1], [0, 4]], teachers=4)
    Votes(<private counts of 2 questions>, teachers=4, labels=2)
    """

    __slots__ = ("counts", "labels", "questions", "teachers")
    REFUSAL = ("private votes", "release labels through an aggregator")

    counts: Counts
    labels: int
    questions: int
    teachers: int

    def __init__(self, counts: Any, *, teachers: int) -> None:
        array = _whole("counts", counts, "one row for each question and one column for each label")
        if checked.count("teachers", teachers) < 2:
            raise InvalidInput("teachers", "is 1: a vote of one hides nothing", "split the data among 2 or more")
        if array.shape[0] < 1 or array.shape[1] < 2:
            shape = f"{array.shape[0]} questions and {array.shape[1]} labels"
            raise InvalidInput("counts", f"has {shape}", "ask 1 question or more with 2 labels or more")
        if array.min() < 0:
            raise InvalidInput("counts", "has a count below 0", "count the teachers who voted for each label")
        if (array.sum(axis=1) != teachers).any():
            problem = f"has a row that does not add up to the {teachers} teachers"
            raise InvalidInput("counts", problem, "every teacher votes for one label in every question")
        array.setflags(write=False)
        for name, value in zip(self.__slots__, (array, array.shape[1], array.shape[0], teachers), strict=True):
            object.__setattr__(self, name, value)

    @staticmethod
    def cast(ballots: Any, *, labels: int) -> Votes:
        """Return the counts of votes that are given one by one.

        Args:
            ballots: One row for each query and one column for each teacher: the label, from 0, it votes for.
            labels: The number of labels.

        Raises:
            InvalidInput: The votes are not whole numbers, or name labels that do not exist.

        >>> Votes.cast([[0, 1, 1]], labels=2).teachers
        3
        """
        array = _whole("ballots", ballots, "one row for each question and one column for each teacher")
        checked.count("labels", labels, 2)
        if array.size and not 0 <= array.min() <= array.max() < labels:
            raise InvalidInput("ballots", f"has a vote outside of 0 to {labels - 1}", "number the labels from 0")
        cells = array + labels * np.arange(len(array))[:, None]
        counts = np.bincount(cells.reshape(-1), minlength=labels * len(array)).reshape(len(array), labels)
        return Votes(counts, teachers=array.shape[1])

    def __repr__(self) -> str:
        return f"Votes(<private counts of {self.questions} questions>, teachers={self.teachers}, labels={self.labels})"


def _whole(argument: str, value: Any, shape: str) -> Counts:
    array = np.asarray(value)
    if array.ndim != 2:
        raise InvalidInput(argument, f"has {array.ndim} dimensions", f"give {shape}")
    if array.dtype.kind not in "iu":
        raise InvalidInput(argument, f"holds {array.dtype} and not whole numbers", "give votes as integers")
    return array.astype(np.int64)
