"""Membership attacks: known worlds in which the best attack is known, and real models that remember too much."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch import nn

from privet.attacks import (
    Access,
    Outcome,
    Pool,
    Shadows,
    calibrated_loss,
    confidences,
    label_only,
    lira,
    loss_threshold,
    membership,
    memorization,
    noisy_versions,
    rmia,
    shadows,
    shokri,
    target,
)
from privet.core.errors import InvalidInput
from privet.data import named
from privet.ensemble import Stacked, train
from privet.ensemble.stacked import Networks

MODELS, EXAMPLES = 64, 4000


def world(effect: float, seed: int = 0) -> tuple[Shadows, np.ndarray, np.ndarray]:
    """Examples that are hard or easy, and models in which being in raises the score by `effect` deviations."""
    drawn = np.random.default_rng(seed)
    inside = drawn.random((MODELS + 1, EXAMPLES)) < 0.5
    hard = 5 * drawn.normal(size=EXAMPLES)
    scores = hard + effect * inside + drawn.normal(size=(MODELS + 1, EXAMPLES))
    return Shadows(scores[1:], inside[1:]), scores[0], inside[0]


def outcome(scores: np.ndarray, inside: np.ndarray) -> Outcome:
    return Outcome("attack", scores[inside], scores[~inside])


def test_the_likelihood_ratio_comes_near_to_the_best_there_is() -> None:
    """Fails when a side, a sign or a variance of the ratio is wrong: with effect 2 the best attack (Neyman & Pearson)
    finds Φ(2 − Φ⁻¹(0.99)) of the members at 1 % of false alarms, and the loss, which does not know how hard an example
    is, finds next to none. Seeded; the intervals are of 95 %."""
    seen, own, inside = world(2.0)
    best = float(norm.cdf(2 - norm.ppf(0.99)))
    for fixed in (True, False):
        found = outcome(lira(own, seen, fixed_variance=fixed), inside).hits(0.01)
        assert 0.7 * best < found.value < 1.2 * best
    offline = outcome(lira(own, seen, online=False), inside).hits(0.01)
    assert 0.7 * best < offline.value < 1.2 * best
    plain = outcome(loss_threshold(-own), inside).hits(0.01)
    assert plain.upper < 0.1 < best / 3
    assert outcome(calibrated_loss(own, seen.scores[:, :, 0]), inside).hits(0.01).value > 0.5 * best


def test_several_queries_find_more() -> None:
    """Fails when queries beyond the first are left out."""
    drawn = np.random.default_rng(5)
    inside = drawn.random((MODELS + 1, EXAMPLES)) < 0.5
    scores = 1.0 * inside[:, :, None] + drawn.normal(size=(MODELS + 1, EXAMPLES, 4))
    one = outcome(lira(scores[0, :, :1], Shadows(scores[1:, :, :1], inside[1:])), inside[0]).auc()
    four = outcome(lira(scores[0], Shadows(scores[1:], inside[1:])), inside[0]).auc()
    assert four.lower > one.upper


def test_nothing_is_found_where_there_is_nothing() -> None:
    """Fails when an attack sees members where being in changes nothing. The interval misses 0.5 in one seed of twenty;
    the seed is one in which none of these does."""
    seen, own, inside = world(0.0, seed=2)
    for scores in (lira(own, seen), lira(own, seen, online=False), rmia(own, seen), loss_threshold(-own)):
        found = outcome(scores, inside).auc()
        assert found.lower < 0.5 < found.upper


def test_rmia_ranks_by_the_rise_in_likelihood() -> None:
    """Fails when an example's own likelihood is not held against that of models that did not see it."""
    seen, own, inside = world(2.0, seed=4)
    for online in (True, False):
        plain = outcome(loss_threshold(-own), inside).auc()
        assert outcome(rmia(own, seen, online=online), inside).auc().lower > plain.upper


def test_offline_looks_at_one_side() -> None:
    """Fails when the offline attack takes a surprisingly low score for a sign of a member as well as a high one, or
    when a hard example is held against others rather than its own kind: 1 − Pr[Z > score] of Carlini et al. 2022 rises
    with the score, and by its own deviations."""
    drawn = np.random.default_rng(7)
    means, spreads = np.array([-5.0, 0.0, 5.0]), np.array([1.0, 3.0, 0.5])
    inside = np.tile([[True], [False]], (400, 3))
    seen = Shadows(np.where(inside, 99.0, means + spreads * drawn.normal(size=(800, 3))), inside)
    for away in (-2.0, 2.0):
        found = lira(means + away * spreads, seen, online=False, fixed_variance=False)
        np.testing.assert_allclose(found, away, atol=0.25)
    # One variance for all is that around each example's own mean, whatever lies between examples.
    pooled = lira(means + 2.0, seen, online=False, fixed_variance=True)
    np.testing.assert_allclose(pooled, 2 / np.sqrt((spreads**2).mean()), atol=0.15)


