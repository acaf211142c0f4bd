"""Where randomness hides something: every mechanism of the package, what it is asked, and how to give an answer again.

One visible table, `TAPS`. A mechanism that has no row here is not frozen by a replay, and its answers show up there as
differences.
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
"""For sums in float32, whose noise is rounded together with them."""


@dataclass(frozen=True, eq=False)
class Query:
    """A private number, vector or table, and how far one unit may move it, by the name of each norm."""

    value: Any
    bounds: Mapping[str, float]
    slack: float = _EXACT


@dataclass(frozen=True, eq=False)
class MechanismCall:
    """What a mechanism was asked: its name, what of it is public, and the private queries."""

    name: str
    public: object
    queries: tuple[Query, ...] = ()


def _itself(_: Any, output: Any) -> Any:
    return copy.deepcopy(output)


@dataclass(frozen=True)
class Interception:
    """One method of one class."""

    owner: type[Any]
    method: str
    asked: Callable[[Any, Mapping[str, Any], Any], MechanismCall]
    """From the mechanism, its arguments and, if there is one already, its answer."""
    again: bool = False
    """Whether it runs on the neighbor too, with the same noise: then the answers show how far the query moved."""
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
    """Each row is hidden by itself, or all of them by a proof of its own: what counts is how many rows moved."""
    given = [np.asarray(arguments[name]) for name in ("values", "x", "y") if name in arguments]
    table = np.concatenate([np.atleast_1d(each).reshape(len(np.atleast_1d(each)), -1) for each in given], axis=1)
    return MechanismCall(type(mechanism).__name__, mechanism.event, (Query(table.copy(), {"rows": 1.0}),))


def _minimum(plan: Any, _: Mapping[str, Any], output: Any) -> MechanismCall:
    reach = (plan.loss.lipschitz + 2.0 * tolerance(plan.loss)) / plan.regularization
    query = Query(np.array(output.value.weight), {"l2": reach}, _SINGLE)  # of the grid's rounding, which is counted
    return MechanismCall(type(plan).__name__, (plan.event, plan.unit), (query,))


def _step(step: Any, _: Mapping[str, Any], output: Any) -> MechanismCall:
    plan = step.plan
    moved = float(span(plan.unit()))
    size = plan.batch_size or 1
    total = step.sum.flat.detach().cpu().double().numpy() * size
    queries: tuple[Query, ...] = (Query(total, {"l2": moved * step.clip}, _SINGLE),)
    if isinstance(plan.clipping, Adaptive):  # then the number of rows within the clip is released, too
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
    """The same rows; a row that the neighbor lacks is left out, and one that it has besides is drawn every time."""
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
    """Every row of the table, and every local randomizer that there is by now, one's own included."""
    return (
        *_TABLE,
        *(Interception(kind, "randomize", _rows) for kind in _below(Randomizer) if "randomize" in vars(kind)),
    )


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def query_distance(norm: str, one: Any, other: Any) -> float:
    """How far two values are apart; infinity where they have different shapes."""
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
        # Whole numbers may be longer than a float's: subtracted first.
        moved = np.array([abs(float(a - b)) for a, b in zip(first, second, strict=True)])
    if norm == "l0":
        return float(np.count_nonzero(moved))
    if norm == "linf":
        return float(moved.max(initial=0.0))
    return float(moved.sum() if norm == "l1" else np.linalg.norm(moved))
