"""A run of private training: batches and steps exactly as the accountant analyzed them, and the release at the end."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType, ref

import torch
from torch import Tensor, nn

from privet.accounting import CONTINUOUS_NOISE
from privet.accounting import epsilon as price
from privet.core import Guarantee, InvalidInput, Release
from privet.training.checkpoint import Checkpoint, CheckpointStore
from privet.training.data import Rows
from privet.training.device_noise import STRENGTH
from privet.training.distributed import Turn
from privet.training.grid import ASSUMPTION
from privet.training.guard import RunError, guard, unguard
from privet.training.micro import Micro, split
from privet.training.noise import Noise
from privet.training.notices import warn_of_rates, warn_of_unrepeatable
from privet.training.rehearsal import REHEARSED, Rehearsal
from privet.training.selftest import SelfTest, selftest
from privet.training.step import Step

if TYPE_CHECKING:
    from privet.ledger import Charge

__all__ = ["Run", "RunError"]


_CLOSELY = 9
"""Cap the EMA decay at t / (t + 9) after t steps, so that the untrained initial weights are forgotten quickly."""
_WAITS = "the last batch got no step; it still waits: call run.step(losses) once for it"


@dataclass
class _Progress:
    steps: int = 0
    """Steps started, whether or not they were finished: the part of the plan that is spent."""
    open: Micro | None = None
    """The micro-batch that was returned to the loop and waits for its losses."""
    left: Iterator[Micro] = field(default_factory=lambda: iter(()))
    """The step's other micro-batches."""
    drawing: bool = False
    """Whether the ledger has recorded that noise may have been drawn."""
    released: bool = False
    finished: bool = False
    """Whether at least one step was finished."""
    rehearsal: Rehearsal | None = None
    """The rehearsal in progress, while the loop runs on rows that have no effect on the model."""
    rehearse: Micro | None = None
    """The rows with which the current step is rehearsed, before its first micro-batch."""
    refusal: InvalidInput | None = None
    """The error of this step's rehearsal; raised with the last micro-batch, because other checks may say more."""


