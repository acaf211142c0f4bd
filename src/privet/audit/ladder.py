"""The ladder of adversaries: one training plan against adversaries who see more and more of the run (Nasr et al. 2021).

The higher the rung, the more the adversary sees, and the closer the evidence comes to the guarantee, which assumes that
the adversary sees all of it. The remaining gap is what the guarantee covers and this adversary cannot use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from privet.accounting import default_delta
from privet.attacks import Access, ModelTarget
from privet.audit.canaries import CanaryModel
from privet.audit.canary_observations import CanaryObservations
from privet.audit.inserted_canaries import InsertedCanaries, insert_canaries
from privet.core import Evidence, Guarantee, InvalidInput, Neighbours, Record, checked
from privet.core.random import Rng, default_rng
from privet.data import named
from privet.ensemble import generator, initial_weights
from privet.training import DPSGD, Adaptive

__all__ = ["Ladder", "Rung", "audit_ladder"]

_CLASSES: Final = 10
_RATE: Final = 1.0
_NAMES: Final = ("API", "black box", "white box", "gradient canary", "chosen data set")


@dataclass(frozen=True)
class Rung(Record):
    """One adversary: its name, what it sees, and the evidence that it found."""

    name: str
    sees: str
    evidence: Evidence

    @classmethod
    def kinds(cls) -> Mapping[str, type[Record]]:
        """Return the record types that a rung contains: its own, and those of evidence."""
        return {"Rung": Rung} | dict(Evidence.kinds())


@dataclass(frozen=True)
class Ladder(Record):
    """All adversaries against one plan, from the weakest to the strongest, beside the plan's guarantee."""

    guarantee: Guarantee
    rungs: tuple[Rung, ...]

    @classmethod
    def kinds(cls) -> Mapping[str, type[Record]]:
        """Return the record types that a ladder contains: its own, and those of guarantees and rungs."""
        return {"Ladder": Ladder} | dict(Guarantee.kinds()) | dict(Rung.kinds())

    @property
    def refuted(self) -> bool:
        """Whether any rung exceeds the guarantee. Five tests at 95 %, say, leave some chance of a false alarm."""
        return any(rung.evidence.refutes(self.guarantee) for rung in self.rungs)


def audit_ladder(
    plan: DPSGD, *, canaries: int = 1000, confidence: float = 0.95, key: str = "privet", rng: Rng | None = None
) -> Ladder:
    """Train by a plan on scikit-learn's digits, with canaries for each adversary, and return what each of them found.

    It audits the plan and the package on public rows; it says nothing about a run on other rows. It makes three runs:
    one with `canaries` synthetic rows (about which the first two adversaries query the model), one with as many
    canaries that have axes of their own, and one on those canaries alone. All evidence is of one run and assumes
    nothing, except for the last, which sees the noise of each step and presumes that it is normal. The chance that some
    rung is too high is at most five times that of one; give a higher `confidence` where that matters.

    Args:
        plan: The training plan to audit, with add/remove neighbors and without adaptive clipping.
        canaries: The number of canaries in each run, at least 16.
        confidence: The probability that one rung's bound is right.
        key: The key that initial weights and synthetic rows follow from.
        rng: The source of coins, batches and noise; the secure generator by default.

    Returns:
        The plan's guarantee, and one rung for each of the five adversaries.

    Raises:
        InvalidInput: If the plan is for another unit than add/remove or clips adaptively, or `canaries` is below 16.
    """
    if plan.unit().neighbours is not Neighbours.ADD_REMOVE or isinstance(plan.clipping, Adaptive):
        problem = "is for another unit than add/remove, or clips adaptively"
        raise InvalidInput("plan", problem, "give it a population=, or sample_rate= and steps=, and another clipping")
    checked.count("canaries", canaries, least=16)
    delta = plan.delta if plan.delta is not None else default_delta(plan.population)
    source = rng or default_rng()
    digits = named("digits").train
    inputs = torch.as_tensor(digits.x, dtype=torch.float32).flatten(1) / 16  # a pixel's largest value
    labels = torch.as_tensor(digits.y).long()
    rows = insert_canaries(inputs, classes=_CLASSES, canaries=canaries, key=key, rng=source)
    released = _trained(plan, *rows.into(inputs, labels), key, source, delta)
    beside = _watched(plan, inputs, labels, canaries, key, source, delta)
    alone = _watched(plan, inputs[:1] * 0, labels[:1], canaries, key, source, delta)
    rungs = (
        Rung(_NAMES[0], "the labels that the model names", _asked(rows, released, Access.LABELS, delta, confidence)),
        Rung(_NAMES[1], "the scores that it gives", _asked(rows, released, Access.SCORES, delta, confidence)),
        Rung(
            _NAMES[2],
            "its weights, at the end",
            beside.by_coins(delta=delta, confidence=confidence, scores=beside.sums),
        ),
        Rung(_NAMES[3], "every noisy gradient", beside.by_coins(delta=delta, confidence=confidence)),
        Rung(
            _NAMES[4],
            "every noisy gradient, and all rows but one are its own choice",
            alone.by_steps(delta=delta, confidence=confidence),
        ),
    )
    return Ladder(plan.guarantee(delta), rungs)


def _network(key: str) -> nn.Module:
    model = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, _CLASSES))
    model.load_state_dict(initial_weights(model, generator(key, "ladder")))
    return model


def _trained(plan: DPSGD, inputs: Tensor, labels: Tensor, key: str, rng: Rng, delta: float) -> nn.Module:
    model = _network(key)
    optimizer = torch.optim.SGD(model.parameters(), lr=_RATE)
    run = plan.attach(model, optimizer, (inputs, labels), rng=rng, delta=delta)
    for x, y in run.batches():
        run.step(F.cross_entropy(model(x), y, reduction="none"))
    return run.release(delta).value


def _watched(
    plan: DPSGD, inputs: Tensor, labels: Tensor, canaries: int, key: str, rng: Rng, delta: float
) -> CanaryObservations:
    planted = CanaryModel(_network(key), canaries=canaries, rng=rng)
    # With plain SGD the final weights are the sum of all noisy gradients, and reveal no more.
    optimizer = torch.optim.SGD(planted.parameters(), lr=_RATE)
    run = plan.attach(planted, optimizer, planted.dataset((inputs, labels)), rng=rng, delta=delta)
    watch = planted.watch(run)
    for (x, y), marks in run.batches():
        watch.step(F.cross_entropy(planted.model(x), y, reduction="none"), marks)
    run.close()
    return watch.observed()


def _asked(rows: InsertedCanaries, model: nn.Module, access: Access, delta: float, confidence: float) -> Evidence:
    attack = f"made-up rows, one run, {access.value}"
    return rows.evidence(ModelTarget(model, _CLASSES, access), delta=delta, confidence=confidence, attack=attack)
