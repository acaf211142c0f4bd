"""What a plan would do with a model, layer by layer: which rule, how norms are had, what it keeps and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from privet.core import InvalidInput, NotProven
from privet.core.random import default_rng
from privet.training import validate
from privet.training.cost import Cost, TimedRules, measure_cost
from privet.training.coupling import untouched
from privet.training.data import Rows
from privet.training.engine.contributions import Contribution, Dense, numbers
from privet.training.micro import Micro
from privet.training.noise import Noise
from privet.training.performance import Performance
from privet.training.rehearsal import rehearse
from privet.training.rules import OperationRule, checked_rules
from privet.training.rules.channels_last import ChannelsLast
from privet.training.rules.convolution import ConvolutionFactors
from privet.training.rules.tuning import way
from privet.training.step import Step
from privet.training.synthetic_rows import BatchMaker, guesses, like, losses_on

if TYPE_CHECKING:
    from privet.training.plan import DPSGD

__all__ = ["Explanation", "Layer", "Norms", "Share", "explain"]

_FIRST = 29
"""Rows of the pass that examines: a prime, for the reason that `privet.training.micro` has, and enough to choose by."""
_TIMED = 64
"""Rows of the passes that are timed, at most."""
_CANNOT = (RuntimeError, ValueError, IndexError, TypeError, AttributeError, KeyError, AssertionError)
"""What a model raises when it is given a shape that it does not take."""


class Norms(Enum):
    """How a parameter's per-example norms are had."""

    GHOST = "ghost"
    """From the factors of the gradient, which is never written out."""
    INSTANTIATED = "instantiated"
    """From the examples' gradients, written out, where they are small or it is quicker."""
    IN_PIECES = "in pieces"
    """From the examples' gradients, written out for a few examples at a time and not kept."""
    UNUSED = "unused"
    """The losses do not depend on it: it gets noise and nothing else."""


@dataclass(frozen=True)
class Share:
    """One parameter of a layer."""

    name: str
    rules: tuple[str, ...]
    """The rules for the operations that it meets data in; "torch.func" where its module is called again instead."""
    norms: Norms
    bytes_per_row: int
    """What is kept of one example until the clipping factors are known."""
    also: tuple[str, ...] = ()
    """Other names of the same parameter."""


@dataclass(frozen=True)
class Layer:
    """One module with trained parameters of its own."""

    name: str
    kind: str
    parameters: int
    """How many numbers are trained in it."""
    shares: tuple[Share, ...] = ()
    cost: float | None = None
    """Time of our backward pass in this layer over that of the ordinary one, without noise and optimizer."""

    @property
    def bytes_per_row(self) -> int:
        """What is kept of one example until the clipping factors are known."""
        return sum(share.bytes_per_row for share in self.shares)


@dataclass(frozen=True)
class Explanation:
    """What `DPSGD.explain` found. It knows shapes and clock times, and nothing of any row."""

    layers: tuple[Layer, ...]
    refusals: tuple[str, ...]
    """Why a run would not start or go on; empty if it would."""
    notes: tuple[str, ...]
    source: str
    """Where the shapes came from."""
    frozen: int
    """How many numbers of the model are not trained."""
    batch_size: int
    rows: int = 0
    """How many made-up rows the model was timed on; 0 if it was not run."""
    micro_batch: int | None = None
    """How many rows would go through the model at once; None is the whole batch."""
    cost: float | None = None
    """Time of our whole backward pass over that of the ordinary one, without noise and optimizer."""

    @property
    def bytes_per_row(self) -> int:
        """What is kept of one example until the clipping factors are known."""
        return sum(layer.bytes_per_row for layer in self.layers)

    @property
    def parameters(self) -> int:
        """How many numbers are trained; each gets noise once a step."""
        return sum(layer.parameters for layer in self.layers)

    def __str__(self) -> str:
        lines = _table(
            [("layer", "kind", "parameters", "rule", "norms", "kept a row", "  cost"), *map(_cells, self.layers)]
        )
        lines.append(f"total: {self.parameters:,} trained, {self.frozen:,} frozen; {_size(self.bytes_per_row)} a row")
        if self.cost is not None:
            lines.append(
                f"backward pass {self.cost:.2f} times the ordinary one, measured on {self.rows} made-up rows; "
                f"and {self.parameters:,} normals a step"
            )
            most = self.micro_batch or self.batch_size
            pieces = ceil(self.batch_size / most)
            words = "the whole batch at once" if pieces == 1 else f"a batch comes in about {pieces} pieces"
            lines.append(f"micro-batch: {min(most, self.batch_size):,} of {self.batch_size:,} rows ({words})")
        lines.append(f"shapes: {self.source}; values of rows are not used")
        lines += [f"note: {each}" for each in self.notes]
        lines += [f"refused: {each}" for each in self.refusals] or ["refused: nothing"]
        return "\n".join(lines)


