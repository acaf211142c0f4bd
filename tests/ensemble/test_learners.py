"""Every way of training: right, and for each member a function of its own rows alone, to the last bit."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from sklearn import kernel_ridge, linear_model
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from torch import Tensor, nn
from torch.nn import functional as F

from privet.core.errors import InvalidInput, MissingExtra
from privet.ensemble import (
    Estimator,
    InProcess,
    KernelRidge,
    Learner,
    Placement,
    Processes,
    RandomFeatures,
    Ray,
    Ridge,
    Shards,
    Stacked,
    shards,
    train,
    vote_batches,
    votes,
)
from privet.ensemble.seeding import generator, initial_weights

CLASSES = 3
MLP = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, CLASSES))
CNN = nn.Sequential(
    nn.Unflatten(1, (1, 4, 4)), nn.Conv2d(1, 4, 3), nn.Tanh(), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(16, CLASSES)
)
LEARNERS: dict[str, Learner] = {
    "ridge": Ridge(0.1),
    "kernel": KernelRidge(0.1, 2.0),
    "mlp": Stacked(MLP, steps=12, batch_size=8),
    "cnn": Stacked(CNN, steps=6, batch_size=8),
    "tree": Estimator(DecisionTreeClassifier(max_features=2)),
    "logistic": Estimator(LogisticRegression()),
}


def made(rows: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Rows around one point for each class."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, rows)
    middles = 1.5 * rng.normal(size=(CLASSES, 16))
    inputs = middles[labels] + rng.normal(size=(rows, 16))
    return torch.tensor(inputs, dtype=torch.float32), torch.tensor(labels)


ASKED = made(40, seed=9)[0]


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("changed", ["largest", "smallest"])
def test_one_record_changes_one_member(name: str, changed: str) -> None:
    """Fails when one more record touches another member by so much as a bit: by padding to the largest shard, by steps
    that follow from how many rows there are, by batches or beginnings from one stream, or by a common mean."""
    inputs, labels = made(400)
    of = shards(np.arange(400), 12)
    sizes = np.bincount(of.of, minlength=12)
    own = int(sizes.argmax() if changed == "largest" else sizes.argmin())
    for place in (0, 200):
        more = Shards(np.insert(of.of, place, own), 12)
        # A record like no other: far out, and of a class that its neighbourhood is not of.
        inputs_too = torch.cat([inputs[:place], torch.full((1, 16), 3.0), inputs[place:]])
        labels_too = torch.cat([labels[:place], torch.tensor([2]), labels[place:]])
        before = train(LEARNERS[name], inputs, labels, of, classes=CLASSES).scores(ASKED)
        after = train(LEARNERS[name], inputs_too, labels_too, more, classes=CLASSES).scores(ASKED)
        differ = {place for place, pair in enumerate(zip(before, after, strict=True)) if not torch.equal(*pair)}
        assert differ <= {own}
        assert differ or name == "tree"  # one more row need not change a tree


@pytest.mark.parametrize("name", LEARNERS)
def test_members_learn(name: str) -> None:
    """Fails when labels are mixed up, rows are another member's, or nothing is learned: three far classes are told
    apart by every member, and by chance in a third of the rows."""
    inputs, labels = made(900)
    learner = Stacked(MLP, steps=100, learning_rate=0.02) if name in ("mlp", "cnn") else LEARNERS[name]
    found = votes(train(learner, inputs, labels, shards(np.arange(600), 6).members, classes=CLASSES), inputs[600:])
    assert ((found == labels[600:, None].numpy()).mean(0) > (0.6 if name == "tree" else 0.9)).all()


@pytest.mark.parametrize("rows", [10, 60])
def test_ridge_is_ridge(rows: int) -> None:
    """Fails when the penalty, the offset or either of the two systems (fewer rows than features, and more) is wrong:
    scikit-learn's ridge regression to ±1 is the oracle."""
    inputs, labels = (part.numpy() for part in made(2 * rows))
    wanted = 2 * np.eye(CLASSES)[labels] - 1
    own = [np.arange(rows), np.arange(rows, 2 * rows)]
    exact = torch.tensor(inputs, dtype=torch.float64)
    found = train(Ridge(0.7), exact, labels, own, classes=CLASSES).scores(ASKED.double()).numpy()
    for place, each in enumerate(own):
        oracle = linear_model.Ridge(alpha=0.7, solver="cholesky").fit(exact.numpy()[each], wanted[each])
        np.testing.assert_allclose(found[place], oracle.predict(ASKED.double().numpy()), rtol=1e-9, atol=1e-9)


