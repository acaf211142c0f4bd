"""The exact law of every oracle's and every mechanism's report, by running its own code on every branch."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from privet.local import (
    Duchi,
    FrequencyOracle,
    GeneralizedRandomizedResponse,
    LocalHashing,
    Piecewise,
    Rappor,
    rappor,
    unary,
)
from privet.local.hadamard import HadamardResponse
from privet.local.mean import MeanMechanism
from privet.local.unary import BitOracle
from tests.local.branches import Branches, Law


def cuts(part: Any) -> list[int] | None:
    """Every threshold that a part compares words with; None for one whose coins are tossed one by one."""
    match part:
        case GeneralizedRandomizedResponse() | HadamardResponse() | Piecewise():
            return [part.limit]
        case LocalHashing():
            return [part.response.limit]
        case BitOracle():
            return [part.limits[0]]  # the others are packed
        case Rappor():
            return []  # all its coins are packed
        case Duchi():
            return [part.start + part.slope * step for step in range(part.steps + 1)]
    return None


def law_of(part: FrequencyOracle | MeanMechanism, value: float, monkeypatch: pytest.MonkeyPatch) -> Law:
    """The probabilities of one report about a value. Packed coins are drawn one by one: test_exact shows their law."""
    known = cuts(part)
    rng = Branches(known or ())
    if known is None:
        tossed = sys.modules[type(part).__module__]
        monkeypatch.setattr(tossed, "coins", lambda limit, n, rng: np.array([rng.coin(limit) for _ in range(n)]))
    lanes = part.bits if isinstance(part, Rappor) else getattr(part, "domain", 0)

    def one_by_one(limit: int, shape: tuple[int, int], rng: Any) -> Any:
        assert shape == (1, 1)
        return np.array([[sum(rng.coin(limit) << place for place in range(lanes))]], dtype=np.uint64)

    for module in (unary, rappor):
        monkeypatch.setattr(module, "packed", one_by_one)

    def run(rng: Any) -> Any:
        report = part.randomize(np.array([value]), rng)
        return tuple(report[0].tolist()) if report.ndim == 2 else int(report[0])

    return rng.law(run)


def as_reports(part: Any, outcome: Any) -> Any:
    """An outcome as what a collector is handed."""
    return np.array([outcome], dtype=np.uint64 if isinstance(outcome, tuple) else np.int64)