def explain(
    plan: DPSGD,
    model: nn.Module,
    dataset: Any = None,
    *,
    loss: Callable[[Any], Tensor] | None = None,
    collate_fn: Any = None,
    performance: Performance | None = None,
    rules: Mapping[str, OperationRule] | None = None,
) -> Explanation:
    """What `DPSGD.explain` does."""
    findings = validate.check(model)
    refused = [each for each in findings if each.kind is validate.Severity.REFUSAL]
    plain = Explanation(
        layers=tuple(_bare(model)),
        refusals=tuple(validate.listing(refused).removeprefix("- ").split("\n- ")) if refused else (),
        notes=tuple(str(each) for each in findings if each.kind is validate.Severity.NOTE),
        source="not looked at" if refused else "unknown",
        frozen=sum(each.numel() for each in model.parameters() if not each.requires_grad),
        batch_size=plan.batch_size or 1,
    )
    if refused:
        return plain
    look = _Look(plan, model, loss, performance or Performance(), checked_rules(rules), plain)
    if dataset is not None:
        rows = Rows.of(dataset, collate_fn=collate_fn)
        if weak := validate.large_delta(plan.delta, plan.public(len(rows))):
            look = replace(look, plain=replace(plain, notes=(*plain.notes, weak)))
        made = like(rows.placeholder())
        try:
            return look(made, "of the data set's first row")
        except _CANNOT as error:
            if loss is not None:
                raise
            problem = f"is needed: the model cannot simply be called on a batch of these rows ({type(error).__name__})"
            advice = "give loss=, from a batch to its losses, as in your loop; or collate_fn=, if rows are no tensors"
            raise InvalidInput("loss", problem, advice) from error
    found: Explanation | None = None
    for shape, made in guesses(model):
        try:
            tried = look(made, f"a row of {shape}, guessed from the first layer; give your data set for its own")
        except _CANNOT:
            continue
        found = found if found is not None and tried.refusals else tried
        if not found.refusals:
            break
    advice = "the model's input cannot be guessed; give your data set, of which only shapes are used"
    return found or replace(plain, notes=(*plain.notes, advice))


@dataclass(frozen=True)
class _Look:
    """A model on made-up rows."""

    plan: DPSGD
    model: nn.Module
    loss: Callable[[Any], Tensor] | None
    performance: Performance
    rules: Mapping[str, OperationRule]
    plain: Explanation

    def __call__(self, made: BatchMaker, source: str) -> Explanation:
        found, noted = replace(self.plain, source=source), TimedRules()
        with untouched(self.model):
            try:
                step = self._step(noted)
                self._examined(step, made)
                rows = min(step.most_rows or _TIMED, self.plan.batch_size or 1, _TIMED)
                cost = measure_cost(step, noted, lambda: self._losses(made(max(2, rows))))
            except (InvalidInput, NotProven) as error:
                return replace(found, refusals=(str(error),))
        layers = tuple(_explained(found.layers, step, noted, cost, self.plan.noise is Noise.LATTICE, self.model))
        return replace(found, layers=layers, rows=max(2, rows), micro_batch=step.most_rows, cost=cost.total)

    def _step(self, noted: TimedRules) -> Step:
        """A step that is never begun, so that it draws nothing, and never finished, so that it changes nothing."""
        optimizer = torch.optim.SGD([each for each in self.model.parameters() if each.requires_grad], lr=0.0)
        plan = (
            self.plan
            if self.plan.noise_multiplier is not None
            else replace(self.plan, noise_multiplier=1.0, epsilon=None)
        )
        return Step(plan, self.model, optimizer, noted.rules(self.rules), self.performance, default_rng())

    def _examined(self, step: Step, made: BatchMaker) -> None:
        """All that the first piece of a run is looked at for."""
        step.watch()
        try:
            losses = self._losses(made(_FIRST))
            step.add(losses, Micro(np.arange(_FIRST), None, _FIRST, last=True), None)
        finally:
            step.calls.close()
        if self.loss is None:
            return
        batch = made(_FIRST)

        def read(places: Any) -> Any:
            rows = torch.as_tensor(places)
            return tree_map(
                lambda leaf: leaf[rows] if isinstance(leaf, Tensor) and leaf.shape[:1] == (_FIRST,) else leaf, batch
            )

        if refusal := rehearse(self.model, self.loss, read, _FIRST):
            raise refusal

    def _losses(self, batch: Any) -> Tensor:
        return losses_on(self.model, batch) if self.loss is None else self.loss(batch)