def test_variance_is_not_smaller_for_fewer_models() -> None:
    """Fails when the spread is that of few models around their own mean, not corrected for it: with 2 models on a side
    it would be too small by √2."""
    drawn = np.random.default_rng(8)
    inside = np.tile(np.array([[True], [True], [False], [False]]), (1, 4000))
    seen = Shadows(drawn.normal(size=(4, 4000)), inside)
    middle = np.where(inside, np.nan, seen.scores[:, :, 0])[2:].mean(0)
    np.testing.assert_allclose(lira(middle + 1, seen, online=False), 1.0, atol=0.04)


@pytest.fixture(scope="module")
def remembered() -> tuple[Pool, Shadows, nn.Module]:
    """Real digits with labels that are half made up, which can only be remembered: rows, shadow models, a model."""
    digits = named("digits").train
    rows = torch.from_numpy(digits.x[:400]).flatten(1) / 16
    noise = torch.from_numpy(np.random.default_rng(1).integers(0, 10, 400))
    true = torch.from_numpy(np.asarray(digits.y)[:400])
    labels = torch.where(torch.arange(400) % 2 == 0, true, noise)
    inside = np.random.default_rng(2).random(400) < 0.5
    network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    learner = Stacked(network, steps=400, learning_rate=0.01)
    seen = shadows(learner, rows, labels, classes=10, models=12)
    alone = Stacked(network, steps=400, learning_rate=0.01, key="target")
    trained = train(alone, rows, labels, [np.flatnonzero(inside)], classes=10)
    assert isinstance(trained, Networks)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    model.load_state_dict({name: each[0] for name, each in trained.parameters.items()})
    return Pool(rows, labels, inside), seen, model


def test_a_model_that_remembers_is_found_out(remembered: tuple[Pool, Shadows, nn.Module]) -> None:
    """Fails when shadow models, their confidences or who was in which are mixed up, or an attack is given another's
    scores: each finds members, and those that know how hard an example is find more at few false alarms."""
    pool, seen, model = remembered
    found = {each.attack: each for each in membership(target(model, 10), pool, seen)}
    assert set(found) == {
        "label-only",
        "loss threshold",
        "calibrated loss",
        "shadow classifier",
        "LiRA",
        "LiRA, offline",
        "RMIA",
    }
    assert all(each.auc().lower > 0.6 for each in found.values())
    plain = found["loss threshold"]
    assert found["LiRA"].hits(0.01).lower > plain.hits(0.01).value
    assert found["LiRA"].auc().lower > plain.auc().value
    assert found["shadow classifier"].auc().value > plain.auc().value - 0.02
    few = membership(target(model, 10, Access.LABELS), pool, seen)
    assert [each.attack for each in few] == ["label-only"]
    assert [each.attack for each in membership(target(model, 10), pool)] == ["label-only", "loss threshold"]


def test_a_model_left_out_tells_nothing_of_itself(remembered: tuple[Pool, Shadows, nn.Module]) -> None:
    """Fails when those that stay tell who was in the one that goes: by its other half, or by a count that must come to
    half. Fails, too, when examples are not in just half of them."""
    _, seen, _ = remembered
    assert (seen.inside.sum(0) == 6).all()
    rest = seen.without(3)
    assert rest.models == 10
    assert (rest.inside.sum(0) == 5).all()
    assert abs(np.corrcoef(seen.inside[3], rest.inside)[0, 1:]).max() < 0.25
    with pytest.raises(InvalidInput, match="model is 12, of 12"):
        seen.without(12)


def test_made_up_labels_are_memorised_and_true_ones_less(remembered: tuple[Pool, Shadows, nn.Module]) -> None:
    """Fails when sides are swapped, correctness is that of another class, or errors are zero where few models agree."""
    pool, seen, _ = remembered
    found = memorization(seen, pool.labels.numpy())
    assert found.confidence[1::2].mean() > found.confidence[::2].mean() + 0.05
    assert found.correctness[1::2].mean() > found.correctness[::2].mean() + 0.05
    assert (found.correctness_error > 0.1).all()
    assert np.mean([each % 2 for each in found.most(40)]) > 0.6
    said = np.zeros((4, 1, 2))
    said[:2, 0, 1] = 2.0
    by_hand = memorization(Shadows(confidences(said, [1]), np.array([[True], [True], [False], [False]]), said), [1])
    assert by_hand.correctness.tolist() == [1.0]
    assert by_hand.correctness_error[0] == pytest.approx(np.sqrt(2 * 0.75 * 0.25 / 4))
    assert by_hand.confidence[0] == pytest.approx(1 / (1 + np.exp(-2.0)) - 0.5)
    with pytest.raises(InvalidInput, match="have no outputs"):
        memorization(Shadows(seen.scores, seen.inside), pool.labels.numpy())


