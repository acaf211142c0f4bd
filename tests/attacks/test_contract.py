"""What every membership attack of the table owes: a score for each example, from no more than it is said to need."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from privet.attacks import MEMBERSHIP_ATTACKS, Access, AttackerView, Pool, membership, shadows, target
from privet.core.errors import InvalidInput
from privet.ensemble import Stacked, train
from privet.ensemble.stacked import Networks

ROWS, CLASSES = 160, 4
every = pytest.mark.parametrize("name", MEMBERSHIP_ATTACKS)


@pytest.fixture(scope="module")
def view() -> AttackerView:
    """Random labels, which a network can only remember: a model of half of the rows, and shadow models."""
    drawn = torch.Generator().manual_seed(1)
    rows = torch.randn(ROWS, 12, generator=drawn)
    labels = torch.randint(0, CLASSES, (ROWS,), generator=drawn)
    network = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, CLASSES))
    learner = Stacked(network, steps=300, learning_rate=0.02)
    seen = shadows(learner, rows, labels, classes=CLASSES, models=8)
    inside = np.arange(ROWS) < ROWS // 2
    ensemble = train(learner, rows, labels, [np.flatnonzero(inside)], classes=CLASSES)
    assert isinstance(ensemble, Networks)
    network.load_state_dict({name: value[0] for name, value in ensemble.parameters.items()})
    return AttackerView(target(network, CLASSES), Pool(rows, labels, inside), seen)


@every
def test_attack_finds_members_of_an_overfitted_model(name: str, view: AttackerView) -> None:
    """Fails when scores are of other examples, or when a high one means that an example was not a member."""
    scores = MEMBERSHIP_ATTACKS[name].score(view)
    assert scores.shape == (ROWS,)
    assert np.isfinite(scores).all()
    assert view.pool.outcome(name, scores).auc().value > 0.6


@every
def test_attack_is_repeatable(name: str, view: AttackerView) -> None:
    """Fails when the same view gives other scores the second time."""
    attack = MEMBERSHIP_ATTACKS[name]
    again = AttackerView(view.target, view.pool, view.shadows)
    np.testing.assert_allclose(attack.score(view), attack.score(again), rtol=1e-6)


@every
def test_attack_needs_no_more_than_it_says(name: str, view: AttackerView) -> None:
    """Fails when an attack on labels asks for scores, or one that is said to need no shadow models uses some."""
    attack = MEMBERSHIP_ATTACKS[name]
    network = view.target.module()
    least = AttackerView(
        target(network, CLASSES, attack.access), view.pool, view.shadows if attack.needs_shadows else None
    )
    assert attack.applies(least)
    assert attack.score(least).shape == (ROWS,)
    if attack.access is not Access.LABELS:
        blinded = AttackerView(target(network, CLASSES, Access.LABELS), view.pool, view.shadows)
        assert not attack.applies(blinded)
        with pytest.raises(InvalidInput, match="shows labels alone"):
            attack.score(blinded)
    if attack.needs_shadows:
        alone = AttackerView(view.target, view.pool)
        assert not attack.applies(alone)
        with pytest.raises(InvalidInput, match="shadows"):
            attack.score(alone)


def test_membership_runs_all_that_apply(view: AttackerView) -> None:
    """Fails when an attack of the table is not run, or one is run that the attacker's view does not allow."""
    assert [each.attack for each in membership(view.target, view.pool, view.shadows)] == list(MEMBERSHIP_ATTACKS)
    without = [name for name, attack in MEMBERSHIP_ATTACKS.items() if not attack.needs_shadows]
    assert [each.attack for each in membership(view.target, view.pool)] == without
