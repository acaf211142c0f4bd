"""Canaries in a training run that nobody's accuracy pays for: each has a coordinate of its own, and sees nothing else.

In the manner of Nasr et al. 2023 (Dirac gradient canaries): the model gets one bare number for each canary, on which no
prediction depends. A canary's loss is a large multiple of its number, so that its clipped gradient is the clip, along
one axis. What the optimizer is given along that axis is then either noise, or noise and the clip.
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
"""How steep a canary's loss is: above every clip that is used, so that it is always clipped."""
_ROW, _BLANK = 0, -1
"""How rows are marked that are no canaries, and canaries that are out; 1, 2, … are canaries that are in."""


class CanaryModel(nn.Module, Generic[M]):
    """A model with a bare number beside it for each canary. The model itself stays what it is.

    Each canary is in the data by its own fair coin, drawn here; one that is out is a row of which nothing is learned
    (its gradient is zero), which is what a run without that row would be, as sums are divided by a public number. So
    the audit is of the run's own unit, whether records come and go, are blanked, or are replaced.

    What it changes: the data set has `canaries` more rows, so that a plan which counts rows samples a little less, and
    a batch has a few rows that teach the model nothing. What a real row is promised stays as it was.

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
        """How many there are, in or out."""
        return len(self.marks)

    def dataset(self, data: Any) -> Any:
        """The data and the canaries: pairs of a row as it was, and its mark.

        `data` is a tensor, or a tuple or dict of them whose first axis counts the rows; or a data set with a length.
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
        """What the model says; the canaries take no part in it."""
        return self.model(*inputs)

    def losses(self, losses: Tensor, marks: Tensor) -> Tensor:
        """The losses of a batch, with those of its canaries in their places.

        `losses` are the model's own, one for each row: those of canaries are left out, and no gradient comes of them.
        """
        place = (marks - 1).clamp(min=0).to(self.marks.device)
        steep = torch.where(marks > 0, _STEEP, 0.0).to(self.marks)
        return torch.where((marks == _ROW).to(losses.device), losses, steep * self.marks[place])

    def watch(self, run: Run) -> CanaryWatch:
        """What makes the run's steps from here on, and keeps what is seen of the canaries."""
        return CanaryWatch(self, run)

    def strip(self, release: Release[Any]) -> Release[Any]:
        """The release of the model itself, without the canaries' numbers.

        Guarantee: the same, by post-processing.
        """
        return release.map(lambda planted: planted.model)


class CanaryWatch:
    """The steps of a run whose canaries are watched: `step` in place of the run's own.

    What it keeps is internal: coins and batches are no releases. What comes of `observed()` is evidence, of made-up
    rows alone.
    """

    def __init__(self, planted: CanaryModel[Any], run: Run) -> None:
        if run.model is not planted or not any(
            parameter is planted.marks for group in run.optimizer.param_groups for parameter in group["params"]
        ):
            problem = "does not train the planted model with its canaries' numbers"
            advice = "attach plan.attach(planted, optimizer, planted.dataset(data)), the optimizer made of planted's"
            raise InvalidInput("run", problem, f"{advice} parameters()")
        if isinstance(run.plan.clipping, Adaptive):
            # A canary that is out is a row within the clip, and counts ½ among these: one in counts −½, where the
            # guarantee is about ½ and nothing.
            problem = "has adaptive clipping, which counts rows of which nothing is learned among those within the clip"
            raise InvalidInput("run", problem, "audit a plan with another clipping")
        self._planted, self._run = planted, run
        self._clip = run.clip
        self._now: list[Tensor] = []
        self._seen: list[Tensor] = []
        self._part: list[Tensor] = []

    def step(self, losses: Tensor, marks: Tensor) -> bool:
        """`run.step` for the model's own losses of a batch, and the marks that came with it."""
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
        """What was seen of all steps so far."""
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
    """Rows of somebody's data set, and canaries after them."""

    def __init__(self, data: Any, marks: Tensor) -> None:
        self._data, self._marks = data, marks
        self._blank = tree_map(lambda leaf: _made_up(torch.as_tensor(leaf)[None], 1)[0], data[0])

    def __len__(self) -> int:
        return len(self._data) + len(self._marks)

    def __getitem__(self, place: int) -> Any:
        rows = len(self._data)
        return (self._data[place], _ROW) if place < rows else (self._blank, int(self._marks[place - rows]))


def _made_up(rows: Tensor, count: int) -> Tensor:
    """So many rows of such a kind. Nothing is learned of them, but a model that has no number for a row of zeros would
    blank the canary with it; so numbers and pictures are made up, and codes are 0, which every category has."""
    drawn, shape = generator("privet", "canaries"), (count, *rows.shape[1:])
    if rows.dtype.is_floating_point:
        return torch.rand(shape, generator=drawn, dtype=torch.float64).to(rows)
    if rows.dtype == torch.uint8:
        return torch.randint(1, 256, shape, generator=drawn).to(rows)
    return rows.new_zeros(shape)


def _rate(plan: DPSGD, run: Run) -> float:
    """The chance of a row to be in a batch, about: a score may use it, and no bound rests on it."""
    if plan.sample_rate is not None:
        return plan.sample_rate
    return min(1.0, (plan.batch_size or 1) / (plan.population or run.sampler.units))
