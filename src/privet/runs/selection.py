"""The best of a random number of runs: private selection, which may be stopped and go on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from privet.core import Event, Release, Selected, Trials, Unit, write_atomically
from privet.core.random import Rng, default_rng
from privet.report import Score
from privet.runs.directory import RunDirectory
from privet.runs.methods.protocol import MethodPlan
from privet.training import Best, Standing, select
from privet.training.models import Model, ModelDescription, restore, store

__all__ = ["ScoredModel", "SelectionCheckpoint", "TuningPlan", "select_best"]

ScoredModel = tuple[nn.Module, Score]


@dataclass(frozen=True)
class TuningPlan:
    """A public list of plans with the same privacy cost, and the distribution of the number of runs."""

    trials: Trials
    candidates: tuple[MethodPlan, ...]
    one: Event
    """What one run costs, its score included."""

    @property
    def event(self) -> Event:
        """Privacy event of releasing the best run (Papernot & Steinke 2022, Thm 2)."""
        return Selected(self.one, self.trials)

    def to_data(self) -> dict[str, Any]:
        """Return the plan as plain JSON data."""
        trials, one = json.loads(self.trials.to_json()), json.loads(self.one.to_json())
        return {"trials": trials, "candidates": [plan.to_data() for plan in self.candidates], "one": one}

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> TuningPlan:
        """Return the plan that `to_data` wrote.

        Args:
            data: The plain data that `to_data` returned.
        """
        trials: Trials = Trials.from_json(json.dumps(data["trials"]))
        candidates = tuple(map(MethodPlan.from_data, data["candidates"]))
        return TuningPlan(trials, candidates, Event.from_json(json.dumps(data["one"])))


@dataclass(frozen=True)
class SelectionCheckpoint:
    """Checkpoint of a selection: internal, and removed at the end."""

    directory: RunDirectory
    described: ModelDescription
    whole: Callable[[nn.Module], Model]
    part: Callable[[Model], nn.Module]

    def _best(self, standing: Standing) -> Path:
        """The model of the run that a standing names. Each has a place of its own: a stop between a model and the
        standing that names it leaves the older one, and the run that is then made again counts once."""
        return self.directory.hidden / f"best-{standing.best}"

    def keep(self, standing: Standing, best: ScoredModel | None) -> None:
        """Store the progress; called before the first run and after each.

        Args:
            standing: Progress of the selection.
            best: Model and score of the best run so far, or None.
        """
        folder = self._best(standing)
        if best is not None and standing.best == standing.done - 1:
            folder.mkdir(mode=0o700, exist_ok=True)
            store(folder, self.whole(best[0]), self.described)
        score = None if best is None else best[1].to_json()
        write_atomically(self.directory.standing, json.dumps([standing.to_json(), score]), "out", private=True)
        for other in self.directory.hidden.glob("best-*"):
            if other != folder:
                shutil.rmtree(other)

    @property
    def complete(self) -> bool:
        """Whether all runs are done, so that nothing is left to draw."""
        standing, _ = self.found()
        return standing is not None and standing.done == len(standing.chosen)

    def found(self) -> tuple[Standing | None, ScoredModel | None]:
        """Return the stored progress, and the model and score of the best run so far."""
        if not self.directory.standing.exists():
            return None, None
        text, score = json.loads(self.directory.standing.read_text(encoding="utf-8"))
        standing = Standing.from_json(text)
        best = None if score is None else (self.part(restore(self._best(standing))[0]), Score.from_json(score))
        return standing, best


def select_best(
    tuning: TuningPlan,
    fit: Callable[[MethodPlan], Release[nn.Module]],
    score: Callable[[Release[nn.Module]], Release[Score]],
    *,
    unit: Unit,
    rng: Rng | None,
    kept: SelectionCheckpoint,
) -> Release[Best[MethodPlan, ScoredModel]]:
    """Release the best model by a released score; the number of runs stays secret.

    Args:
        tuning: Plan of the selection.
        fit: Function that trains a model by a candidate plan.
        score: Function that releases the score of a model.
        unit: Privacy unit of every run.
        rng: Source of randomness; None uses the operating system's.
        kept: Checkpoint, from which an interrupted selection resumes.

    Returns:
        The best plan, with its model and score.

    Guarantee: that of `tuning.event` for `unit` (`privet.training.tuning.select`): each run trains a fresh copy of the
    model with fresh randomness, and releases a score inside of its own event.
    """

    def run(candidate: MethodPlan) -> Release[tuple[ScoredModel, float]]:
        release = fit(candidate)
        both = Release.join(release, score(release))
        return both.map(lambda pair: ((pair[0], pair[1]), _rank(pair[1])))

    standing, best = kept.found()
    return select(
        tuning.trials,
        tuning.candidates,
        run,
        rng or default_rng(),
        event=lambda _: tuning.one,
        unit=unit,
        keep=kept.keep,
        standing=standing,
        best=best,
    )


def _rank(score: Score) -> float:
    """Return a number that is higher for a better score; errors are negated, and a missing value is the worst."""
    if score.value is None:
        return float("-inf")
    return score.value if score.share else -score.value
