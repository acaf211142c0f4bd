"""Interception of every mechanism of the package: what it is asked, and how to give a recorded answer again.

All of it is in one table, `_TABLE`. A replay does not freeze a mechanism that has no row there, and its answers show up
as differences.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch

from privet.accounting import span
from privet.core import Bounded
from privet.local import Randomizer
from privet.mechanisms import MECHANISMS, RandomizedResponseMechanism
from privet.pate import Gnss, Plan, SmoothCeiling, vote_reach
from privet.training import Adaptive, Step
from privet.training.convex import InputPerturbation, ObjectivePerturbation, OutputPerturbation, tolerance
from privet.training.sampling import FixedSizeSampler, PoissonSampler, SampledBatch, ShuffledSampler, UserSampler

__all__ = ["Interception", "MechanismCall", "Query", "interceptions", "query_distance"]

_NORMS: Final = ("l0", "l1", "l2", "linf")
_EXACT: Final = 1e-9
_SINGLE: Final = 1e-4
"""The tolerance for sums in float32, whose noise is rounded together with them."""


@dataclass(frozen=True, eq=False)
class Query:
    """A private number, vector or table, and its sensitivity: how far one unit may move it, by norm."""

    value: Any
    bounds: Mapping[str, float]
    slack: float = _EXACT


@dataclass(frozen=True, eq=False)
class MechanismCall:
    """One call of a mechanism: its name, its public parameters, and the private queries."""

    name: str
    public: object
    queries: tuple[Query, ...] = ()


def _itself(_: Any, output: Any) -> Any:
    return copy.deepcopy(output)


@dataclass(frozen=True)
class Interception:
    """Interception of one method of one class."""

    owner: type[Any]
    method: str
    asked: Callable[[Any, Mapping[str, Any], Any], MechanismCall]
    """Return the call from the mechanism, its arguments and, if there is one already, its answer."""
    again: bool = False
    """Whether it runs on the neighbor too, with the same noise, so that the answers show how far the query moved."""
    keep: Callable[[Any, Any], Any] = _itself
    give: Callable[[Any, Any], Any] = _itself


def _bounded(mechanism: Any, arguments: Mapping[str, Any], _: Any) -> MechanismCall:
    query = arguments["query"]
    if not isinstance(query, Bounded):  # it will refuse that itself
        return MechanismCall(type(mechanism).__name__, mechanism.event)
    bounds = {name: getattr(query, name) for name in _NORMS if getattr(query, name) is not None}
    value = copy.deepcopy(query.value)
    return MechanismCall(type(mechanism).__name__, (mechanism.event, query.unit), (Query(value, bounds),))


def _votes(plan: Any, arguments: Mapping[str, Any], _: Any) -> MechanismCall:
    own = plan if isinstance(plan, Plan) else plan.plan
    votes = arguments["votes"]
    reach = vote_reach(own.unit, own.labels)
    bounds = {name: getattr(reach, name) for name in _NORMS}
    queries = tuple(Query(row, bounds) for row in np.array(votes.counts))
    return MechanismCall(type(plan).__name__, (plan.event, own.unit, votes.teachers), queries)


def _rows(mechanism: Any, arguments: Mapping[str, Any], _: Any) -> MechanismCall:
    """Describe a call that protects each row by itself, or by a proof of its own: the number of moved rows counts."""
    given = [np.asarray(arguments[name]) for name in ("values", "x", "y") if name in arguments]
    table = np.concatenate([np.atleast_1d(each).reshape(len(np.atleast_1d(each)), -1) for each in given], axis=1)
    return MechanismCall(type(mechanism).__name__, mechanism.event, (Query(table.copy(), {"rows": 1.0}),))


def _minimum(plan: Any, _: Mapping[str, Any], output: Any) -> MechanismCall:
    reach = (plan.loss.lipschitz + 2.0 * tolerance(plan.loss)) / plan.regularization
    query = Query(np.array(output.value.weight), {"l2": reach}, _SINGLE)  # the slack covers the rounding to the grid
    return MechanismCall(type(plan).__name__, (plan.event, plan.unit), (query,))


def _step(step: Any, _: Mapping[str, Any], output: Any) -> MechanismCall:
    plan = step.plan
    moved = float(span(plan.unit()))
    size = plan.batch_size or 1
    total = step.sum.flat.detach().cpu().double().numpy() * size
    queries: tuple[Query, ...] = (Query(total, {"l2": moved * step.clip}, _SINGLE),)
    if isinstance(plan.clipping, Adaptive):  # the number of rows within the clip is released, too
        queries = (*queries, Query(np.array([output]), {"linf": moved / 2}, _SINGLE))
    return MechanismCall("step", (plan, step.clip, len(total)), queries)


def _kept_step(step: Any, output: Any) -> Any:
    return step.sum.flat.detach().clone(), output


def _given_step(step: Any, kept: Any) -> Any:
    with torch.no_grad():
        step.sum.flat.copy_(kept[0])
    return kept[1]


def _drawn(sampler: Any, arguments: Mapping[str, Any], _: Any) -> MechanismCall:
    return MechanismCall(type(sampler).__name__, (sampler.steps_of(), arguments["step"]))


def _kept_rows(sampler: Any, output: Any) -> Any:
    return sampler.rows, output


def _given_rows(sampler: Any, kept: Any) -> SampledBatch:
    """Return the same rows, without a row that the neighbor lacks, and always with a row that it has in addition."""
    before, drawn = kept
    groups = drawn.groups if drawn.groups is not None else np.arange(len(drawn.indices))
    there = drawn.indices < sampler.rows
    indices, groups = drawn.indices[there], groups[there]
    new = np.arange(before, sampler.rows, dtype=np.int64)
    indices = np.concatenate([indices, new])
    if drawn.groups is None:
        return SampledBatch.of_rows(indices)
    last = int(groups.max(initial=-1)) + 1
    groups = np.concatenate([groups, np.full(len(new), last, dtype=np.int64)])
    return SampledBatch(indices, groups, drawn.units + (len(new) > 0))


_TABLE: Final = (
    *(Interception(entry.kind, "release", _bounded) for entry in MECHANISMS.values()),
    *(Interception(kind, "release", _votes) for kind in (Plan, SmoothCeiling, Gnss)),
    Interception(Plan, "counts", _votes),
    Interception(RandomizedResponseMechanism, "randomize", _rows),
    Interception(InputPerturbation, "randomize", _rows),
    Interception(ObjectivePerturbation, "fit", _rows),
    Interception(OutputPerturbation, "fit", _minimum, again=True),
    Interception(Step, "total", _step, again=True, keep=_kept_step, give=_given_step),
    *(
        Interception(kind, "draw", _drawn, keep=_kept_rows, give=_given_rows)
        for kind in (PoissonSampler, FixedSizeSampler, UserSampler)
    ),
    Interception(
        ShuffledSampler, "draw", _drawn, again=True, keep=_kept_rows, give=_given_rows
    ),  # it remembers its order
)


def interceptions() -> tuple[Interception, ...]:
    """Return every row of the table, and every local randomizer that is defined by now, including the user's own."""
    return (
        *_TABLE,
        *(Interception(kind, "randomize", _rows) for kind in _below(Randomizer) if "randomize" in vars(kind)),
    )


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def query_distance(norm: str, one: Any, other: Any) -> float:
    """Return the distance of two values; infinity where they have different shapes.

    Args:
        norm: The norm: "l0", "l1", "l2", "linf", or "rows" for the number of rows that differ.
        one: A number, an array, a mapping to numbers, or for "rows" a table.
        other: A value of the same kind.
    """
    if norm == "rows":
        both = min(len(one), len(other))
        if one.shape[1:] != other.shape[1:]:
            return math.inf
        same = (one[:both] == other[:both]) | ((one[:both] != one[:both]) & (other[:both] != other[:both]))
        return float((~same.reshape(both, -1).all(1)).sum() + abs(len(one) - len(other)))
    if isinstance(one, Mapping):
        keys = {*one, *other}
        moved = np.array([abs(float(one.get(key, 0)) - float(other.get(key, 0))) for key in keys])
    else:
        first, second = (np.asarray(each, dtype=object).reshape(-1) for each in (one, other))
        if np.shape(one) != np.shape(other):
            return math.inf
        # Integers may exceed the precision of a float, so subtract first.
        moved = np.array([abs(float(a - b)) for a, b in zip(first, second, strict=True)])
    if norm == "l0":
        return float(np.count_nonzero(moved))
    if norm == "linf":
        return float(moved.max(initial=0.0))
    return float(moved.sum() if norm == "l1" else np.linalg.norm(moved))
