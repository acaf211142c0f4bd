"""What was chosen, and written down before a test file was read. README.md here says how."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from privet.ensemble import Propagated, Ridge, Supervised
from privet.ensemble.student import Teaching
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
    typical: bool
    """Whether questions are the middles of clusters; else they are drawn from the pool."""
    sigma: float
    """Of the noise on each count of votes."""
    order: float
    beta: float
    noise_multiplier: float
    """The last three are those of the smooth ceiling that sanitises the price."""
    student: Teaching = field(default_factory=Propagated)

    @property
    def aggregator(self) -> GNMax:
        """All questions are answered: they are typical, so that most teachers agree, and a test would cost as much."""
        return GNMax(self.sigma)


MNIST = (
    Settings("mnist", "mnist", 250, 0.1, None, 300, True, 30.0, 18.0, 0.04, 7.0),
    Settings("mnist-guaranteed", "mnist", 250, 0.1, None, 100, True, 53.0, 18.0, 0.04, 7.0),
    Settings("mnist-1000", "mnist", 1000, 0.1, None, 300, True, 60.0, 18.0, 0.01, 7.0),
)
_ADULT = Settings("adult", "adult", 250, 0.03, 8, 2000, False, 238.0, 18.0, 0.04, 7.0, Supervised(Ridge(5.0)))
ADULT = (_ADULT, replace(_ADULT, name="adult-1.9", sigma=132.0))
"""The second at about the ε of Papernot et al. 2018, to compare with."""
SETTINGS = {each.name: each for each in (*MNIST, *ADULT)}
