"""Shadow models of a run's own family, some at a time: after a stop, those that were trained are there."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from privet.attacks import Pool, Shadows, shadows
from privet.core import InvalidInput, write_atomically
from privet.core.random import SeededRng
from privet.ensemble import Ensemble, EnsembleTask, Learner, Stacked, seed_of
from privet.runs.attacks.rows import AttackedRun
from privet.runs.facts import PublicFacts
from privet.runs.methods.protocol import FitSession, MethodPlan, on_features
from privet.runs.methods.registry import METHODS
from privet.runs.plan_file import read_plan
from privet.runs.scoring import LabeledRows
from privet.training.models import Convolutions, Model, Residual, UserModel

__all__ = ["Learned", "SamePlan", "ShadowCheckpoint", "plain_learner", "same_plan_learner", "train_shadow_models"]

_TOGETHER = 4
"""Models that are trained at once, and kept when they are done: two pairs."""
_EPOCHS, _BATCH, _RATE = 30, 64, 0.01
_STEPS = (200, 4000)
_HIDDEN = 64
_FACTS = "facts.json"
_PLAIN = "leave it out: the shadow models are then trained without privacy"


@dataclass(frozen=True, eq=False)
class Learned:
    """Ensemble of modules that were trained one by one."""

    models: tuple[nn.Module, ...] = field(repr=False)
    classes: int

    @property
    def size(self) -> int:
        """Number of modules."""
        return len(self.models)

    @torch.no_grad()
    def scores(self, inputs: Tensor) -> Tensor:
        """Return the scores, (modules, rows, classes).

        Args:
            inputs: Rows of features.
        """
        return torch.stack([model(inputs) for model in self.models])


@dataclass(frozen=True, eq=False)
class SamePlan:
    """Learner of shadow models by the run's own plan, with its noise, for an attacker who knows how the model was made.

    Their noise is derived from the key; it protects nobody, and need not.
    """

    plan: MethodPlan
    facts: PublicFacts
    model: Model = field(repr=False)
    """Untrained, on features."""
    key: str

    def fit(self, task: EnsembleTask) -> Ensemble:
        """Train the shadow models one after the other.

        Args:
            task: Rows and labels, and the members of each model.
        """
        models = []
        for place, members in enumerate(task.members):
            rng = SeededRng(seed_of(self.key, "shadow", task.first + place))
            session = FitSession(self.facts, self.model, self.plan.unit, "shadow rows", rng)
            rows = LabeledRows(task.inputs[members], task.labels[members], None)
            models.append(METHODS[self.plan.method].fit(self.plan, rows, session).value.eval())
        return Learned(tuple(models), task.classes)


def plain_learner(found: AttackedRun, key: str) -> Learner:
    """Return a learner of shadow models without privacy, of the family of the run's model.

    Args:
        found: The attacked run.
        key: Key from which the randomness is derived.
    """
    rows = len(found.pool.labels) // 2
    steps = min(max(_EPOCHS * rows // _BATCH, _STEPS[0]), _STEPS[1])
    return Stacked(_pattern(found), steps=steps, batch_size=_BATCH, learning_rate=_RATE, key=key)


def _pattern(found: AttackedRun) -> nn.Module:
    head, classes = found.head, found.classes
    if isinstance(head, Convolutions):
        return copy.deepcopy(head)
    if isinstance(head, UserModel):
        return copy.deepcopy(head.inner)
    features = int(np.prod(found.pool.inputs.shape[1:]))
    if isinstance(head, Residual):
        return nn.Sequential(nn.Linear(features, _HIDDEN), nn.Tanh(), nn.Linear(_HIDDEN, classes))
    return nn.Linear(features, classes)


def same_plan_learner(found: AttackedRun, key: str) -> Learner:
    """Return a learner of shadow models by the plan that is stored with the run.

    Args:
        found: The attacked run.
        key: Key from which the randomness is derived.

    Raises:
        InvalidInput: There is no stored plan, or other models cannot be trained by it.
    """
    plan = read_plan(found.folder, found.card, "like_run")
    method = None if plan.tuning is not None else METHODS[plan.methods[0].method]
    if method is None or not method.has_central_trust or not method.fits_rows:
        problem = (
            "is given, and the run was tuned, randomized every record, or has teachers: others cannot be trained so"
        )
        raise InvalidInput("like_run", problem, _PLAIN)
    described, table = found.described, found.described.table
    schema = None if table is None else replace(table, user=None, most_rows_per_user=None)
    facts = PublicFacts("shadow rows", schema, described.classes, described.shape, described.peak, None)
    fresh = described.build()
    return SamePlan(plan.plan_of(plan.methods[0].method), facts, on_features(fresh), key)


@dataclass(frozen=True)
class ShadowCheckpoint:
    """Checkpoint of the shadow models trained so far, in a directory that only its owner can read."""

    folder: Path

    def begin(self, facts: dict[str, str], *, resume: bool) -> None:
        """Resume an interrupted attack, or start one where no trained models would be lost.

        Args:
            facts: Description of the attack, which must be the same when it is resumed.
            resume: Whether to resume.

        Raises:
            InvalidInput: There is nothing to resume, the attack is another one, or trained models would be lost.
        """
        if resume:
            try:
                found = json.loads((self.folder / _FACTS).read_text(encoding="utf-8"))
            except (OSError, ValueError):
                problem = "is given, and no attack on this run was stopped"
                raise InvalidInput("resume", problem, "leave it out") from None
            if found != facts:
                names = ", ".join(name for name in facts if found.get(name) != facts[name]) or "something"
                problem = f"cannot go on: {names} differs from the attack that was stopped"
                raise InvalidInput("resume", problem, f"ask for the same again, or remove {self.folder}")
            return
        if any(self.folder.glob("*.npz")) and (self.folder / _FACTS).exists():
            problem = "is not given, and an attack was stopped here whose shadow models are kept"
            raise InvalidInput("resume", problem, f"go on with --resume, or remove {self.folder}")
        self.clear()
        self.folder.mkdir(mode=0o700)
        write_atomically(self.folder / _FACTS, json.dumps(facts), "run", private=True)

    def keep(self, block: int, found: Shadows) -> None:
        """Store a block of shadow models atomically.

        Args:
            block: Number of the block.
            found: The shadow models' scores.
        """
        part = self.folder / f".{block}.part.npz"
        with part.open("wb") as file:
            np.savez(file, scores=found.scores, inside=found.inside, outputs=_outputs(found))
        part.replace(self.folder / f"{block}.npz")

    def block(self, number: int) -> Shadows | None:
        """Return a stored block, or None where it is missing or damaged.

        Args:
            number: Number of the block.
        """
        path = self.folder / f"{number}.npz"
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as held:
                return Shadows(held["scores"], held["inside"], held["outputs"])
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            return None

    def clear(self) -> None:
        """Remove the checkpoint: the attack is done, or another one starts."""
        shutil.rmtree(self.folder, ignore_errors=True)


def train_shadow_models(
    learner: Callable[[str], Learner],
    pool: Pool,
    classes: int,
    *,
    models: int,
    kept: ShadowCheckpoint,
    resume: bool,
    kind: str,
    minutes: float | None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Shadows:
    """Train shadow models, four at a time, as many as requested or as the time allows; at least one block is trained.

    Args:
        learner: Function from a key to a learner.
        pool: Members and non-members.
        classes: Number of classes.
        models: Requested number of shadow models.
        kept: Checkpoint of the shadow models.
        resume: Whether to resume an interrupted attack.
        kind: Kind of the shadow models, which must be the same when the attack is resumed.
        minutes: Time limit in minutes, or None.
        progress: Called with the number of trained models, and their total.

    Raises:
        InvalidInput: The attack cannot be resumed, or trained models of an interrupted attack would be lost.
    """
    kept.begin({"rows": _digest(pool), "kind of shadow models": kind}, resume=resume)
    start, done, blocks = time.monotonic(), 0, list[Shadows]()
    while done < models:
        size = min(_TOGETHER, models - done)
        number = len(blocks)
        found = kept.block(number)
        if found is None or found.models != size:
            key = f"privet attack {number}"
            found = shadows(learner(key), pool.inputs, pool.labels, classes=classes, models=size, key=key)
            kept.keep(number, found)
        blocks.append(found)
        done += size
        progress(done, models)
        each = (time.monotonic() - start) / len(blocks)
        if minutes is not None and time.monotonic() - start + each > 60 * minutes:
            break
    return Shadows(
        np.concatenate([each.scores for each in blocks]),
        np.concatenate([each.inside for each in blocks]),
        np.concatenate([_outputs(each) for each in blocks]),
    )


def _outputs(found: Shadows) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    if found.outputs is None:
        raise InvalidInput("shadows", "have no outputs")
    return found.outputs


def _digest(pool: Pool) -> str:
    found = hashlib.sha256()
    for part in (pool.inputs.contiguous().numpy(), pool.labels.contiguous().numpy(), pool.inside):
        found.update(repr((part.shape, str(part.dtype))).encode() + part.tobytes())
    return found.hexdigest()
