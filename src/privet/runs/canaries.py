"""Canaries in a run: made-up rows by fair coins, each with a coordinate of its own, and what the release tells of them.

They change no price and no guarantee of a real row: a canary is one row more, sampled, clipped and noised like any
other, and its gradient lies along an axis on which no prediction depends.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from privet.audit import CanaryModel, CanaryWatch, confidence_per_test, guess_membership, one_run, plan_guesses
from privet.core import Canaries, Evidence, InvalidInput, Release, Unit, write_atomically
from privet.core.random import SeededRng
from privet.runs.directory import RunDirectory
from privet.training import Recipe, Run, StepFunction

__all__ = ["KIND", "CanaryEvidence", "CanaryPlan", "CanaryStage", "evidence_of", "store_evidence", "stored_evidence"]

KIND = "gradient canaries"
_COINS = "canaries.json"
_KEPT = "canaries"
_DIGITS = 6
_LEAST_SEEN = 64
"""Observations of each kind, below which steps tell nothing."""


@dataclass(frozen=True)
class CanaryEvidence:
    """Results of a run with canaries: they are about synthetic rows only, and post-processing of the release."""

    canaries: Release[Canaries]
    evidence: tuple[Release[Evidence], ...]


def evidence_of(canaries: Canaries, *, delta: float, unit: Unit, confidence: float) -> Evidence:
    """Return the one-run bound (Steinke, Nasr & Jagielski 2023): it assumes fair coins, and nothing about the run.

    Args:
        canaries: Scores and coins of the canaries.
        delta: δ at which ε is bounded.
        unit: Privacy unit of the run.
        confidence: Confidence of the bound.
    """
    counts = guess_membership(np.array(canaries.scores), np.array(canaries.inside), guesses=canaries.guesses)
    attack = f"{canaries.kind}, one run"
    return one_run(len(canaries.scores), *counts, delta=delta, confidence=confidence, unit=unit, attack=attack)


@dataclass
class CanaryPlan:
    """A model with its canaries, while it is trained. Coins are those of the run's folder, so that they stay the same
    where a run goes on; what a canary's coordinate has summed up is in the checkpoint, like every weight."""

    planted: CanaryModel[nn.Module]
    watch: CanaryWatch | None = None
    coins: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.bool), repr=False)

    def optimizer(self, recipe: Recipe) -> torch.optim.Optimizer:
        """Return the recipe's optimizer, plus a group for the canaries' coordinates, with a constant rate of 1.

        Args:
            recipe: Recipe of the run.
        """
        found = recipe.optimizer(self.planted.model)
        found.add_param_group({"params": [self.planted.marks], "lr": 1.0, "initial_lr": 1.0, "momentum": 0.0})
        return found

    def dataset(self, data: tuple[Tensor, Tensor]) -> Any:
        """Return the rows followed by the canaries.

        Args:
            data: Inputs and targets of the rows.
        """
        rows = self.planted.dataset(data)
        self.coins = rows[1][len(data[0]) :] > 0
        return rows

    def users(self, users: Any) -> Any:
        """Return the users of the rows and of the canaries, each of which is a user of its own.

        Args:
            users: User of each row; None where rows are units.
        """
        if users is None:
            return None
        known = np.asarray(users)
        first = int(known.max()) + 1 if len(known) else 0
        return np.concatenate([known, np.arange(first, first + self.planted.canaries, dtype=known.dtype)])

    def step_of(self, recipe: Recipe, run: Run, model: nn.Module) -> StepFunction:
        """Return the function that takes one step; the losses that it returns are those of the real rows of a batch.

        Args:
            recipe: Recipe of the run.
            run: The run.
            model: The model with its canaries.
        """
        losses_of: Callable[[Any, Any, float], Tensor] = model.losses  # type: ignore[assignment]
        watch = self.watch = self.planted.watch(run)

        def take_step(batch: Any) -> tuple[Tensor, bool]:
            recipe.anneal(run.optimizer, run.steps - 1)
            run.optimizer.param_groups[-1]["lr"] = 1.0
            (inputs, targets), marks = batch
            losses = losses_of(inputs, targets, recipe.pull)
            return losses.detach()[marks == 0], watch.step(losses, marks)

        return take_step

    def found(self, run: Run, delta: float, unit: Unit) -> tuple[Canaries, tuple[Evidence, ...]]:
        """Return the scores and coins of the canaries, and the lower bounds on ε that they prove.

        Args:
            run: The finished run.
            delta: δ at which ε is bounded.
            unit: Privacy unit of the run.
        """
        plan = run.plan
        scale = (plan.batch_size or 1) / plan.clip
        # A canary that took part pushed its coordinate down by one clip over the batch size, each time.
        scores = -self.planted.marks.detach().double().cpu().numpy() * scale
        rate = (plan.batch_size or 1) / (plan.population or 1)
        planned = self.planted.canaries, run.total, run.noise_multiplier, min(rate, 1.0)
        guesses = plan_guesses(*planned, delta=delta, confidence=confidence_per_test())
        kept = Canaries(
            KIND,
            tuple(round(float(score), _DIGITS) for score in scores),
            tuple(self.coins.tolist()),
            guesses,
        )
        evidence = [evidence_of(kept, delta=delta, unit=unit, confidence=confidence_per_test())]
        observed = None if self.watch is None else self.watch.observed()
        if observed is not None and min(int(observed.took_part.sum()), int((~observed.took_part).sum())) >= _LEAST_SEEN:
            evidence.append(observed.by_steps(delta=delta, confidence=confidence_per_test()))
        return kept, tuple(evidence)


