"""The ladder of adversaries, in short."""

from __future__ import annotations

import pytest

from privet.audit import Ladder, climbed
from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.training import DPSGD


def test_whoever_sees_more_finds_more() -> None:
    """Fails when a rung is missing, is about another unit or δ than the plan, lies above a right plan, or what sees
    every gradient of its own rows finds no more than what sees labels. At 95 % each, with fixed seeds."""
    plan = DPSGD(epsilon=4.0, delta=1e-5, clip=0.5, batch_size=256, steps=12, population=1437)
    found = climbed(plan, canaries=300, rng=SeededRng(1))
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
        climbed(DPSGD(noise_multiplier=1.0, batch_size=100, steps=2))