def test_a_classifier_learns_each_class_by_itself() -> None:
    """Fails when one classifier serves all classes: in class 0 members are surer, in class 1 less sure."""
    drawn = np.random.default_rng(3)
    inside = drawn.random((9, 400)) < 0.5
    labels = np.arange(400) % 2
    margin = drawn.normal(size=(9, 400)) + 3 * np.where(labels == 0, inside, ~inside)
    outputs = np.where(labels[:, None] == np.arange(2), margin[:, :, None], 0.0)
    seen = Shadows(confidences(outputs[1:], labels), inside[1:], outputs[1:])
    assert outcome(shokri(outputs[0], labels, seen), inside[0]).auc().lower > 0.9
    assert outcome(confidences(outputs[0], labels), inside[0]).auc().upper < 0.6
    with pytest.raises(InvalidInput, match="ask both about the same examples"):
        shokri(outputs[0, :3], labels[:3], seen)
    with pytest.raises(InvalidInput, match="shadows have no outputs"):
        shokri(outputs[0], labels, Shadows(seen.scores, seen.inside))


def test_versions_grow_noisier() -> None:
    """Fails when noise does not grow, or does not follow from the key."""
    rows = torch.arange(600.0).reshape(100, 6)
    found = noisy_versions(rows, 3)
    away = [float((each - rows).std() / rows.std()) for each in found]
    assert away == pytest.approx([1 / 6, 2 / 6, 3 / 6], rel=0.15)
    assert torch.equal(found[0], noisy_versions(rows, 3)[0])


def test_confidence_is_scaled_as_a_logit() -> None:
    """Fails when log p − log(1 − p) is computed from rounded probabilities, or for another class."""
    scores = torch.tensor([[50.0, 0.0, -3.0], [0.0, 1.0, 2.0]])
    chances = scores.double().softmax(1)
    assert confidences(scores, torch.tensor([0, 2]))[1] == pytest.approx(
        float((chances[1, 2] / (1 - chances[1, 2])).log())
    )
    assert confidences(scores, torch.tensor([0, 2]))[0] == pytest.approx(50 - np.log(1 + np.exp(-3.0)))
    assert confidences(scores[None].expand(4, 2, 3), torch.tensor([0, 2])).shape == (4, 2)


def test_rates_are_exact_and_say_when_there_are_too_few() -> None:
    """Fails when false alarms exceed what was asked for, ties are counted as found, or too few outsiders give a
    rate."""
    found = Outcome("x", np.array([3.0, 2.0, 1.0, 0.5]), np.arange(100) / 100)
    assert found.hits(0.01).value == pytest.approx(0.75)
    assert found.hits(0.5).value == 1.0
    same = Outcome("x", np.ones(50), np.ones(200))
    assert same.hits(0.01).value == 0
    assert same.auc().value == 0.5
    with pytest.raises(InvalidInput, match=r"alarms is 0\.001, and there are 100 outsiders; it takes 1,000"):
        found.hits(0.001)
    alarms, hits = found.roc()
    assert (np.diff(alarms) >= 0).all()
    assert (alarms[0], hits[0], alarms[-1], hits[-1]) == (0, 0, 1, 1)


def test_what_cannot_be_attacked_is_refused() -> None:
    """Fails when NaN, an example that no model saw, or other shapes give a score."""
    seen, own, _ = world(1.0)
    with pytest.raises(InvalidInput, match="hold NaN"):
        Outcome("x", np.array([1.0, np.nan]), np.ones(3))
    with pytest.raises(InvalidInput, match="scores hold NaN"):
        lira(np.where(np.arange(EXAMPLES) == 3, np.nan, own), seen)
    with pytest.raises(InvalidInput, match="ask both about the same examples"):
        lira(own[:9], seen)
    with pytest.raises(InvalidInput, match="no model saw"):
        lira(own[:2], Shadows(np.zeros((4, 2)), np.zeros((4, 2), dtype=np.bool_)))
    with pytest.raises(InvalidInput, match="take an even number"):
        shadows(Stacked(nn.Linear(2, 2)), torch.zeros(4, 2), torch.zeros(4).long(), classes=2, models=3)
    with pytest.raises(InvalidInput, match="say of each example and version"):
        label_only(np.zeros((3, 2)))
