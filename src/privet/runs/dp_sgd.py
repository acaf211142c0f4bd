"""DP-SGD's loop: progress, logs, checkpoints, and an interruption that loses nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from privet.accounting import epsilon as price
from privet.core.errors import InvalidInput
from privet.core.event import Approximate, Event
from privet.core.random import Rng
from privet.core.release import Release
from privet.core.unit import Unit
from privet.runs.canaries import CanaryPlan
from privet.runs.directory import RunDirectory
from privet.runs.request import TrainRequest
from privet.training.recipe import Recipe
from privet.training.run import Run

__all__ = ["TrainingHistory", "as_block", "history_steps", "require_within", "train_dp_sgd"]

_SAVED_EVERY = 20.0
"""Seconds between checkpoints."""
_POINTS = 24
"""At how many steps a run is looked at, about."""


@dataclass
class TrainingHistory:
    """What was seen of a run on its way; all but `steps` and `models` is internal."""

    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    clipped: list[float] = field(default_factory=list)
    scores: list[float | None] = field(default_factory=list)
    """On public rows, of the model as it was then."""


def train_dp_sgd(
    recipe: Recipe,
    model: nn.Module,
    dataset: tuple[Tensor, Tensor],
    *,
    users: Any,
    cap: int,
    place: RunDirectory[TrainRequest],
    resume: bool,
    rng: Rng | None,
    after: Callable[[Run, float], None],
    plot: CanaryPlan | None = None,
    ended: Callable[[Run], None] = lambda run: None,
) -> Release[nn.Module]:
    """Train `model`, which has `losses`, and release it.

    Guarantee: that of the recipe's plan (`DPSGD`); the ledger has been told that noise is drawn. `after` is called
    after each step with the batch's mean loss, which is internal. With a `plot`, its canaries are rows more, of which
    the model learns nothing; `ended` is called before the release.
    """
    losses: Callable[[Any, Any, float], Tensor] = model.losses  # type: ignore[assignment]
    optimizer = recipe.optimizer(model) if plot is None else plot.optimizer(recipe)
    arguments: dict[str, Any] = {"users": users if plot is None else plot.users(users), "cap": cap, "rng": rng}
    whole = model if plot is None else plot.planted
    rows = dataset if plot is None else plot.dataset(dataset)
    if resume and place.checkpoint.exists():
        run = recipe.plan.resume(place.checkpoint, whole, optimizer, rows, **arguments)
    else:
        run = recipe.plan.attach(whole, optimizer, rows, journal=place.journal, **arguments)
        run.save(place.checkpoint)
    saved = time.monotonic()
    total, seen = 0.0, 0
    try:
        for batch in run.batches():
            recipe.anneal(optimizer, run.steps - 1)
            if plot is None:
                inputs, targets = batch
                each = losses(inputs, targets, recipe.pull)
                done = run.step(each)
            else:
                each, done = plot.step(run, losses, batch, recipe.pull)
            total, seen = total + float(each.detach().sum()), seen + len(each)
            if not done:
                continue
            after(run, total / max(seen, 1))
            total, seen = 0.0, 0
            if time.monotonic() - saved > _SAVED_EVERY:
                run.save(place.checkpoint)
                saved = time.monotonic()
        ended(run)
        release = run.release()
        return release if plot is None else plot.planted.strip(release)
    except KeyboardInterrupt:
        run.save(place.checkpoint)
        raise
    finally:
        run.close()


def as_block(release: Release[nn.Module], block: Approximate) -> Release[nn.Module]:
    """The same release, stated as the (ε, δ) block that was fixed before its plan was made.

    Guarantee: the block's. Whatever was learned first, what was done costs no more than the block, so that the
    composition with what was learned is that of the block (adaptive composition, Dwork & Roth 2014, Thm 3.16).
    """
    require_within(release.event, block, release.unit)
    (draw,) = release.draws
    return Release.of(release.value, block, unit=release.unit, source=draw.source, randomness=release.randomness)


def require_within(event: Event, block: Approximate, unit: Unit) -> None:
    """Refuse a plan that costs more than the block that was charged for it."""
    cost = price(event, block.delta, unit=unit).epsilon.upper
    if cost > block.epsilon:
        problem = (
            f"costs ε ≤ {cost:.6g} at δ = {block.delta:g}, above the ε = {block.epsilon:g} that were charged for it"
        )
        raise InvalidInput("plan", problem, "this is a mistake of Privet's own: please report it")


def history_steps(total: int) -> set[int]:
    """The steps after which a run is looked at: about two dozen, the first and the last among them."""
    return {max(1, round(total * place / _POINTS)) for place in range(1, _POINTS + 1)} | {1, total}
