"""From a plan and the user's own objects to a run, with every check on the way."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privet.core import InvalidInput, Randomness, Unit, Whose
from privet.core.random import Rng, default_rng
from privet.training import checkpoint, validate
from privet.training.budget_charge import BudgetCharge
from privet.training.checkpoint import CheckpointStore, FixedTerms, next_randomness
from privet.training.data import Rows
from privet.training.distributed import World, described
from privet.training.identity import Identity
from privet.training.noise import Noise
from privet.training.performance import Performance
from privet.training.rules import OperationRule, checked_rules
from privet.training.run import Run
from privet.training.sampling import Sampler, UserRows, UserSampler, count_units
from privet.training.step import Step

if TYPE_CHECKING:
    import torch
    from torch import nn

    from privet.core import Event
    from privet.ledger import Budget, Charge
    from privet.training.plan import DPSGD
    from privet.training.sampling import Ids

__all__ = ["RunSetup"]


@dataclass(frozen=True, eq=False)
class RunSetup:
    """Everything that a run is attached with: the arguments of `DPSGD.attach`."""

    plan: DPSGD
    model: nn.Module
    optimizer: torch.optim.Optimizer
    dataset: Any
    charge: BudgetCharge | Budget | None
    users: UserRows | Ids | None
    collate_fn: Any
    performance: Performance | None
    rules: Mapping[str, OperationRule] | None
    rng: Rng | None
    journal: str | os.PathLike[str] | None
    delta: float | None

    def start(self, path: str | os.PathLike[str] | None = None) -> Run:
        """Check everything and return the run: a new one, or one that goes on from the checkpoint at `path`."""
        world = World.here()
        with world.together():
            return self._start(world, None if path is None else checkpoint.read(path))

    def _start(self, world: World, saved: checkpoint.Checkpoint | None) -> Run:
        plan, model, optimizer, performance = self.plan, self.model, self.optimizer, self.performance or Performance()
        charge, users = BudgetCharge.of(self.charge), UserRows.of(self.users)
        _require(self.performance, self.rng)
        if not (delta := plan.stated_delta(self.delta)) > 0:
            raise InvalidInput("delta", "is 0, which no normal noise meets", "give one such as 1e-5")
        rules = checked_rules(self.rules)
        validate.require(model, optimizer)
        # Where the number of rows is private, that there are none is private too.
        rows = Rows.of(self.dataset, collate_fn=self.collate_fn, may_be_empty=not plan.counts_rows)
        if plan.noise is Noise.LATTICE and world.size > 1:
            problem = "is the lattice, whose proof is for the sums of one process"
            raise InvalidInput("noise", problem, "train in one process, or use noise='real'")
        whose = Whose.EXAMPLE if users is None else Whose.USER
        units = count_units(users, len(rows))
        unit, rng = plan.unit(whose), self.rng if self.rng is not None else default_rng()
        world.agree(described(plan, rows, unit, model, optimizer, rng), model)
        ready = world.noise_of(plan.calibrated(units, whose) if saved is None else saved.calibrated(plan))
        noise = ready.noise_multiplier or 0.0
        sampler: Sampler = ready.sampler(units)
        if users is not None:
            sampler = UserSampler(sampler, users.ids, users.cap)
        event = sampler.event(ready.clipping.leaf(noise), sampler.steps_of())
        fingerprint = None if charge is None else charge.fingerprint
        identity = Identity(rows, None if users is None else users.ids)
        fixed = FixedTerms(plan, noise, event, unit, units if plan.counts_rows else None, fingerprint, identity)
        if world.leads and (weak := validate.large_delta(delta, plan.public(units))):
            warnings.warn(weak, stacklevel=4)
        used, drawing, reserved = 0, False, None
        if saved is None:
            store = CheckpointStore(fixed, sampler)
            reserved = world.lead(lambda: self._reserve(store, charge, event, unit))
        else:
            saved.check(fixed, model, optimizer, rng)
            store, used = CheckpointStore(fixed, sampler, saved.run), int(saved.record["steps"])
            revived = world.lead(lambda: saved.revive(sampler, event, charge, self.journal))
            if revived is not None:
                past, reserved, drawing = revived
                store, used = CheckpointStore(fixed, sampler, saved.run, past), past.steps
                rng = next_randomness(rng, past.life)
        step = Step(ready, model, optimizer, rules, performance, rng, world)
        source = "training data" if charge is None else charge.budget.name
        run = Run(step, rows=rows, delta=delta, source=source, charge=reserved, store=store)
        if saved is not None:
            run.restore(saved, used, drawing=drawing)
        return run

    def _reserve(self, store: CheckpointStore, charge: BudgetCharge | None, event: Event, unit: Unit) -> Charge | None:
        """Open the journal, if a place for it is named, and reserve the charge; a refusal closes the journal again."""
        with ExitStack() as refused:
            if self.journal is not None:
                store.open_journal(self.journal)
                refused.callback(store.close, 0)
            reserved = None if charge is None else charge.reserve(event, unit)
            refused.pop_all()
        return reserved


def _require(performance: Performance | None, rng: Rng | None) -> None:
    """Refuse what would only fail in the middle, with an error of Python's."""
    if performance is not None and not isinstance(performance, Performance):
        problem = f"is of the type {type(performance).__name__}"
        raise InvalidInput("performance", problem, "give privet.training.Performance(micro_batch=…)")
    if rng is not None and not isinstance(getattr(rng, "kind", None), Randomness):
        advice = "leave it out; for tests give privet.core.random.SeededRng(0), which taints the release"
        raise InvalidInput("rng", f"is of the type {type(rng).__name__}, which is no source of random bits", advice)