class Run:
    """Private training of one model on one data set; made by `DPSGD.attach`.

    Guarantee: that of the plan's event for its unit, at any δ: `guarantee(delta)`. It covers everything that can be
    seen of the model from the first step on, however early one stops. You must keep true that each loss depends on
    its own example alone (checked on the first batch as far as gradients show it), and that nothing else of the data
    leaves: losses and gradients on the way are private.
    """

    def __init__(
        self,
        step: Step,
        *,
        rows: Rows,
        delta: float,
        source: str,
        charge: Charge | None,
        store: CheckpointStore,
    ) -> None:
        self._step, self.plan, self.model, self.optimizer = step, step.plan, step.model, step.optimizer
        self.unit, self.event, self.sampler, self.source = store.terms.unit, store.terms.event, store.sampler, source
        self._rows, self._charge, self._store, self._rng = rows, charge, store, step.rng
        self.world, self.performance, self.delta = step.world, step.performance, delta
        self._progress = _Progress()
        self._loop: ReferenceType[Generator[Any, None, None]] | None = None
        guard(self.optimizer, step)
        self._average = copy.deepcopy(self.model) if self.plan.average else None

    @property
    def steps(self) -> int:
        """Number of steps started."""
        return self._progress.steps

    @property
    def total(self) -> int:
        """Number of steps of the plan."""
        return self.sampler.steps_of()

    @property
    def clip(self) -> float:
        """The clip of the current step. It changes only under adaptive clipping, and the guarantee covers it."""
        return self._step.clip

    @property
    def clipped(self) -> float | None:
        """Share of the last step's units whose gradients were clipped, in this process; None if it had no units.

        This is private and not covered by the guarantee: do not share it, or release it through a mechanism.
        """
        return self._step.shortened / self._step.seen if self._step.seen else None

    @property
    def ignored(self) -> float | None:
        """Share of the last step's units whose gradients were NaN or infinite, and were replaced by zero.

        Like `clipped`, this is private and not covered by the guarantee. Where it is 1, a `PrivateWarning` is issued.
        """
        return self._step.ignored / self._step.seen if self._step.seen else None

    @property
    def rehearsing(self) -> bool:
        """Whether the current batch is part of a rehearsal: its rows come again, and it has no effect on the model."""
        return self._progress.rehearsal is not None and self._progress.rehearsal.waits

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise, divided by the clip, as planned or calibrated."""
        return self.plan.noise_multiplier or 0.0

    @property
    def groups(self) -> Tensor | None:
        """Index of each row's user among the users of the current batch; None where rows are units."""
        rehearsal = self._progress.rehearsal
        micro = self._progress.open if rehearsal is None or not rehearsal.waits else rehearsal.micro
        return None if micro is None or micro.groups is None else torch.from_numpy(micro.groups)

    def batches(self) -> Iterator[Any]:
        """Return an iterator over the batches of all remaining steps; call `step` once for each of them.

        Batches are drawn as the accountant assumes, so their sizes vary. An empty batch comes as a single row of zeros
        that has no effect, so that the loop needs no special case. With micro-batches a step takes several iterations;
        `step` says when one is complete. The first, second, fourth, … batch comes in two pieces, and the model is
        examined on the small one. Before that, some of its rows come a few times, permuted and in smaller numbers, to
        check that each loss depends on its own row alone (`rehearsing` is true then). A run has one such iterator, and
        a second call continues it. If an error ended the loop before `step` was called for a batch, that batch comes
        again.
        """
        loop = None if self._loop is None else self._loop()
        if loop is not None and self._progress.open is not None:
            loop.close()
            loop = None
        if loop is None:
            loop = self._rounds()
            self._loop = ref(loop)  # or the run would hold itself
        return loop

    def _rounds(self) -> Generator[Any, None, None]:
        try:
            yield from self._pieces()
        finally:
            self._loop = None

    def _pieces(self) -> Iterator[Any]:
        progress = self._progress
        while True:
            self._ask("a batch")
            if self._step.torn:
                # Its sum cannot be used, and its privacy cost stays spent.
                progress.open, progress.left, progress.rehearse = None, iter(()), None
            progress.open = progress.open or next(progress.left, None)
            if progress.open is None:
                if self._next():
                    continue
                return
            if progress.rehearse is not None:
                trial = self._trial(progress.rehearse)
                if trial is not None:
                    yield trial[0]
                    if self.rehearsing:
                        raise RunError(_WAITS)
                    continue
            indices = progress.open.indices
            with self.world.together():
                if self._step.due:
                    self._rows.check(indices)
                batch = self._rows.batch(indices) if len(indices) else self._rows.placeholder()
            self._step.watch()
            try:
                yield batch
            finally:
                self._step.calls.close()
            if progress.open is not None and not self._step.torn:
                raise RunError(_WAITS)

    def _trial(self, micro: Micro) -> tuple[Any] | None:
        """Return the batch of the rehearsal's next pass; None once it is over. An error in a pass restarts it."""
        progress = self._progress
        with self.world.together():
            if progress.rehearsal is None or progress.rehearsal.waits:
                self._stop_rehearsal()
                self._rows.check(micro.indices)
                progress.rehearsal = Rehearsal(self.model, micro)
            try:
                trial = progress.rehearsal.begin(self._rows.batch)
            except InvalidInput as refusal:
                trial, progress.refusal = None, refusal
        self._warn_of_passes(progress.rehearsal)
        if trial is None:
            self._stop_rehearsal()
            progress.rehearse = None
        return trial

    def _warn_of_passes(self, rehearsal: Rehearsal) -> None:
        """Warn once if the loop counts rehearsal passes as steps, and once if its passes are not repeatable."""
        rehearsal.rates.append([group.get("lr") for group in self.optimizer.param_groups])
        # Before the first pass the rate may still be that of the last step; then it is this step's, in all passes.
        if any(rates != rehearsal.rates[1] for rates in rehearsal.rates[2:]):
            self._step.warn_once("rates", warn_of_rates)
        if rehearsal.unrepeatable:
            self._step.warn_once("unrepeatable", warn_of_unrepeatable)

    def _stop_rehearsal(self) -> None:
        if self._progress.rehearsal is not None:
            self._progress.rehearsal.close()
            self._progress.rehearsal = None

    def _next(self) -> bool:
        """Start the next step and split its batch into micro-batches; return False if no step is left."""
        turn = self.world.turn(self._take, self._step.parameters, self.clip)
        if turn is None:
            return False
        self._progress.steps = turn.number + 1
        with self.world.together():
            self._step.begin()
        progress = self._progress
        due, most = self._step.due or progress.refusal is not None, self._step.most_rows
        progress.refusal = None
        progress.left = split(turn.drawn, most, survey=due)
        few = min(REHEARSED, most or REHEARSED)
        progress.rehearse = next(split(turn.drawn, few, survey=False)) if due else None
        return True

    def step(self, losses: Tensor, groups: Tensor | None = None) -> bool:
        """Clip, sum, add noise once, divide by a public number, let the optimizer step, and count.

        Args:
            losses: One loss for each row of the batch, each computed from its own row.
            groups: The index in the batch of the unit that each loss belongs to, where there is not exactly one loss
                for each row (several augmented copies of a row, for example). A unit's losses are averaged before its
                gradient is clipped.

        Returns:
            Whether the step is complete. With micro-batches, only the call for the last one completes it.

        Raises:
            RunError: The run has ended, no batch waits for a step, or an error interrupted this step before.
            InvalidInput: The losses cannot be used, or depend on other rows of the batch.
        """
        self._ask("a step")
        micro, rehearsal = self._progress.open, self._progress.rehearsal
        if rehearsal is not None and rehearsal.waits:
            with self.world.together():
                self._step.require_losses(losses, rehearsal.micro, groups)
                rehearsal.take(losses)
            return False
        if micro is None or rehearsal is not None:
            raise RunError("there is no batch to step on; take one from run.batches(), and step on it once")
        if self._step.torn:
            problem = "the step broke off while gradients were added up, so that some of them would count twice"
            raise RunError(f"{problem}; go on with the next batch of run.batches(): this step is lost, and stays paid")
        try:
            # Norms, sums and noise are in float32 at least, whatever the model computes in.
            with torch.autocast(self._step.parameters[0].device.type, enabled=False), self.world.together():
                self._step.add(losses, micro, groups)
                if micro.last and self._progress.refusal is not None:
                    raise self._progress.refusal
                self._progress.open, self._step.torn = None, False
                if not micro.last:
                    return False
                self._draw()
                self._step.finish()
                self._progress.finished = True
                self._follow()
        finally:
            self._step.calls.close()
        return True

    def guarantee(self, delta: float | None = None) -> Guarantee:
        """Return the guarantee of the whole plan, which is that of the release, however early the run is stopped.

        The decision to stop may depend on what was observed during training; only the plan was fixed before.

        Args:
            delta: δ at which ε is stated; by default that of the run.
        """
        found = price(self.event, delta if delta is not None else self.delta, unit=self.unit)
        if self.plan.noise is not Noise.LATTICE:
            on_device = any(each.device.type != "cpu" for each in self._step.parameters)
            return replace(found, assumptions=(*found.assumptions, STRENGTH)) if on_device else found
        others = tuple(each for each in found.assumptions if each != CONTINUOUS_NOISE)
        return replace(found, assumptions=(*others, ASSUMPTION))

    def release(self, delta: float | None = None) -> Release[nn.Module]:
        """Release the trained model, or the running average of its weights where the plan has one, and end the run.

        An incomplete step has no effect on the model, but its privacy cost stays spent.

        Args:
            delta: δ at which the release states its ε; by default that of the run.

        Raises:
            RunError: The run has ended, or no step was completed.

        Guarantee: that of the plan's event for its unit (see `Run`); `release.guarantee` at the given δ.
        """
        self._ask("the release")
        guarantee = self.guarantee(delta)
        if not self._progress.finished:
            raise RunError("no step was completed, so that there is nothing to release")
        if self._charge is not None:
            self._charge.commit()
        self._progress.released = True
        self._stop_rehearsal()
        unguard(self.optimizer)
        self._store.close(self.steps, released=True)
        value = self.model if self._average is None else self._average
        return Release.of(
            value,
            self.event,
            unit=self.unit,
            source=self.source,
            randomness=self._rng.kind,
            guarantee=guarantee,
        )

    def selftest(self, loss: Callable[[Any], Tensor] | None = None) -> SelfTest:
        """Check on the objects of this run that noise, clip and parameters match the plan, and return the checks.

        Args:
            loss: Function from a batch to its per-example losses, as in the loop. With it, the gradients of three rows
                are also checked against autograd, with the model in eval mode, since dropout differs between calls.

        Raises:
            RunError: A check failed, the run has ended, or a batch waits for its step.
        """
        self._ask("a self-test")
        if self._progress.open is not None and (self._progress.rehearsal is None or self.rehearsing):
            raise RunError("a batch waits for its step; go on with run.batches(), and ask for a self-test after a step")
        found = selftest(self._step, loss, self._rows.batch, len(self._rows))
        if not found.passed:
            raise RunError(f"the self-test failed; nothing was released\n{found}")
        return found

    def close(self) -> None:
        """End the run without a release; a saved run may be resumed. The charge is refunded if no noise was drawn."""
        if not self._progress.released:
            if self._charge is not None and not self._progress.drawing:
                self._charge.abort()
            self._store.close(self.steps)
        self._step.calls.close()
        self._stop_rehearsal()
        unguard(self.optimizer)
        self._progress.released = True

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint for `DPSGD.attach(…, resume=…)`: model, optimizer, sampler and the steps that are spent.

        The file is replaced atomically. A journal is kept next to the first checkpoint (`path` plus ".journal", unless
        `attach` has another path): each step is recorded in it before it starts, and every checkpoint needs it. A step
        in progress counts as started. The file holds the token with which the charge is resumed: show it only to those
        who may see the ledger. Of several processes, only the first writes.

        Args:
            path: The checkpoint file, in a directory that exists.

        Raises:
            RunError: The run has ended.
            InvalidInput: The directory does not exist, or the state holds values that cannot be stored.
        """
        if self._progress.released:
            raise RunError("the run has ended, so that it cannot be saved; save the released model itself")
        if not self.world.leads:
            return  # process 0 has the sampler's state, the journal and the charge, and the same weights
        self._store.save(
            path,
            model=self.model,
            optimizer=self.optimizer,
            average=self._average,
            clip=self.clip,
            steps=self.steps,
            charge=self._charge,
        )

    def restore(self, saved: Checkpoint, steps: int, *, drawing: bool) -> None:
        """Load the state of a checkpoint into a run before its first step; `DPSGD.attach(…, resume=…)` calls this.

        Args:
            saved: The checkpoint.
            steps: Number of the plan's steps that are spent, according to the journal.
            drawing: Whether the ledger has recorded that noise may have been drawn.

        Raises:
            RunError: The run has started.
        """
        if self._progress.steps:
            raise RunError(
                "the run has begun, so that no checkpoint can be loaded into it; use plan.attach(…, resume=path)"
            )
        saved.restore(self.model, self.optimizer, self._average)
        self._step.clip, self._progress.steps, self._progress.drawing = saved.clip, steps, drawing
        self._progress.finished = steps > 0

    def _ask(self, what: str) -> None:
        if self._progress.released:
            raise RunError(f"the run has ended, so {what} cannot be had; attach a new run, which costs anew")

    def _take(self) -> Turn | None:
        """Draw the next batch from the whole data set, and count its step. Only one of several processes does this."""
        number = self.sampler.next_step(self._progress.steps)
        if number >= self.total:
            return None
        drawn = self.sampler.draw(number, self._rng)
        self._begin(number)
        return Turn(number, drawn)

    def _begin(self, number: int) -> None:
        """Count a step before any of its output can be observed."""
        self._store.begin(number)
        self._progress.steps = number + 1

    def _draw(self) -> None:
        """Record in the ledger, before the weights first change, that noise may be observed from now on."""
        if self._charge is not None and not self._progress.drawing:
            self._charge.draw()
            self._progress.drawing = True

    @torch.no_grad()
    def _follow(self) -> None:
        """Update the running average of the weights; buffers are copied."""
        if self._average is None:
            return
        decay = min(self.plan.average, self.steps / (self.steps + _CLOSELY))
        for slow, fast in zip(self._average.parameters(), self.model.parameters(), strict=True):
            slow.lerp_(fast, 1.0 - decay)
        for copied, buffer in zip(self._average.buffers(), self.model.buffers(), strict=True):
            copied.copy_(buffer)
