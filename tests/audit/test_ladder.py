"""The ladder of adversaries, in short."""

from __future__ import annotations

from typing import Any

import pytest

from privet.audit import Ladder, audit_ladder, ladder
from privet.core.errors import InvalidInput
from privet.core.guarantee import Evidence
from privet.core.random import SeededRng
from privet.core.unit import Unit
from privet.training import DPSGD


def test_whoever_sees_more_finds_more() -> None:
    """Fails when a rung is missing, is about another unit or δ than the plan, lies above a right plan, or what sees
    every gradient of its own rows finds no more than what sees labels. At 95 % each, with fixed seeds."""
    plan = DPSGD(epsilon=4.0, delta=1e-5, clip=0.5, batch_size=256, steps=12, population=1437)
    found = audit_ladder(plan, canaries=300, rng=SeededRng(1))
    names = [rung.name for rung in found.rungs]
    assert names == ["API", "black box", "white box", "gradient canary", "chosen data set"]
    assert all(rung.evidence.unit == found.guarantee.unit for rung in found.rungs)
    assert all(rung.evidence.delta == found.guarantee.delta == 1e-5 for rung in found.rungs)
    assert [bool(rung.evidence.assumptions) for rung in found.rungs] == [False] * 4 + [True]
    assert not found.refuted
    assert max(rung.evidence.epsilon for rung in found.rungs) <= found.guarantee.epsilon.upper
    assert found.rungs[4].evidence.epsilon > 2 > found.rungs[0].evidence.epsilon
    assert Ladder.from_json(found.to_json()) == found


def test_plans_it_cannot_climb_are_refused() -> None:
    """Fails when rows that are absent are tried against a promise about rows that are blanked."""
    with pytest.raises(InvalidInput, match="another unit than add/remove"):
        audit_ladder(DPSGD(noise_multiplier=1.0, batch_size=100, steps=2))


@pytest.mark.parametrize(("more", "delta"), [({"population": 1437}, 6e-5), ({"sample_rate": 0.1}, 1e-6)])
def test_ladder_without_a_delta_uses_the_default(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], delta: float
) -> None:
    """Fails when a plan without δ is audited at another one than the default for its public number of rows, or rungs
    and guarantee are about two: the trained models do not matter here."""
    asked: list[float] = []

    class Watched:
        sums = ()

        def by_coins(self, *, delta: float, confidence: float, scores: Any = None) -> Evidence:
            asked.append(delta)
            return Evidence(0.1, delta, confidence, "x", 10, Unit())

        by_steps = by_coins

    monkeypatch.setattr(ladder, "_trained", lambda *_: None)
    monkeypatch.setattr(ladder, "_watched", lambda *_: Watched())
    monkeypatch.setattr(ladder, "_asked", lambda *given: Watched().by_coins(delta=given[3], confidence=given[4]))
    found = audit_ladder(DPSGD(noise_multiplier=1.0, batch_size=100, steps=2, **more), canaries=16)
    assert found.guarantee.delta == delta
    assert asked == [delta] * 5