@dataclass
class CanaryStage:
    """Stage that adds canaries to a run and records their results. A secret in the run directory fixes their coins."""

    count: int
    directory: RunDirectory
    seed: int | None
    delta: float
    unit: Unit
    results: tuple[Canaries, tuple[Evidence, ...]] | None = None

    def plan(self, model: nn.Module) -> CanaryPlan:
        """Return the model with its canaries.

        Args:
            model: The model to train.
        """
        path = self.directory.hidden / _COINS
        if path.exists():
            secret = int(json.loads(path.read_text(encoding="utf-8"))["secret"])
        else:
            secret = secrets.randbits(62) if self.seed is None else self.seed
            write_atomically(path, json.dumps({"secret": secret}), "out", private=True)
        return CanaryPlan(CanaryModel(model, canaries=self.count, rng=SeededRng(secret, "canaries")))

    def record(self, canaries: CanaryPlan, run: Run) -> None:
        """Record the results of the canaries of a finished run.

        Args:
            canaries: The model with its canaries.
            run: The finished run.
        """
        self.results = canaries.found(run, self.delta, self.unit)


def store_evidence(
    directory: RunDirectory, release: Release[Any], results: tuple[Canaries, tuple[Evidence, ...]]
) -> None:
    """Store the results of the canaries, before the model is stored: a resumed run finds both, or continues training.

    Args:
        directory: Run directory.
        release: The released model.
        results: Scores and coins of the canaries, and the lower bounds on ε.
    """
    canaries, evidence = results
    content = {"canaries": canaries.to_json(), "evidence": [one.to_json() for one in evidence]}
    directory.store_release(_KEPT, release.map(lambda _: content))


def stored_evidence(directory: RunDirectory) -> CanaryEvidence:
    """Return the stored results of the canaries.

    Args:
        directory: Run directory.

    Raises:
        InvalidInput: There are no stored results.

    Guarantee: that of the release that was kept; nothing is drawn here.
    """
    stored = directory.stored_release(_KEPT)
    if stored is None:
        raise InvalidInput("resume", "has a model and no canaries of it", "train anew, which costs anew")
    count = len(stored.value["evidence"])
    evidence = tuple(stored.map(partial(_evidence, number=number)) for number in range(count))
    return CanaryEvidence(stored.map(lambda content: Canaries.from_json(content["canaries"])), evidence)


def _evidence(content: dict[str, Any], number: int) -> Evidence:
    evidence: Evidence = Evidence.from_json(content["evidence"][number])
    return evidence
