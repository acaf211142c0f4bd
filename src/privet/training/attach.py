"""From a plan and the user's own objects to a run, with every check on the way."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from privet.core import checked
from privet.core.errors import InvalidInput
from privet.core.random import Rng, default_rng
from privet.core.randomness import Randomness
from privet.core.unit import Unit, Whose
from privet.training import validate
from privet.training.checkpoint import Fixed, Keeper, Saved, continued
from privet.training.data import Rows
from privet.training.distributed import World, described
from privet.training.identity import Identity
from privet.training.performance import Performance
from privet.training.plan import DPSGD, Noise
from privet.training.rules import Known, all_known
from privet.training.run import Run
from privet.training.sampling import Sampler, Users, owners_of

if TYPE_CHECKING:
    import torch
    from torch import nn

    from privet.core.event import Event
    from privet.ledger import Ledger
    from privet.ledger.charge import Charge
    from privet.ledger.fingerprint import Fingerprint

__all__ = ["attach"]


def attach(
    plan: DPSGD,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    dataset: Any,
    *,
    ledger: Ledger | None = None,
    budget: str | None = None,
    fingerprint: Fingerprint | None = None,
    purpose: str = "training",
    users: Any = None,
    cap: int = 1,
    collate_fn: Any = None,
    performance: Performance | None = None,
    rules: Mapping[str, Known] | None = None,
    rng: Rng | None = None,
    journal: str | os.PathLike[str] | None = None,
    delta: float | None = None,
    saved: Saved | None = None,
    world: World,
) -> Run:
    """What `DPSGD.attach` does, and, with a checkpoint, `DPSGD.resume`."""
    _require(ledger, performance, rng)
    delta = _delta(plan, delta)
    rules, performance = all_known(rules), performance or Performance()
    validate.require(model, optimizer)
    # Where the number of rows is private, that there are none is private too.
    hidden = not plan.counts_rows
    rows = Rows.of(dataset, collate_fn=collate_fn, workers=performance.workers, may_be_empty=hidden)
    if plan.noise is Noise.LATTICE and world.size > 1:
        problem = "is the lattice, whose proof is for the sums of one process"
        raise InvalidInput("noise", problem, "train in one process, or use noise='real'")
    if users is None and cap != 1:
        raise InvalidInput(
            "cap", f"is {cap!r}, and there are no users whose rows it could limit", "give users= as well"
        )
    whose = Whose.EXAMPLE if users is None else Whose.USER
    units = len(rows) if users is None else owners_of(users, len(rows))
    unit, rng = plan.unit(whose), rng if rng is not None else default_rng()
    world.agree(described(plan, rows, unit, model, optimizer, rng), model)
    ready = plan.calibrated(units, whose) if saved is None else saved.calibrated(plan)
    ready = world.noise_of(ready)
    sampler: Sampler = ready.sampler(units)
    if users is not None:
        sampler = Users(sampler, users, cap)
    event = sampler.event(ready.clipping.leaf(ready.noise_multiplier or 0.0), sampler.steps_of())
    fixed = Fixed(
        plan,
        ready.noise_multiplier or 0.0,
        event,
        unit,
        units if plan.counts_rows else None,
        fingerprint,
        Identity(rows, users),
    )
    if world.leads and (weak := validate.large_delta(delta, plan.public(units))):
        warnings.warn(weak, stacklevel=3)
    used, drawing, charge = 0, False, None
    if saved is None:
        keeper = Keeper(fixed, sampler)
        charge = world.lead(
            lambda: _begun(keeper, journal, lambda: _reserve(ledger, budget, event, unit, purpose, fingerprint))
        )
    else:
        saved.check(fixed, model, optimizer, rng)
        keeper, used = Keeper(fixed, sampler, saved.run), int(saved.record["steps"])
        revived = world.lead(lambda: saved.revive(sampler, event, ledger, budget, journal))
        if revived is not None:
            past, charge, drawing = revived
            keeper, rng, used = Keeper(fixed, sampler, saved.run, past), continued(rng, past.life), past.steps
    run = Run(
        plan=ready,
        model=model,
        optimizer=optimizer,
        rows=rows,
        sampler=sampler,
        event=event,
        unit=unit,
        delta=delta,
        source=budget or (saved.budget if saved is not None else None) or "training data",
        charge=charge,
        keeper=keeper,
        performance=performance,
        rules=rules,
        rng=rng,
        world=world,
    )
    if saved is not None:
        run.restore(saved, used, drawing=drawing)
    return run


def _require(ledger: Ledger | None, performance: Performance | None, rng: Rng | None) -> None:
    """Refuse what would only fail in the middle, with an error of Python's."""
    if performance is not None and not isinstance(performance, Performance):
        problem = f"is of the type {type(performance).__name__}"
        raise InvalidInput("performance", problem, "give privet.training.Performance(micro_batch=…, workers=…)")
    if rng is not None and not isinstance(getattr(rng, "kind", None), Randomness):
        advice = "leave it out; for tests give privet.core.random.SeededRng(0), which taints the release"
        raise InvalidInput("rng", f"is of the type {type(rng).__name__}, which is no source of random bits", advice)
    if ledger is not None:
        from privet.ledger import Ledger as Book

        if not isinstance(ledger, Book):
            problem = f"is of the type {type(ledger).__name__}"
            raise InvalidInput("ledger", problem, "give privet.Ledger(place), and the name of its budget as budget=")


def _delta(plan: DPSGD, delta: float | None) -> float:
    """The δ at which the release will state its ε: without one there would be none, after all the work."""
    chosen = delta if delta is not None else plan.delta
    if chosen is None:
        problem = "is missing, and without it the run could state no ε for its release"
        raise InvalidInput("delta", problem, "give the plan one below 1 over the number of rows, such as delta=1e-5")
    if not checked.share("delta", chosen) > 0:
        raise InvalidInput("delta", "is 0, which no normal noise meets", "give one such as 1e-5")
    return chosen


def _begun(
    keeper: Keeper, journal: str | os.PathLike[str] | None, reserve: Callable[[], Charge | None]
) -> Charge | None:
    """The journal, if a place for it is named, and the charge; a journal whose run is refused is let go of."""
    with ExitStack() as refused:
        if journal is not None:
            keeper.keep(journal)
            refused.callback(keeper.close, 0)
        charge = reserve()
        refused.pop_all()
    return charge


def _reserve(
    ledger: Ledger | None,
    budget: str | None,
    event: Event,
    unit: Unit,
    purpose: str,
    fingerprint: Fingerprint | None,
) -> Charge | None:
    """The charge of the whole plan, before anything is drawn."""
    if ledger is None:
        if budget is not None:
            raise InvalidInput("ledger", "is missing, and a budget is named", "give ledger=privet.Ledger(url)")
        return None
    if budget is None:
        raise InvalidInput("budget", "is missing", "name the budget that the run is charged to")
    charged = ledger.budget(budget).unit
    if charged != unit:
        problem = f"protects {charged}, and this run protects {unit}"
        advice = (
            "give the plan population= (a public number of rows), or sample_rate= and steps=, for add/remove; "
            "or charge a budget that was created with the run's unit="
        )
        raise InvalidInput("budget", problem, advice)
    return ledger.reserve(budget, event, purpose=purpose, fingerprint=fingerprint, resumable=True)