def test_kernel_ridge_is_kernel_ridge() -> None:
    """Fails when the kernel's width, the penalty or the offset is wrong: scikit-learn's is the oracle; it has no
    offset, so that the labels' mean is taken away first."""
    inputs, labels = made(50)
    exact, wanted = inputs.double(), 2 * np.eye(CLASSES)[labels.numpy()] - 1
    found = train(KernelRidge(0.4, 3.0), exact, labels, [np.arange(50)], classes=CLASSES).scores(ASKED.double())[0]
    oracle = kernel_ridge.KernelRidge(alpha=0.4, kernel="rbf", gamma=1 / 18).fit(exact.numpy(), wanted - wanted.mean(0))
    expected = oracle.predict(ASKED.double().numpy()) + wanted.mean(0)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-9)


def test_random_features_make_the_kernel() -> None:
    """Fails when frequencies or phases have the wrong scale. Entries deviate by at most 1/√20,000 = 0.007; 0.045 is
    more than six of that, for 1,600 entries a false alarm in 1e5 drawings; the drawing is fixed."""
    rows = RandomFeatures(16, 20_000, width=4.0)(ASKED)
    wanted = torch.exp(-torch.cdist(ASKED, ASKED).square() / 32)
    assert float((rows @ rows.T - wanted).abs().max()) < 0.045


