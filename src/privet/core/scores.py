"""How good a model is, and how a release scores canaries. What a record is wrapped in says who may see it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from privet.core import checked
from privet.core.codec import Record
from privet.core.errors import InvalidInput

__all__ = ["Canaries", "Score", "Trial", "number_or_none"]

_SHA256 = re.compile("[0-9a-f]{64}")


def number_or_none(value: float | None) -> float | None:
    """Return a number, or None for None and NaN: the effect of rows on a sum must not raise an error."""
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        if value is None:
            return None
        raise InvalidInput("value", f"is a {type(value).__name__}, which is not a number")
    return None if math.isnan(value) else float(value)


@dataclass(frozen=True)
class Score(Record):
    """How good a model is, by one measure.

    >>> Score("accuracy", float("nan"), "the test file").value is None
    True
    """

    name: str
    value: float | None
    """None if there is no such number, such as the AUC of a single class."""
    on: str
    """Which rows it was computed on."""
    share: bool = True
    """Whether it is a fraction, shown in percent."""
    lower: float | None = None
    upper: float | None = None
    confidence: float | None = None
    covers: str = ""
    """What the interval covers: the noise, the sampling of the rows, or both; see `privet.report.score_intervals`."""
    rows: str = ""
    """The SHA-256 of the public test rows as they were read; empty for private rows, and where it is not recorded."""

    def __post_init__(self) -> None:
        checked.text("name", self.name)
        checked.text("on", self.on)
        if not isinstance(self.rows, str) or (self.rows and not _SHA256.fullmatch(self.rows)):
            raise InvalidInput("rows", "is not a SHA-256 in 64 hexadecimal digits", "leave it empty for private rows")
        for name in ("value", "lower", "upper", "confidence"):
            object.__setattr__(self, name, number_or_none(getattr(self, name)))

    @property
    def has_interval(self) -> bool:
        """Whether both ends and their confidence are known; cards of earlier versions have scores without."""
        return self.lower is not None and self.upper is not None and self.confidence is not None


@dataclass(frozen=True)
class Trial(Record):
    """One method at one (ε, δ), and how well it did."""

    run: str
    """A name for it, such as the run's folder."""
    method: str
    """The title of the method, such as DP-SGD."""
    epsilon: float
    delta: float
    score: Score
    teachers: int | None = None
    """How many voted, where teachers did."""

    def __post_init__(self) -> None:
        checked.text("run", self.run)
        if self.teachers is not None:
            checked.count("teachers", self.teachers)
        checked.text("method", self.method)
        if self.epsilon != math.inf:
            checked.nonnegative("epsilon", self.epsilon)
        checked.share("delta", self.delta)
        if not isinstance(self.score, Score):
            raise InvalidInput("score", f"is a {type(self.score).__name__}, where a Score is wanted")


@dataclass(frozen=True)
class Canaries(Record):
    """Synthetic examples that were included by fair coins, how the release scores them, and how many are guessed at.

    They are all that a one-run audit needs, so that anybody can repeat it.
    """

    kind: str
    scores: tuple[float, ...]
    inside: tuple[bool, ...]
    guesses: int
    """The number of guesses, fixed before the coins are read."""

    def __post_init__(self) -> None:
        checked.text("kind", self.kind)
        if len(self.scores) != len(self.inside) or not self.scores:
            raise InvalidInput("inside", f"has {len(self.inside)} coins for {len(self.scores)} scores")
        if not all(isinstance(each, bool) for each in self.inside):
            raise InvalidInput("inside", "holds something else than truth values")
        for each in self.scores:
            checked.finite("scores", each)
        if checked.count("guesses", self.guesses) > len(self.scores):
            raise InvalidInput("guesses", f"is {self.guesses}, of {len(self.scores)} canaries")
