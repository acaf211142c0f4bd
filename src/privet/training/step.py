"""One step: per-example gradients, clipped and summed; noise once; the division; the optimizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from privet.core import InvalidInput
from privet.core.random import Rng
from privet.training import device_noise
from privet.training.accumulate import GradientSum
from privet.training.clipping import Adaptive
from privet.training.coupling import check_forward
from privet.training.distributed import World
from privet.training.engine.backward import Engine
from privet.training.engine.calls import Call, Calls
from privet.training.engine.contributions import Contribution, Dense, numbers
from privet.training.engine.groups import Groups
from privet.training.engine.squares import Squares
from privet.training.grid import Grid
from privet.training.micro import Micro, RowInputs
from privet.training.noise import Noise, fill
from privet.training.notices import warn_of_eval_mode, warn_of_no_gradient
from privet.training.performance import Performance
from privet.training.rules import OperationRule
from privet.training.state import Attributes, Weights, buffer_names
from privet.training.tail import Tail

if TYPE_CHECKING:
    from privet.training.plan import DPSGD

__all__ = ["Step"]

_KEPT = 3 << 24
"""Numbers that are kept of a micro-batch until it is clipped, where its size is chosen here: 200 MB."""
_DENSE = 1 << 24
"""The same where every example's gradient is written out in float64."""
_FEWEST = 40
"""Smaller micro-batches than this cost more than they save."""


