"""What was chosen, and written down before a test file was read. README.md here says how."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from privet.ensemble import LabelPropagation, VoteRegression
from privet.ensemble.student import StudentTraining
from privet.pate import GNMax

__all__ = ["ADULT", "DELTA", "FAILURE", "MNIST", "SETTINGS", "Settings"]

DELTA, FAILURE = 1e-5, 1e-3
"""Of every ε of MNIST and Adult, and of a sanitised one."""


@dataclass(frozen=True)
class Settings:
    """Teachers, questions, noise and student of one run."""

    name: str
    data: str
    teachers: int
    penalty: float
    """Of the teachers' ridge regressions."""
    bins: int | None
    """Of a table's numbers, in the features; None for pictures."""
    questions: int
    chosen: str
    """Which questions: `typical` ones, the middles of clusters; or `telling` ones, of which answers say most."""
    sigma: float
    """Of the noise on each count of votes."""
    order: float
    beta: float
    noise_multiplier: float
    """The last three are those of the smooth ceiling that sanitises the price."""
    student: StudentTraining | VoteRegression = field(default_factory=LabelPropagation)
    """One that weighs is given noisy counts, and others are given labels."""
    level: bool = False
    """Whether teachers take back what a penalty does to the smaller class."""

    @property
    def aggregator(self) -> GNMax:
        """All questions are answered: a test would cost as much."""
        return GNMax(self.sigma)


MNIST = (
    Settings("mnist", "mnist", 250, 0.1, None, 300, "typical", 30.0, 18.0, 0.04, 7.0),
    Settings("mnist-guaranteed", "mnist", 250, 0.1, None, 100, "typical", 53.0, 18.0, 0.04, 7.0),
    Settings("mnist-1000", "mnist", 1000, 0.1, None, 300, "typical", 60.0, 18.0, 0.01, 7.0),
)
_ADULT = Settings(
    "adult", "adult", 250, 0.2, 8, 2000, "telling", 238.0, 18.0, 0.04, 7.0, VoteRegression(6.0), level=True
)
ADULT = (_ADULT, replace(_ADULT, name="adult-1.9", sigma=132.0))
"""The second at about the ε of Papernot et al. 2018, to compare with."""
SETTINGS = {each.name: each for each in (*MNIST, *ADULT)}
