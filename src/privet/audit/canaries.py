"""Gradient canaries that do not reduce accuracy: each has a coordinate of its own, on which no prediction depends.

In the manner of Nasr et al. 2023 (Dirac gradient canaries): the model gets one extra scalar parameter for each canary.
A canary's loss is a large multiple of its parameter, so that its clipped gradient has the clipping norm, along one
axis. What the optimizer receives along that axis is then either noise, or noise plus the clipping norm.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map
from torch.utils.data import Dataset

from privet.audit.canary_observations import CanaryObservations
from privet.core import InvalidInput, Release, checked
from privet.core.random import Rng, default_rng
from privet.ensemble import generator
from privet.training import DPSGD, Adaptive, PerLayer, Run

__all__ = ["CanaryModel", "CanaryWatch"]

M = TypeVar("M", bound=nn.Module)

_STEEP: Final = 1e6
"""The slope of a canary's loss: above every clipping norm in use, so that its gradient is always clipped."""
_ROW, _BLANK = 0, -1
"""Marks of real rows and of excluded canaries; 1, 2, … are included canaries."""


class CanaryModel(nn.Module, Generic[M]):
    """Model with one extra scalar parameter for each canary. The wrapped model itself does not change.

    Each canary is included in the data by its own fair coin, drawn here. An excluded canary is a row from which nothing
    is learned (its gradient is zero). That equals a run without that row, because sums are divided by a public number.
    So the audit is for the run's own unit, whether records are added and removed, zeroed out, or replaced.

    What it changes: the data set has `canaries` more rows, so that a plan that counts rows samples at a slightly lower
    rate, and a batch has a few rows that teach the model nothing. The guarantee for real rows does not change.

    >>> planted = CanaryModel(nn.Linear(2, 3), canaries=4)
    >>> (inputs, labels), marks = planted.dataset((torch.zeros(5, 2), torch.zeros(5)))
    >>> len(inputs), marks[:5].tolist()
    (9, [0, 0, 0, 0, 0])
    """

    model: M

    def __init__(self, model: M, *, canaries: int, rng: Rng | None = None) -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise InvalidInput("model", f"is a {type(model).__name__}", "give the torch.nn.Module that is trained")
        count = checked.count("canaries", canaries)
        self.model = model
        some = next((each for each in model.parameters() if each.is_floating_point()), torch.zeros(()))
        self.marks = nn.Parameter(torch.zeros(count, dtype=some.dtype, device=some.device))
        self._inside = (rng or default_rng()).below(2, count).astype(np.bool_)

    @property
    def canaries(self) -> int:
        """The number of canaries, included or excluded."""
        return len(self.marks)

    def dataset(self, data: Any) -> Any:
        """Return the data with the canaries appended, as pairs of a row and its mark.

        Args:
            data: A tensor or array, or a tuple or dict of them, whose first axis counts the rows; or a data set with a
                length.

        Returns:
            For tensors and arrays, a pair: the columns with synthetic rows for the canaries after the real ones, and
            one mark for each row. For a data set, a data set of such pairs. A mark is 0 for a real row, -1 for an
            excluded canary, and the canary's number, counted from 1, for an included one.

        Raises:
            InvalidInput: If a column has no first axis, or columns have different lengths.
        """
        marks = np.where(self._inside, np.arange(1, self.canaries + 1), _BLANK)
        if isinstance(data, Dataset) or not isinstance(data, (Tensor, np.ndarray, tuple, dict)):
            return _Joined(data, torch.from_numpy(marks))
        rows: list[int] = []

        def longer(column: Any) -> Tensor:
            found = torch.as_tensor(column)
            if not found.dim():
                raise InvalidInput("data", "has a column without rows", "give tensors whose first axis counts the rows")
            rows.append(len(found))
            return torch.cat([found, _made_up(found, self.canaries)])

        columns = tree_map(longer, data)
        if len(set(rows)) != 1:
            raise InvalidInput("data", "has columns of different lengths", "row i is the i-th entry of every column")
        return columns, torch.cat([torch.full((rows[0],), _ROW), torch.from_numpy(marks)])

    def forward(self, *inputs: Any) -> Any:
        """Return the output of the wrapped model; the canaries do not take part in it.

        Args:
            *inputs: The arguments of the wrapped model's `forward`.
        """
        return self.model(*inputs)

    def losses(self, losses: Tensor, marks: Tensor) -> Tensor:
        """Return the losses of a batch, with those of canary rows replaced by the canaries' own losses.

        Args:
            losses: The model's losses, one for each row. Those of canary rows are ignored and contribute no gradient.
            marks: The mark of each row of the batch, as `dataset` returns them.

        Returns:
            One loss for each row: the model's for real rows, a steep multiple of the canary's parameter for included
            canaries, and zero for excluded ones.
        """
        place = (marks - 1).clamp(min=0).to(self.marks.device)
        steep = torch.where(marks > 0, _STEEP, 0.0).to(self.marks)
        return torch.where((marks == _ROW).to(losses.device), losses, steep * self.marks[place])

    def watch(self, run: Run) -> CanaryWatch:
        """Return a `CanaryWatch` that makes the run's steps from here on and records what they reveal of the canaries.

        Args:
            run: The run that trains this model, attached to the data set that `dataset` returned.

        Raises:
            InvalidInput: If the run does not train this model with its canaries' parameters, or uses adaptive clipping.
        """
        return CanaryWatch(self, run)

    def strip(self, release: Release[Any]) -> Release[Any]:
        """Return the release of the wrapped model, without the canaries' parameters.

        Args:
            release: A release of the `CanaryModel`, such as `run.release()` returns.

        Guarantee: the same, by post-processing.
        """
        return release.map(lambda planted: planted.model)


