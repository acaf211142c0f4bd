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
    """One logical batch. An empty batch is a step like any other: noise is added, and the privacy cost is the same."""

    indices: Indices
    """The rows of the data set, each at most once."""
    groups: Indices | None
    """For each row the place of its unit in the batch, 0 … units-1, never decreasing; None if each row is a unit."""
    units: int
    """How many units were drawn. Private: never divide by it."""

    @staticmethod
    def of_rows(indices: Indices) -> SampledBatch:
        """Return a batch in which every row is a unit.

        Args:
            indices: The rows of the batch, each at most once.
        """
        return SampledBatch(indices, None, len(indices))


class Sampler(Protocol):
    """Sampler of the batches of a run, which also states the privacy event of its sampling.

    Steps are counted from 0 over the whole run. **A step is used once**: the counter that a run passes to `draw` never
    decreases, not even after a crash, and `event` is asked about all steps up to that counter.
    """

    @property
    def rows(self) -> int:
        """Number of rows of the data set. Private under add/remove."""

    @property
    def units(self) -> int:
        """Number of units (rows or users) in the data set. Private under add/remove."""

    @property
    def neighbours(self) -> frozenset[Neighbours]:
        """Neighbor relations for which the event of a Gaussian step is proven; budgets for others must be refused."""

    def steps_of(self) -> int:
        """Return the number of steps of the whole run."""

    def draw(self, step: int, rng: Rng) -> SampledBatch:
        """Draw the batch of one step.

        Args:
            step: Number of the step, counted from 0 over the whole run.
            rng: Source of randomness.
        """

    def next_step(self, step: int) -> int:
        """Return the first step, from `step` on, that may still be drawn; `steps_of()` if there is none.

        Args:
            step: Number of the step, counted from 0 over the whole run.
        """

    def event(self, per_step: Leaf, steps: int) -> Event:
        """Return the event of the first steps of the run.

        Args:
            per_step: Event of one step on its batch, before subsampling.
            steps: Number of steps.
        """

    def state(self) -> State:
        """Return the state that a resumed run needs. It has no generator: nothing is ever drawn twice."""

    def load(self, state: State) -> None:
        """Resume from a state.

        Args:
            state: What `state` returned.

        Raises:
            InvalidInput: The state belongs to another plan.
        """


class IndependentSteps(ABC):
    """Base of samplers in which every row is a unit and steps are independent."""

    rows: int
    steps: int

    @property
    def units(self) -> int:
        """Number of rows: every row is a unit."""
        return self.rows

    def steps_of(self) -> int:
        """Return the planned number of steps."""
        return self.steps

    def next_step(self, step: int) -> int:
        """Return `step` itself, because any step may be drawn.

        Args:
            step: Number of the step, counted from 0 over the whole run.
        """
        return min(whole("step", step, 0), self.steps)

    @abstractmethod
    def state(self) -> State:
        """Return the plan, which is all that a resumed run needs."""

    def load(self, state: State) -> None:
        """Check that a state belongs to the same plan.

        Args:
            state: What `state` returned.

        Raises:
            InvalidInput: The state belongs to another plan.
        """
        same_plan(state, self.state())


def whole(argument: str, value: SupportsIndex, least: int = 1) -> int:
    """Return an integer, NumPy's and torch's included, as an int that is at least `least`.

    Args:
        argument: Name of the argument, for the message.
        value: The number.
        least: Smallest allowed value.

    Raises:
        InvalidInput: `value` is not an integer, or is below `least`.
    """
    try:
        number = operator.index(value)
    except TypeError:
        problem = f"is {value!r}, which is not a whole number"
        raise InvalidInput(argument, problem, "give an integer such as 100") from None
    return checked.count(argument, value if isinstance(value, bool) else number, least)


def planned(step: SupportsIndex, steps: int) -> int:
    """Return the number of a step after checking that it is part of the plan.

    Args:
        step: Number of the step, counted from 0.
        steps: Number of steps of the plan.

    Raises:
        InvalidInput: The step is not part of the plan.
    """
    number = whole("step", step, 0)
    if number >= steps:
        problem = f"is {number}, and the run has the steps 0 … {steps - 1}"
        raise InvalidInput("step", problem, "plan more steps from the start: the noise was chosen for these")
    return number


def same_plan(state: State, own: State) -> None:
    """Refuse a state whose settings differ from the sampler's, because its event would not be the charged one.

    Args:
        state: The stored state.
        own: Settings of this sampler, by name.

    Raises:
        InvalidInput: `state` is not a dict, or a setting differs.
    """
    if not isinstance(state, dict):
        raise InvalidInput("state", f"is a {type(state).__name__}", "give what state() returned")
    for name, value in own.items():
        if state.get(name) != value:
            problem = f"has another {name} than this sampler: {state.get(name)!r}, not {value!r}"
            raise InvalidInput("state", problem, "make the sampler with the knobs of the run that is to go on")
