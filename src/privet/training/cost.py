"""What private gradients cost a layer, by the clock: on made-up rows, beside the ordinary backward pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.autograd.graph import Node

from privet.training.engine.arrival import Arrival
from privet.training.engine.claims import leaves
from privet.training.engine.graph import read
from privet.training.engine.parts import Part
from privet.training.engine.stems import makes_stems
from privet.training.engine.sweep import sweep
from privet.training.rules import Known

if TYPE_CHECKING:
    from privet.training.step import Step

__all__ = ["Cost", "Noted", "measured"]

_PASSES = 4
"""The quickest counts: in the first the engine may still find out where the examples are."""


@dataclass
class Noted:
    """Rules that say when they are used, and how long they take."""

    used: dict[int, dict[str, None]] = field(default_factory=dict)
    """By `id` of a parameter, the names of the rules that it met."""
    seconds: dict[int, float] = field(default_factory=dict)
    """By `id` of a parameter, the time of its rules."""

    def rules(self, rules: Mapping[str, Known]) -> dict[str, Known]:
        """The same rules, noted."""
        return {kind: Known(self._noted(known), known.slots) for kind, known in rules.items()}

    def _noted(self, known: Known) -> Callable[[Arrival], Part]:
        name = getattr(known.rule, "__name__", type(known.rule).__name__)

        def rule(arrival: Arrival) -> Part:
            began = _now()
            part = known.rule(arrival).settle()
            lasted = _now() - began
            stem = arrival.node.next_functions[arrival.slot][0]
            for leaf in leaves(stem) if stem is not None else ():
                self.used.setdefault(id(leaf), {})[name] = None
                self.seconds[id(leaf)] = self.seconds.get(id(leaf), 0.0) + lasted
                lasted = 0.0
            return part

        return rule


@dataclass(frozen=True)
class Cost:
    """Seconds, as multiples of what an ordinary backward pass takes."""

    total: float
    by_parameter: dict[int, tuple[float, float]]
    """By `id`: ours, and the ordinary one. An operation's time stands with the first of its parameters."""
    rest: float
    """Seconds of our pass that no operation explains: modules that are called again, and reading the graph."""
    parts: list[Part | None]


def measured(step: Step, noted: Noted, losses_of: Callable[[], Tensor]) -> Cost:
    """Time an ordinary backward pass and ours, several times; the quickest of each counts."""
    found = [_once(step, noted, losses_of) for _ in range(_PASSES)]
    quickest = min(found, key=lambda each: each.ours)
    both = {
        key: (min(each.own.get(key, 0.0) for each in found), min(each.plain.get(key, 0.0) for each in found))
        for key in {key for each in found for key in (*each.own, *each.plain)}
    }
    total = quickest.ours / max(min(each.ordinary for each in found), 1e-9)
    return Cost(total, both, min(each.rest for each in found), quickest.parts)


@dataclass(frozen=True)
class _Times:
    ordinary: float
    ours: float
    rest: float
    plain: dict[int, float]
    own: dict[int, float]
    parts: list[Part | None]


def _once(step: Step, noted: Noted, losses_of: Callable[[], Tensor]) -> _Times:
    step.watch()
    try:
        losses = losses_of()
        calls = step.calls.found
    finally:
        step.calls.close()
    places = {id(parameter): place for place, parameter in enumerate(step.parameters)}
    graph = read(losses, places, makes_stems, frozenset())
    owners = {node: id(leaves(uses[0].stem.node)[0]) for node, uses in graph.joins.items()}
    ones = torch.ones_like(losses)
    with _clock(owners) as plain:
        began = _now()
        torch.autograd.grad(losses, step.parameters, ones, retain_graph=True, allow_unused=True)
        ordinary = _now() - began
    with _clock(owners) as own:
        began = _now()
        sweep(losses, ones, graph, lambda node, gradients: None, keep=True)
        bare = _now() - began
    noted.seconds.clear()
    began = _now()
    parts = step.engine.gradients(losses, None, calls)
    ours = _now() - began
    rest = ours - bare - sum(noted.seconds.values())
    for key, seconds in noted.seconds.items():
        own[key] = own.get(key, 0.0) + seconds
    for parameter, part in zip(step.parameters, parts, strict=True):
        if part is not None:
            began = _now()
            squares = part.squares().value
            part.add_to(torch.zeros_like(parameter, dtype=squares.dtype), torch.zeros_like(squares))
            lasted = _now() - began
            own[id(parameter)] = own.get(id(parameter), 0.0) + lasted
            ours += lasted
    return _Times(ordinary, ours, rest, plain, own, parts)


@contextmanager
def _clock(owners: Mapping[Node, int]) -> Iterator[dict[int, float]]:
    """How long autograd works on these operations, added up for each owner."""
    spent: dict[int, float] = {}
    began: dict[Node, float] = {}

    def before(node: Node) -> Callable[[object], None]:
        def hook(_: object) -> None:
            began[node] = _now()

        return hook

    def after(node: Node, owner: int) -> Callable[[object, object], None]:
        def hook(*_: object) -> None:
            spent[owner] = spent.get(owner, 0.0) + _now() - began[node]

        return hook

    handles = [node.register_prehook(before(node)) for node in owners]
    handles += [node.register_hook(after(node, owner)) for node, owner in owners.items()]
    try:
        yield spent
    finally:
        for handle in handles:
            handle.remove()


def _now() -> float:
    if torch.cuda.is_available():  # where work is only handed in, and goes on behind our back
        torch.cuda.synchronize()
    return time.perf_counter()
