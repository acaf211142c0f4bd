"""What a sampler is, what it draws, and the checks that all of them share."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from privet.core import Event, InvalidInput, Leaf, Neighbours, checked
from privet.core.random import Rng

__all__ = ["IndependentSteps", "Indices", "SampledBatch", "Sampler", "State", "planned", "same_plan", "whole"]

Indices: TypeAlias = npt.NDArray[np.int64]
State: TypeAlias = dict[str, Any]
"""What must survive a restart: numbers, texts, lists and dicts, which JSON keeps as they are."""


@dataclass(frozen=True, eq=False)
class SampledBatch:
    """One logical batch. It may be empty, and then it is a step like any other: noise, and a charge."""

    indices: Indices
    """The rows of the data set, each at most once."""
    groups: Indices | None
    """For each row the place of its unit in the batch, 0 … units-1, never decreasing; None if each row is a unit."""
    units: int
    """How many units were drawn. Private: never divide by it."""

    @staticmethod
    def of_rows(indices: Indices) -> SampledBatch:
        """A batch in which every row is a unit of its own."""
        return SampledBatch(indices, None, len(indices))


class Sampler(Protocol):
    """Draws the batches of a run, and prices drawing them so.

    Steps are counted from 0 over the whole run. **A step is used once**: the counter that a run passes to `draw` never
    goes back, not even after a crash, and `event` is asked about all steps up to that counter.
    """

    @property
    def rows(self) -> int:
        """How many rows the data set has. Private where the neighbours are add/remove."""

    @property
    def units(self) -> int:
        """How many units (rows, or users) are drawn from. Private where the neighbours are add/remove."""

    @property
    def neighbours(self) -> frozenset[Neighbours]:
        """For which neighbours the event of a Gaussian step is proven; a budget for any other must be refused."""

    def steps_of(self) -> int:
        """How many steps the whole run has."""

    def draw(self, step: int, rng: Rng) -> SampledBatch:
        """The batch of one step."""

    def next_step(self, step: int) -> int:
        """The first step, from `step` on, that may still be drawn; `steps_of()` if there is none."""

    def event(self, per_step: Leaf, steps: int) -> Event:
        """What the steps 0 … steps-1 cost, if each of them released `per_step` of its batch."""

    def state(self) -> State:
        """What a restarted run needs to go on. The generator is no part of it: nothing is ever drawn again."""

    def load(self, state: State) -> None:
        """Go on from a state; one of another plan is refused."""


class IndependentSteps(ABC):
    """What samplers share in which every row is a unit and no step depends on another."""

    rows: int
    steps: int

    @property
    def units(self) -> int:
        """The number of rows: every row is a unit."""
        return self.rows

    def steps_of(self) -> int:
        """Return the planned number of steps."""
        return self.steps

    def next_step(self, step: int) -> int:
        """Return `step` itself, for any step may be drawn."""
        return min(whole("step", step, 0), self.steps)

    @abstractmethod
    def state(self) -> State:
        """Return the plan, which is all that a restarted run needs."""

    def load(self, state: State) -> None:
        """Check that the state is of the same plan."""
        same_plan(state, self.state())


def whole(argument: str, value: SupportsIndex, least: int = 1) -> int:
    """A whole number, NumPy's and torch's included, as an int that is at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        problem = f"is {value!r}, which is not a whole number"
        raise InvalidInput(argument, problem, "give an integer such as 100") from None
    return checked.count(argument, value if isinstance(value, bool) else number, least)


def planned(step: SupportsIndex, steps: int) -> int:
    """A step that is part of the plan."""
    number = whole("step", step, 0)
    if number >= steps:
        problem = f"is {number}, and the run has the steps 0 … {steps - 1}"
        raise InvalidInput("step", problem, "plan more steps from the start: the noise was chosen for these")
    return number


def same_plan(state: State, own: State) -> None:
    """Refuse a state whose knobs are not this sampler's: its event would not be the one that was promised."""
    if not isinstance(state, dict):
        raise InvalidInput("state", f"is a {type(state).__name__}", "give what state() returned")
    for name, value in own.items():
        if state.get(name) != value:
            problem = f"has another {name} than this sampler: {state.get(name)!r}, not {value!r}"
            raise InvalidInput("state", problem, "make the sampler with the knobs of the run that is to go on")