def test_stacked_is_a_loop_of_networks() -> None:
    """Fails when gradients of members mix, Adam's state is shared, the rate is another, or a member's rows are: each is
    trained again as an ordinary module by an ordinary optimizer."""
    inputs, labels = made(100)
    own = [np.arange(30), np.arange(30, 35), np.arange(35, 100)]
    learner = Stacked(MLP, steps=15, batch_size=8, learning_rate=0.01, weight_decay=0.01)
    found = train(learner, inputs, labels, own, classes=CLASSES).scores(ASKED)
    for member, rows in enumerate(own):
        stream = generator("privet", "network", member)
        alone = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, CLASSES))
        alone.load_state_dict(initial_weights(MLP, stream))
        orders = learner._order(torch.from_numpy(rows), stream)
        assert set(orders.flatten().tolist()) == set(rows.tolist())
        optimizer = torch.optim.Adam(alone.parameters(), lr=0.01, weight_decay=0.01)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 15)
        for batch in orders:
            optimizer.zero_grad()
            torch.autograd.backward(F.cross_entropy(alone(inputs[batch]), labels[batch]))
            optimizer.step()
            falling.step()
        torch.testing.assert_close(found[member], alone(ASKED).detach(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", LEARNERS)
def test_no_row_raises(name: str) -> None:
    """Fails when an empty shard, a shard of one class, or one with a number that is none stops the others, changes
    them, or leaves a vote that is no class."""
    inputs, labels = made(80)
    inputs[79] = torch.nan
    one_class = torch.nonzero(labels[:60] == 1)[:, 0].numpy()
    own = [np.arange(60), np.zeros(0, np.int64), one_class, np.arange(60, 80), np.arange(60)[::-1]]
    found = votes(train(LEARNERS[name], inputs, labels, own, classes=CLASSES), ASKED)
    assert found.min() >= 0
    assert found.max() < CLASSES
    clean = train(LEARNERS[name], inputs[:60], labels[:60], [own[0]], classes=CLASSES)
    np.testing.assert_array_equal(found[:, 0], votes(clean, ASKED)[:, 0])
    if name in ("tree", "logistic", "ridge", "kernel"):
        assert (found[:, 1] == 0).all()
        assert (found[:, 2] == 1).all()


@pytest.mark.parametrize("name", LEARNERS)
def test_a_member_without_rows_learns_from_nobody(name: str) -> None:
    """Fails when a place that is filled up for want of rows is filled with another member's, and learned from."""
    found = []
    for seed in (0, 1):
        inputs, labels = made(40, seed)
        own = [np.arange(40), np.zeros(0, np.int64)]
        found.append(train(LEARNERS[name], inputs, labels, own, classes=CLASSES).scores(ASKED))
    assert torch.equal(found[0][1], found[1][1])
    assert not torch.equal(found[0][0], found[1][0])


def test_a_class_that_a_shard_lacks_is_not_taken_for_another() -> None:
    """Fails when probabilities of an estimator that knows classes 1 and 2 alone are read as those of 0 and 1."""
    inputs, labels = made(200)
    without = torch.nonzero(labels > 0)[:, 0].numpy()
    found = train(LEARNERS["logistic"], inputs, labels, [without], classes=CLASSES)
    assert (votes(found, inputs[without])[:, 0] == labels[without].numpy()).mean() > 0.95


@pytest.mark.parametrize("name", ["ridge", "mlp", "tree"])
def test_processes_do_the_same(name: str) -> None:
    """Fails when a part gets other rows, or a member's stream follows from its place in a part and not its number."""
    inputs, labels = made(300)
    of = shards(np.arange(300), 7)
    here = train(LEARNERS[name], inputs, labels, of, classes=CLASSES, where=InProcess())
    there = train(LEARNERS[name], inputs, labels, of, classes=CLASSES, where=Split(3))
    assert here.size == there.size == 7
    assert there.classes == CLASSES
    torch.testing.assert_close(here.scores(ASKED), there.scores(ASKED), rtol=1e-4, atol=1e-5)


@dataclass(frozen=True)
class Split:
    """In this process, but in parts, so that processes need not be started for every learner."""

    parts: int

    def fit(self, learner: Learner, parts: list[Any]) -> list[Any]:
        return InProcess().fit(learner, parts)


def places() -> list[Placement]:
    return [Processes(2, 2), Ray(parts=3)]


@pytest.mark.parametrize("where", places(), ids=lambda where: type(where).__name__)
def test_other_processes(where: Placement) -> None:
    """Fails when a task or an ensemble cannot be sent to another process, or comes back in another order."""
    if isinstance(where, Ray):
        pytest.importorskip("ray")
    inputs, labels = made(200)
    of = shards(np.arange(200), 5)
    learner = LEARNERS["logistic"]
    found = votes(train(learner, inputs, labels, of, classes=CLASSES, where=where), ASKED)
    np.testing.assert_array_equal(found, votes(train(learner, inputs, labels, of, classes=CLASSES), ASKED))


def test_an_absent_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a missing Ray shows as a traceback, and not as one line that says what to install."""
    monkeypatch.setitem(sys.modules, "ray", None)
    inputs, labels = made(20)
    with pytest.raises(MissingExtra, match=r"pip install 'privet\[ray\]'"):
        train(Ridge(), inputs, labels, [np.arange(20)] * 2, classes=CLASSES, where=Ray())


def test_shadow_models_may_overlap() -> None:
    """Fails when members that share rows take them from each other."""
    inputs, labels = made(60)
    half, every = np.arange(0, 60, 2), np.arange(60)
    both = train(Ridge(), inputs, labels, [half, every], classes=CLASSES).scores(ASKED)
    for place, own in enumerate((half, every)):
        assert torch.equal(both[place], train(Ridge(), inputs, labels, [own], classes=CLASSES).scores(ASKED)[0])


def test_estimators_are_seeded_and_refusals_are_told() -> None:
    """Fails when members draw from numpy's global stream, all draw the same, a setting that suits no rows is let pass
    or is told as a broken process, one that needs many rows is not, or rows of other features are asked about."""
    inputs, labels = made(300)
    forest = Estimator(DecisionTreeClassifier(max_features=1))
    own = [np.arange(300)] * 3
    first, second = (votes(train(forest, inputs, labels, own, classes=CLASSES), ASKED) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert (first[:, 0] != first[:, 1]).any()
    near = Estimator(KNeighborsClassifier(n_neighbors=200))
    mixed = votes(train(near, inputs, labels, [np.arange(10), np.arange(300)], classes=CLASSES), ASKED)
    assert len(np.unique(mixed[:, 0])) == 1
    assert len(np.unique(mixed[:, 1])) > 1
    wrong = Estimator(LogisticRegression(C=-1.0))
    for where in (InProcess(), Processes(2)):
        with pytest.raises(InvalidInput, match=r"refuses made-up rows of 16 features and 3 classes: .*'C'"):
            train(wrong, inputs, labels, own, classes=CLASSES, where=where)
    with pytest.raises(InvalidInput, match="inputs are refused by the estimator"):
        train(forest, inputs, labels, own, classes=CLASSES).scores(ASKED[:, :5])


@pytest.mark.parametrize("where", [InProcess(), Processes(2)], ids=lambda where: type(where).__name__)
@pytest.mark.parametrize("lone", [False, True])
def test_a_record_less_refuses_no_more_than_its_own_member(where: Placement, lone: bool) -> None:
    """Fails when "all are refused" is decided by the rows, in a part or in the whole: without one record, a member has
    too few rows of a class for two folds, and is alone in its part (of eight processes' parts) or the only one whose
    rows are of two classes."""
    inputs, labels = made(160)
    of = shards(np.arange(160), 8)
    own = of.members[3]
    labels = torch.zeros_like(labels) if lone else labels % 2
    labels[own] = 0
    labels[own[:2]] = 1
    learner = Estimator(CalibratedClassifierCV(LogisticRegression(), cv=2))
    less = np.delete(np.arange(160), own[0])
    before = train(learner, inputs, labels, of, classes=2, where=where).scores(ASKED)
    after = train(learner, inputs[less], labels[less], Shards(of.of[less], 8), classes=2, where=where).scores(ASKED)
    assert [place for place in range(8) if not torch.equal(before[place], after[place])] == [3]
    assert bool((after[3] == torch.tensor([1.0, 0.0])).all())


class OwnError(Exception):
    """As LightGBM's and CatBoost's: of no kind but `Exception`."""


class Fussy(LogisticRegression):  # type: ignore[misc]
    """Says what it does not like, with the row's own number in it."""

    def __init__(self, kind: type[Exception] = RuntimeError, when: str = "fit") -> None:
        super().__init__()
        self.kind, self.when = kind, when

    def fit(self, rows: Any, labels: Any) -> Fussy:
        self.most_ = np.abs(rows).max()
        if self.when == "fit":
            self.look()
        warnings.warn(f"the largest is {self.most_}", UserWarning, stacklevel=1)
        super().fit(np.clip(rows, -9, 9), labels)
        return self

    def predict_proba(self, rows: Any) -> Any:
        if len(rows) > 1:
            self.look()
        warnings.warn(f"the largest was {self.most_}", UserWarning, stacklevel=1)
        return super().predict_proba(rows)

    def look(self) -> None:
        if self.most_ > 1e6:
            raise self.kind(f"bad value {self.most_}")


@pytest.mark.parametrize("kind", [RuntimeError, KeyError, FloatingPointError, UserWarning, OwnError])
@pytest.mark.parametrize("when", ["fit", "predict"])
def test_what_an_estimator_says_of_rows_is_not_heard(kind: type[Exception], when: str) -> None:
    """Fails when an error or a warning that a row causes, in training or in voting, reaches the caller, or touches
    another member."""
    inputs, labels = made(200)
    of = shards(np.arange(200), 10)
    learner = Estimator(Fussy(kind, when))
    before = train(learner, inputs, labels, of, classes=CLASSES).scores(ASKED)
    inputs[7] = 2e6
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        after = train(learner, inputs, labels, of, classes=CLASSES).scores(ASKED)
    assert not heard
    own = int(of.of[7])
    assert [place for place in range(10) if not torch.equal(before[place], after[place])] == [own]
    assert bool((after[own] == F.one_hot(labels[of.of == own].mode().values, CLASSES)).all())


@pytest.mark.parametrize("where", [InProcess(), Processes(2, 2)], ids=lambda where: type(where).__name__)
@pytest.mark.parametrize("odd", [0.5, torch.nan, torch.inf, 3e38])
def test_networks_without_rows_stay_as_they_were(where: Placement, odd: float) -> None:
    """Fails when members without rows are given a row of another's, which reaches them as 0·∞; when weights decay
    where a part has rows, and not where it has none; or when a row that is no number spoils more than its own member.
    Each part is of two members; of these, two begin without rows and one gets the record that is put first."""
    learner = Stacked(MLP, steps=6, batch_size=4, weight_decay=0.5)
    for rows in (0, 30):
        inputs, labels = made(rows)
        of = 2 + np.arange(rows) % 3
        more, named = torch.cat([torch.full((1, 16), odd), inputs]), torch.cat([torch.tensor([1]), labels.long()])
        before = train(learner, inputs, labels.long(), Shards(of, 8), classes=CLASSES, where=where).scores(ASKED)
        for own in (0, 3):
            wide = Shards(np.insert(of, 0, own), 8)
            after = train(learner, more, named, wide, classes=CLASSES, where=where).scores(ASKED)
            assert [place for place in range(8) if not torch.equal(before[place], after[place])] == [own]
            assert bool(after[own].isfinite().all()) or odd == 3e38


def test_votes_are_the_same_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a stretch is lost, doubled or transposed; of equal scores the first class is named."""
    inputs, labels = made(200)
    found = train(Ridge(), inputs, labels, shards(np.arange(200), 4), classes=CLASSES)
    whole = votes(found, ASKED)
    assert whole.shape == (40, 4)
    assert whole.dtype == np.int32
    np.testing.assert_array_equal(whole, found.scores(ASKED).argmax(2).T.numpy())
    np.testing.assert_array_equal(whole, np.concatenate([*vote_batches(found, ASKED, at_once=7)]))
    monkeypatch.setattr(import_module("privet.ensemble.votes"), "_NUMBERS", 4 * CLASSES * 9)  # nine rows at a time
    np.testing.assert_array_equal(whole, votes(found, ASKED))
    assert votes(found, ASKED[:0]).shape == (0, 4)
    nothing = train(Ridge(), inputs, labels, [np.zeros(0, np.int64)], classes=CLASSES)
    assert not votes(nothing, ASKED).any()


def refused() -> list[tuple[str, Any]]:
    inputs, labels = made(20)
    own = [np.arange(20)]
    return [
        ("classes is 1", lambda: train(Ridge(), inputs, labels, own, classes=1)),
        ("labels are not all from 0 to 1", lambda: train(Ridge(), inputs, labels, own, classes=2)),
        ("labels are not one whole", lambda: train(Ridge(), inputs, labels[:9], own, classes=3)),
        ("inputs are not rows", lambda: train(Ridge(), inputs.long(), labels, own, classes=3)),
        ("members are none", lambda: train(Ridge(), inputs, labels, [], classes=3)),
        ("members name rows", lambda: train(Ridge(), inputs, labels, [np.array([20])], classes=3)),
        ("members name rows", lambda: train(Ridge(), inputs, labels, [np.array([True, False])], classes=3)),
        ("members divide 10 rows", lambda: train(Ridge(), inputs, labels, shards(np.arange(10), 2), classes=3)),
        ("penalty is 0", lambda: Ridge(0.0)),
        ("width is -1", lambda: KernelRidge(1.0, -1.0)),
        ("model has a BatchNorm1d", lambda: Stacked(nn.Sequential(nn.Linear(16, 3), nn.BatchNorm1d(3)))),
        ("model has a Dropout", lambda: Stacked(nn.Sequential(nn.Dropout(0.5), nn.Linear(16, 3)))),
        ("model is 'model', which makes", lambda: train(Stacked(nn.Linear(16, 5)), inputs, labels, own, classes=3)),
        ("estimator is a str", lambda: Estimator("ridge")),
    ]


@pytest.mark.parametrize(("message", "call"), refused(), ids=[message for message, _ in refused()])
def test_what_cannot_be_trained_is_refused(message: str, call: Any) -> None:
    """Fails when a mistake in public arguments passes, or is told without the argument's name."""
    with pytest.raises(InvalidInput, match=message):
        call()


def test_a_levelled_teacher_says_a_class_as_often_as_it_saw_it() -> None:
    """Fails when the penalty's pull to the larger class stays, is taken back from other rows than the teacher's own, or
    changes a teacher without rows or with one class."""
    drawn = np.random.default_rng(2)
    rows = torch.from_numpy(drawn.normal(size=(300, 20)) / 5).float()
    labels = torch.from_numpy((drawn.random(300) < 0.2).astype(np.int64))
    own = [np.arange(0, 100), np.arange(100, 300), np.zeros(0, np.int64)]
    own += [np.flatnonzero(labels.numpy() == label)[:30] for label in (0, 1)]
    level = train(Ridge(5.0, level=True), rows, labels, own, classes=2)
    plain = train(Ridge(5.0), rows, labels, own, classes=2)
    for place in (0, 1):
        mine = rows[torch.from_numpy(own[place])]
        wanted = int(labels[torch.from_numpy(own[place])].sum())
        said = int((level.scores(mine)[place].argmax(1) == 1).sum())
        assert said == wanted > int((plain.scores(mine)[place].argmax(1) == 1).sum())
    assert bool((level.scores(rows)[2] == 0).all())
    assert bool((level.scores(rows)[3:] == plain.scores(rows)[3:]).all())
    assert [set(each.argmax(1).tolist()) for each in level.scores(rows)[3:]] == [{0}, {1}]
    alone = train(Ridge(5.0, level=True), rows, labels, own[:1], classes=2)
    assert bool((alone.scores(rows)[0] == level.scores(rows)[0]).all())