class CanaryWatch:
    """Steps of a run whose canaries are watched: call `step` in place of the run's own.

    What it records is internal: coins and batches are not released. What `observed()` returns is evidence about
    synthetic rows alone.
    """

    def __init__(self, planted: CanaryModel[Any], run: Run) -> None:
        if run.model is not planted or not any(
            parameter is planted.marks for group in run.optimizer.param_groups for parameter in group["params"]
        ):
            problem = "does not train the planted model with its canaries' numbers"
            advice = "attach plan.attach(planted, optimizer, planted.dataset(data)), the optimizer made of planted's"
            raise InvalidInput("run", problem, f"{advice} parameters()")
        if isinstance(run.plan.clipping, Adaptive):
            # An excluded canary is a row within the clip and adds ½ to the released count; an included one adds −½.
            # The guarantee is about the difference between ½ and 0.
            problem = "has adaptive clipping, which counts rows of which nothing is learned among those within the clip"
            raise InvalidInput("run", problem, "audit a plan with another clipping")
        self._planted, self._run = planted, run
        self._clip = run.clip
        self._now: list[Tensor] = []
        self._seen: list[Tensor] = []
        self._part: list[Tensor] = []

    def step(self, losses: Tensor, marks: Tensor) -> bool:
        """Make one step of the run and record the noisy gradient along each canary's axis.

        Args:
            losses: The model's own losses of a batch, one for each row.
            marks: The marks that came with the batch.

        Returns:
            Whether the step is complete; with micro-batches, only the call for the last one completes it.

        Raises:
            InvalidInput: If the step left no gradient behind.
            RunError: If the run has no batch to step on.
        """
        planted = self._planted
        self._now.append(marks[marks > 0] - 1)
        if not self._run.step(planted.losses(losses, marks)):
            return False
        took = torch.zeros(planted.canaries, dtype=torch.bool)
        took[torch.cat(self._now).cpu()] = True
        given = planted.marks.grad
        if given is None:
            raise InvalidInput("run", "left no gradient behind", "clear gradients before a step, not after it")
        scale = (self._run.plan.batch_size or 1) / self._clip
        self._seen.append(given.detach().float().cpu() * scale)
        self._part.append(took)
        self._now, self._clip = [], self._run.clip
        return True

    def observed(self) -> CanaryObservations:
        """Return what was observed in all steps so far.

        Raises:
            InvalidInput: If the run has made no step yet.
        """
        if not self._seen:
            raise InvalidInput("run", "has made no step yet", "train first")
        run, plan = self._run, self._run.plan
        return CanaryObservations(
            seen=torch.stack(self._seen).numpy(),
            took_part=torch.stack(self._part).numpy(),
            inside=self._planted._inside,  # noqa: SLF001 (of this file)
            noise_multiplier=run.noise_multiplier,
            sample_rate=_rate(plan, run),
            event=lambda noise: run.sampler.event(plan.clipping.leaf(noise), len(self._seen)),
            unit=run.unit,
            whole=not isinstance(plan.clipping, PerLayer),
        )


class _Joined(Dataset[Any]):
    """Rows of a data set, followed by canaries."""

    def __init__(self, data: Any, marks: Tensor) -> None:
        self._data, self._marks = data, marks
        self._blank = tree_map(lambda leaf: _made_up(torch.as_tensor(leaf)[None], 1)[0], data[0])

    def __len__(self) -> int:
        return len(self._data) + len(self._marks)

    def __getitem__(self, place: int) -> Any:
        rows = len(self._data)
        return (self._data[place], _ROW) if place < rows else (self._blank, int(self._marks[place - rows]))


def _made_up(rows: Tensor, count: int) -> Tensor:
    """Return synthetic rows of the same shape and type.

    Nothing is learned from them, but a model whose output for a row of zeros is not finite would blank the canary with
    it. So floating-point numbers and pixels are drawn at random, and codes are 0, which every category has.
    """
    drawn, shape = generator("privet", "canaries"), (count, *rows.shape[1:])
    if rows.dtype.is_floating_point:
        return torch.rand(shape, generator=drawn, dtype=torch.float64).to(rows)
    if rows.dtype == torch.uint8:
        return torch.randint(1, 256, shape, generator=drawn).to(rows)
    return rows.new_zeros(shape)


def _rate(plan: DPSGD, run: Run) -> float:
    """Return the approximate probability that a row is in a batch: scores may use it, and no bound depends on it."""
    if plan.sample_rate is not None:
        return plan.sample_rate
    return min(1.0, (plan.batch_size or 1) / (plan.population or run.sampler.units))
