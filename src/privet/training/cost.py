"""What private gradients cost a layer, by the clock: on made-up rows, beside the ordinary backward pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.autograd.graph import Node

from privet.training.engine.contributions import Contribution
from privet.training.engine.coverage import leaves
from privet.training.engine.graph import read
from privet.training.engine.incoming_gradient import IncomingGradient
from privet.training.engine.parameter_expressions import makes_expression
from privet.training.engine.sweep import sweep
from privet.training.rules import OperationRule

if TYPE_CHECKING:
    from privet.training.step import Step

__all__ = ["Cost", "TimedRules", "measure_cost"]

_PASSES = 4
"""The quickest counts: in the first the engine may still find out where the examples are."""


@dataclass
class TimedRules:
    """Rules that say when they are used, and how long they take."""

    used: dict[int, dict[str, None]] = field(default_factory=dict)
    """By `id` of a parameter, the names of the rules that it met."""
    seconds: dict[int, float] = field(default_factory=dict)
    """By `id` of a parameter, the time of its rules."""

    def rules(self, rules: Mapping[str, OperationRule]) -> dict[str, OperationRule]:
        """The same rules, noted."""
        return {kind: OperationRule(self._noted(known), known.slots) for kind, known in rules.items()}

    def _noted(self, known: OperationRule) -> Callable[[IncomingGradient], Contribution]:
        name = getattr(known.rule, "__name__", type(known.rule).__name__)

        def rule(incoming: IncomingGradient) -> Contribution:
            began = _now()
            contribution = known.rule(incoming).settle()
            lasted = _now() - began
            expression = incoming.node.next_functions[incoming.slot][0]
            for leaf in leaves(expression) if expression is not None else ():
                self.used.setdefault(id(leaf), {})[name] = None
                self.seconds[id(leaf)] = self.seconds.get(id(leaf), 0.0) + lasted
                lasted = 0.0
            return contribution

        return rule


@dataclass(frozen=True)
class Cost:
    """Seconds, as multiples of what an ordinary backward pass takes."""

    total: float
    by_parameter: dict[int, tuple[float, float]]
    """By `id`: ours, and the ordinary one. An operation's time stands with the first of its parameters."""
    rest: float
    """Seconds of our pass that no operation explains: modules that are called again, and reading the graph."""
    parts: list[Contribution | None]


def measure_cost(step: Step, noted: TimedRules, losses_of: Callable[[], Tensor]) -> Cost:
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
    parts: list[Contribution | None]


def _once(step: Step, noted: TimedRules, losses_of: Callable[[], Tensor]) -> _Times:
    step.watch()
    try:
        losses = losses_of()
        calls = step.calls.found
    finally:
        step.calls.close()
    places = {id(parameter): place for place, parameter in enumerate(step.parameters)}
    graph = read(losses, places, makes_expression, frozenset())
    owners = {node: id(leaves(uses[0].expression.node)[0]) for node, uses in graph.joins.items()}
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
    for parameter, contribution in zip(step.parameters, parts, strict=True):
        if contribution is not None:
            began = _now()
            squares = contribution.squares().value
            contribution.add_to(torch.zeros_like(parameter, dtype=squares.dtype), torch.zeros_like(squares))
            lasted = _now() - began
            own[id(parameter)] = own.get(id(parameter), 0.0) + lasted
            ours += lasted
    return _Times(ordinary, ours, rest, plain, own, parts)


@contextmanager
def _clock(owners: Mapping[Node, int]) -> Iterator[dict[int, float]]:
    """How long autograd works on these operations, added up for each owner."""
    spent: dict[int, float] = {}
    began: dict[Node, float] = {}

    def before(node: Node, *_: object) -> None:
        began[node] = _now()

    def after(node: Node, owner: int, *_: object) -> None:
        spent[owner] = spent.get(owner, 0.0) + _now() - began[node]

    handles = [node.register_prehook(partial(before, node)) for node in owners]
    handles += [node.register_hook(partial(after, node, owner)) for node, owner in owners.items()]
    try:
        yield spent
    finally:
        for handle in handles:
            handle.remove()


def _now() -> float:
    if torch.cuda.is_available():  # where work is only handed in, and goes on behind our back
        torch.cuda.synchronize()
    return time.perf_counter()