def _bare(model: nn.Module) -> Iterator[Layer]:
    """The layers, before anything is run."""
    counts: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and not nn.parameter.is_lazy(parameter):
            owner = name.rpartition(".")[0]
            counts[owner] = counts.get(owner, 0) + parameter.numel()
    for owner, count in counts.items():
        yield Layer(owner, type(model.get_submodule(owner)).__name__, count)


def _explained(
    layers: tuple[Layer, ...], step: Step, noted: TimedRules, cost: Cost, lattice: bool, model: nn.Module
) -> Iterator[Layer]:
    aliases: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        aliases.setdefault(id(parameter), []).append(name)
    again = sum(
        part is not None and id(each) not in noted.used for each, part in zip(step.parameters, cost.parts, strict=True)
    )
    for layer in layers:
        shares, ours, plain = [], 0.0, 0.0
        for name, parameter, part in zip(step.names, step.parameters, cost.parts, strict=True):
            if name.rpartition(".")[0] != layer.name:
                continue
            own = cost.by_parameter.get(id(parameter), (0.0, 0.0))
            rules = tuple(noted.used.get(id(parameter), ())) or (("torch.func",) if part is not None else ())
            ours, plain = ours + own[0] + (cost.rest / again if rules == ("torch.func",) else 0.0), plain + own[1]
            size = 0 if part is None else numbers(part) * step.sum.flat.itemsize // _rows_of(part)
            size = parameter.numel() * 8 if lattice and part is not None else size
            norms = Norms.INSTANTIATED if lattice and part is not None else _norms(part)
            also = tuple(each for each in aliases[id(parameter)] if each != name)
            shares.append(Share(name.rpartition(".")[2], rules, norms, size, also))
        yield replace(layer, shares=tuple(shares), cost=ours / plain if plain else None)


def _rows_of(part: Contribution) -> int:
    return max(1, len(part.squares().value))


def _norms(part: Contribution | None) -> Norms:
    if part is None:
        return Norms.UNUSED
    if isinstance(part, Dense | ChannelsLast):
        return Norms.INSTANTIATED
    if isinstance(part, ConvolutionFactors) and not way(part.geometry, part.inputs, part.gradient).by_places:
        return Norms.IN_PIECES
    return Norms.GHOST


def _cells(layer: Layer) -> tuple[str, ...]:
    used = dict.fromkeys(rule for share in layer.shares for rule in share.rules)
    also = [name for share in layer.shares for name in share.also]
    return (
        (layer.name or "(the model)") + (f" = {', '.join(also)}" if also else ""),
        layer.kind,
        f"{layer.parameters:,}",
        ", ".join(used) or "-",
        ", ".join(_words(layer.shares)) or "-",
        _size(layer.bytes_per_row) if layer.shares else "-",
        "-" if layer.cost is None else f"{layer.cost:.1f}×",
    )


def _words(shares: tuple[Share, ...]) -> Iterator[str]:
    """How norms are had: of the parameter that keeps most, and of those for which it is otherwise."""
    main = max(shares, key=lambda share: share.bytes_per_row, default=None)
    if main is not None:
        yield main.norms.value
        yield from (f"{share.name} {share.norms.value}" for share in shares if share.norms is not main.norms)


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = (2, 5, 6)
    return [
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _size(count: int) -> str:
    """Bytes in words.

    >>> _size(412), _size(65_536)
    ('412 B', '66 kB')
    """
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.2g} {unit}" if count < 10 * size else f"{count / size:.0f} {unit}"
    return f"{count} B"