class Step:
    """The mechanism of a run: what happens between a batch and the optimizer.

    Σ_i clip(gradient_i) + N(0, (noise_multiplier · clip)²), divided by `batch_size`, which is public. The noise is
    written into the buffer first and the micro-batches' sums are added to it, so it is drawn once a step.
    """

    def __init__(
        self,
        plan: DPSGD,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        rules: Mapping[str, OperationRule],
        performance: Performance,
        rng: Rng,
        world: World | None = None,
    ) -> None:
        held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        # A shared parameter has several names and is one parameter.
        named = {id(parameter): (name, parameter) for name, parameter in reversed(list(model.named_parameters()))}
        chosen = [pair for key, pair in reversed(named.items()) if key in held and pair[1].requires_grad]
        self.plan, self.optimizer, self.clip = plan, optimizer, plan.clip
        self.model = model
        self._weights: Weights | None = None
        self._attributes: Attributes | None = None
        self._inputs: RowInputs = {}
        self._tail: Tail | None = None
        self._allowed: set[str] = set()
        self._written: set[str] = set()
        self.rng, self.performance, self.world = rng, performance, world or World()
        self.names, self.parameters = [name for name, _ in chosen], [parameter for _, parameter in chosen]
        owners = [name.rpartition(".")[0] for name in self.names]
        self._layers = [sorted(set(owners)).index(owner) for owner in owners]
        self.engine = Engine(self.parameters, self.names, rules)
        self.calls = Calls.of(model, self.parameters)
        self.grid = Grid.of(plan, sum(p.numel() for p in self.parameters)) if plan.noise is Noise.LATTICE else None
        self.sum = GradientSum(self.parameters, wide=self.grid is not None)
        self._within, self._per_row, self._units = 0.0, 0.0, 0
        self.seen, self.shortened, self.ignored = 0, 0, 0
        self._warned: set[str] = set()
        self.stepping = False
        self.torn = False
        """Whether the sum holds some of a piece's gradients, or all of them, while the piece still counts as waiting.

        Set before the sum changes and taken back by the run. Whatever breaks off in between, Ctrl-C too, leaves it set,
        and no unit is added twice."""

    @property
    def most_rows(self) -> int | None:
        """How many rows go through the model at once; None is all."""
        if self.performance.micro_batch != "auto":
            return self.performance.micro_batch if isinstance(self.performance.micro_batch, int) else None
        if self.grid is not None:
            return max(1, _DENSE // self.grid.dimension)
        return max(_FEWEST, int(_KEPT // self._per_row)) if self._per_row else None

    @property
    def due(self) -> bool:
        """Whether the model is examined in this step: by a small piece of the batch, which comes first."""
        return self.engine.due

    def begin(self) -> None:
        """Fresh noise, before any of the data; of several processes one draws it, and it is among what they add up."""
        for parameter in self.parameters:
            parameter.grad = None  # the last step's, which shares our memory: a loop may clear it or add to it
        std = (self.plan.noise_multiplier or 0.0) * self.clip / (self.plan.batch_size or 1)
        if self.world.leads and self.grid is None:
            (fill if self.sum.flat.device.type == "cpu" else device_noise.fill)(self.sum.flat, std, self.rng)
        else:
            self.sum.flat.zero_()
        self._within, self._units = 0.0, 0
        self.seen, self.shortened, self.ignored, self.torn = 0, 0, 0, False
        self.engine.round += 1
        self._attributes, self._written, self._tail = None, set(), None

    def add(self, losses: Tensor, micro: Micro, groups: Tensor | None) -> None:
        """Add one micro-batch's clipped gradients."""
        belongs = self.require_losses(losses, micro, groups)
        self._same_parameters()
        if not len(micro.indices):
            return  # a row of zeros stood in for an empty batch
        self.warn_once("mode", lambda: warn_of_eval_mode(self.model))
        weights = None if belongs is None else belongs.weights()
        calls = self.calls.found
        self.calls.close()
        self._examine(calls, losses, last=micro.last)
        try:
            parts = self.engine.gradients(losses, weights, calls)
        except RuntimeError as problem:
            if "a second time" not in str(problem):
                raise
            advice = "leave out loss.backward(), and give each batch's losses to one run.step(losses)"
            raise InvalidInput("losses", "have been used for a backward pass before", advice) from None
        self._require_unchanged()  # not in the backward pass either
        self._weights = None
        if self.due and not self.engine.reached:
            advice = "compute them with the model that was attached, not with a copy of it"
            raise InvalidInput("losses", "depend on no parameter that is trained", advice)
        self._per_row = self._per_row or sum(numbers(part) for part in parts if part is not None) / len(losses)
        with torch.no_grad():
            if belongs is not None:
                parts = [None if part is None else part.regroup(belongs) for part in parts]
            self.add_clipped(parts)

    def warn_once(self, what: str, warn: Callable[[], None]) -> None:
        """Warn, unless this run has done so already."""
        if what not in self._warned:
            self._warned.add(what)
            warn()

    def watch(self) -> None:
        """From here to the next `add`, note what the model's modules do, and all of their calls where it is due."""
        self.calls.examining = self.due
        self._weights = Weights.of(self.model, copies=self.due)
        if self.due and self._attributes is None:
            self._attributes = Attributes.of(self.model)
        self.calls.open()

    def _examine(self, calls: list[Call], losses: Tensor, *, last: bool) -> None:
        """What the forward pass shows: weights that took in data, and outputs that depend on other rows.

        The first and smaller of two pieces only shows which inputs have rows: a number that is that of the rows in both
        is no accident.
        """
        outermost = [call for call in calls if call.outermost]
        if self._attributes is not None:
            tail = Tail.of(losses, {node for call in outermost for node in call.edges_nodes()})
            tail.require_unscaled()
            if self._tail is not None:
                tail.require_like(self._tail)
            self._tail = tail
            check_forward(self.model, outermost, len(losses), self._attributes, self._inputs, judge=last)
            if self._weights is not None and outermost:
                self._written |= set(self._weights.changed(self.model)) & buffer_names(self.model)
            if last:
                # A buffer that is the same whatever the rows are may be written: a counter, a table made when needed.
                self._allowed |= self._written
        self._require_unchanged()

    def _require_unchanged(self) -> None:
        if self._weights is not None:
            self._weights.require_unchanged(self.model, self._allowed | self._written)

    def finish(self) -> None:
        """Hand the noisy mean, over all processes, to the optimizer."""
        clipping, noise = self.plan.clipping, 0.0
        if isinstance(clipping, Adaptive) and self.world.leads:
            noise = float(self.rng.normal(1)[0]) * clipping.count_noise
        within = self.total(self._within + noise)
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = None  # a frozen parameter's old gradient is no release
        for parameter, view in zip(self.parameters, self.sum.views, strict=True):
            parameter.grad = view if view.dtype == parameter.dtype else view.to(parameter.dtype)
        self.stepping = True
        try:
            self.optimizer.step()
        finally:
            self.stepping = False
        if isinstance(clipping, Adaptive):
            self.clip = clipping.next_clip(self.clip, within, self.plan.batch_size or 1)

    def total(self, count: float) -> float:
        """Add up the sums of all processes, with the noise, over the batch size; returns the count over all of them."""
        found = self.world.total(self.sum.flat, count)
        if self.grid is not None:
            self.sum.flat.copy_(self.grid.noisy(self.sum.flat.cpu(), self.rng)).div_(self.plan.batch_size or 1)
        return found

    def add_clipped(self, parts: list[Contribution | None]) -> None:
        """Clip each unit's gradient and add it to the sum; one that holds NaN or infinity adds nothing."""
        if self.grid is not None:
            if self._units + _units_of(parts) > self.grid.most:
                raise InvalidInput(
                    "batch_size", "is far below what the batches have", "give a population that is right"
                )
            parts = [None if part is None else Dense(part.dense().double()) for part in parts]
        squares = [None if part is None else part.squares() for part in parts]
        bad = _not_finite(squares)
        if bad is not None:
            if len(bad) > 1 and bool(bad.all()):
                self.warn_once("gradient", warn_of_no_gradient)
            # NaN · 0 is NaN: the rows themselves must be zeros before anything is multiplied.
            parts = [None if part is None else part.blank(bad) for part in parts]
            squares = [None if part is None else part.squares() for part in parts]
        factors = self.plan.clipping.factors(squares, self.clip, self._layers)
        share = 1.0 / (self.plan.batch_size or 1) if self.grid is None else 1.0
        self.torn = True
        self.ignored += 0 if bad is None else int(bad.sum())
        self._units += len(factors.unclipped)
        scaled = {id(each): each * share for each in factors.by_parameter if each is not None}
        self.sum.add(parts, [None if each is None else scaled[id(each)] for each in factors.by_parameter])
        seen, within = len(factors.unclipped), float(factors.unclipped.sum())
        self._within += within - seen / 2
        self.seen, self.shortened = self.seen + seen, self.shortened + seen - round(within)

    def require_losses(self, losses: Tensor, micro: Micro, groups: Tensor | None) -> Groups | None:
        """Which unit each loss belongs to; refuses losses that cannot be one for each row."""
        if not isinstance(losses, Tensor) or losses.dim() != 1:
            shape = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
            advice = "use reduction='none'; for a loss per token or pixel, average over each example's own first"
            raise InvalidInput("losses", f"has shape {shape}, and one loss is needed for each example", advice)
        if not len(micro.indices):
            return None
        if groups is None and len(losses) != micro.rows:
            problem = f"has {len(losses)} entries for a batch of {micro.rows} rows"
            advice = "give one for each row; for several a row, say in groups= to which unit each belongs"
            raise InvalidInput("losses", problem, advice)
        if not losses.requires_grad:
            raise InvalidInput("losses", "carries no gradient", "compute it with gradients on, and do not detach it")
        if groups is None and micro.groups is None:
            return None
        units = torch.arange(micro.rows) if micro.groups is None else torch.from_numpy(micro.groups)
        units = units.to(losses.device)
        if groups is None:
            return Groups.of(units, len(losses), micro.units)
        given = Groups.of(groups, len(losses), micro.units)
        copies, left = divmod(len(losses), micro.rows)
        sizes = torch.bincount(units, minlength=micro.units) * copies
        fits = not left and torch.equal(torch.bincount(given.of_row, minlength=micro.units), sizes)
        # Whose row a loss is of can be told only from its place; one order is less easily mistaken than two.
        fits = fits and torch.equal(given.of_row, units.repeat_interleave(copies))
        if not fits:
            problem = "does not give every row of the batch the same number of losses, all in the row's own unit"
            advice = (
                "for k copies of each row: torch.arange(rows).repeat_interleave(k); for users, run.groups, so repeated"
            )
            raise InvalidInput("groups", problem, advice)
        return given

    def _same_parameters(self) -> None:
        """What the optimizer would change is what was clipped, also if something was frozen or thawed meanwhile."""
        ours = {id(parameter) for parameter in self.parameters}
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.requires_grad != (id(parameter) in ours):
                    state = "thawed" if parameter.requires_grad else "frozen"
                    problem = f"has a parameter that was {state}, or added, after the run was attached"
                    raise InvalidInput("optimizer", problem, "undo that, or release this run and attach a new one")


def _units_of(parts: list[Contribution | None]) -> int:
    """How many units these gradients are of."""
    known = [part for part in parts if part is not None]
    return len(known[0].squares().value) if known else 0


def _not_finite(squares: list[Squares | None]) -> Tensor | None:
    """The examples whose gradients hold NaN or infinity, if there are any."""
    known = [each.value for each in squares if each is not None]
    if not known:
        return None
    together = torch.stack(known)
    if isfinite(float(together.sum())):  # what holds NaN or infinity has no finite sum
        return None
    bad = ~together.isfinite().all(0)
    return bad if bool(bad.any()) else None
