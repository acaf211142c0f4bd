"""The student, the graph along which answers spread, and orders of questions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from privet.core.errors import InvalidInput
from privet.ensemble import (
    LabelPropagation,
    NeighborGraph,
    Ridge,
    SupervisedStudent,
    VoteRegression,
    most_informative,
    most_typical,
    most_uncertain,
    shuffled_order,
)


def rings(rows: int, seed: int = 0) -> tuple[Tensor, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """Two rings, one inside the other: neighbours are alike, and no line parts them."""
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % 2
    angle = rng.uniform(0, 2 * np.pi, rows)
    radius = 1.0 + labels + rng.normal(0, 0.08, rows)
    places = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return torch.tensor(places, dtype=torch.float32), labels


def test_answers_spread_along_the_graph() -> None:
    """Fails when edges join the wrong rows or answers do not travel: of two rings, three answers each, all rows and new
    ones are told apart; from six answers alone they are not."""
    rows, labels = rings(600)
    asked = np.arange(6)
    found = LabelPropagation().student(rows, asked, labels[asked], 2)
    new, true = rings(400, seed=1)
    assert (found.labels(rows) == labels).mean() > 0.97
    assert (found.labels(new) == true).mean() > 0.97
    assert (SupervisedStudent().student(rows, asked, labels[asked], 2).labels(new) == true).mean() < 0.9


def test_few_wrong_answers_are_outvoted() -> None:
    """Fails when the student repeats every answer: one in ten is wrong here, and the graph and the penalty mend
    most of them."""
    rows, labels = rings(600)
    asked = np.arange(120)
    answers = labels[asked].copy()
    answers[::10] = 1 - answers[::10]
    found = LabelPropagation(graph=NeighborGraph(spread=0.9)).student(rows, asked, answers, 2)
    assert (found.labels(rows)[asked] == labels[asked]).mean() > 0.95


def test_the_graph_solves_its_equation() -> None:
    """Fails when a weight, the normalisation or the share that spreads is wrong: the limit is (1 - a)(I - aS)⁻¹Y, with
    S made here by plain loops."""
    rows, labels = rings(40)
    asked = np.array([0, 1, 2, 4, 5])  # three answers of one class, two of the other
    graph = NeighborGraph(neighbors=4, sharpness=3.0, spread=0.8)
    places = rows.double().numpy()
    squared = ((places[:, None] - places[None]) ** 2).sum(2)
    weights = np.zeros((40, 40))
    for row in range(40):
        near = [other for other in np.argsort(squared[row]) if other != row][:4]
        for other in near:
            weight = np.exp(-1.5 * squared[row, other] / squared[row, near[-1]])
            weights[row, other] = max(weights[row, other], weight)
            weights[other, row] = max(weights[other, row], weight)
    sums = weights.sum(1)
    start = np.zeros((40, 2))
    for row in asked:
        start[row, labels[row]] = 1 / (labels[asked] == labels[row]).sum()
    limit = np.linalg.solve(np.eye(40) - 0.8 * weights / np.sqrt(np.outer(sums, sums)), start)
    wanted = limit / np.maximum(limit.sum(1, keepdims=True), 1e-300)
    np.testing.assert_allclose(graph.labels(rows, asked, labels[asked], 2), wanted, atol=1e-4)


def test_rows_that_nothing_reaches_are_left_out() -> None:
    """Fails when a part of the graph without an answer is learned as if it were of class 0."""
    near, _ = rings(40)
    rows = torch.cat([near, near + 100])
    shares = NeighborGraph(neighbors=3).labels(rows, np.arange(10), np.ones(10, dtype=np.int64), 2)
    assert not shares[40:].any()
    assert (LabelPropagation().student(rows, np.arange(10), np.ones(10, dtype=np.int64), 2).labels(rows) == 1).all()


def test_orders_ask_about_each_row_once() -> None:
    """Fails when an order repeats rows or leaves some out, ignores its key, or asks again about an answered row."""
    rows, labels = rings(300)
    assert sorted(shuffled_order(300)) == list(range(300))
    assert (shuffled_order(300, key="one") != shuffled_order(300, key="other")).any()
    twice = torch.cat([rows[:20], rows[:20]])
    assert sorted(most_typical(twice, 40)) == list(range(40))
    student = SupervisedStudent(Ridge()).student(rows, np.arange(30), labels[:30], 2)
    order = most_uncertain(student, rows, np.arange(30))
    assert sorted(order) == list(range(30, 300))
    assert (np.diff(student.margins(rows)[order]) >= 0).all()


def test_typical_rows_cover_every_cluster_and_begin_with_the_largest() -> None:
    """Fails when rows are not those nearest to the middles, or clusters come in another order: four far clusters
    of 5, 101, 25 and 51 rows, the last row of each in its middle. K-means may begin with two rows of one cluster and
    stay there: with one of ten keys, at least, it must not."""
    rng = np.random.default_rng(3)
    sizes = (5, 101, 25, 51)
    half = [rng.normal(0, 0.1, (size // 2, 4)) for size in sizes]
    around = [np.concatenate([each, -each, np.zeros((1, 4))]) + 10 * np.eye(4)[at] for at, each in enumerate(half)]
    rows, ends = torch.tensor(np.concatenate(around), dtype=torch.float32), np.cumsum(sizes) - 1
    found = [most_typical(rows, 4, key=key).tolist() for key in "abcdefghij"]
    assert ends[[1, 3, 2, 0]].tolist() in found


def refused() -> list[tuple[str, Any]]:
    rows, labels = rings(30)
    some = np.arange(4)
    ways = LabelPropagation()
    return [
        ("asked is empty", lambda: ways.student(rows, some[:0], labels[:0], 2)),
        ("asked is not of whole numbers", lambda: ways.student(rows, some + 27, labels[:4], 2)),
        ("answers are not one whole number", lambda: ways.student(rows, some, labels[:3], 2)),
        ("answers are not one whole number", lambda: SupervisedStudent().student(rows, some, -labels[:4], 2)),
        ("rows are not two rows", lambda: ways.student(rows[:1], some[:1], labels[:1], 2)),
        ("spread is 1", lambda: NeighborGraph(spread=1.0)),
        ("count is 31", lambda: most_typical(rows, 31)),
    ]


@pytest.mark.parametrize(("message", "call"), refused(), ids=[message for message, _ in refused()])
def test_what_cannot_be_learned_is_refused(message: str, call: Any) -> None:
    """Fails when a mistake passes, or is told without the argument's name."""
    with pytest.raises(InvalidInput, match=message):
        call()


def test_further_rounds_part_what_the_features_join() -> None:
    """Fails when the model's scores are not beside the features in the second graph, or the answers are lost: rings
    that nearly touch are told apart better after three rounds than after one."""
    rng = np.random.default_rng(3)
    labels = np.arange(800) % 2
    angle, radius = rng.uniform(0, 2 * np.pi, 800), 1 + 0.5 * labels + rng.normal(0, 0.14, 800)
    rows = torch.tensor(np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1), dtype=torch.float32)
    asked = np.arange(60)
    once, again = (
        (LabelPropagation(rounds=rounds).student(rows, asked, labels[asked], 2).labels(rows) == labels).mean()
        for rounds in (1, 3)
    )
    assert again > once
    assert again > 0.9


@pytest.mark.parametrize("bad", [{"rounds": 0}, {"echo": 0.0}])
def test_rounds_are_checked(bad: dict[str, Any]) -> None:
    """Fails when a student without a round, or an echo that says nothing, is accepted."""
    with pytest.raises(InvalidInput):
        LabelPropagation(**bad)


def test_counts_say_more_than_labels() -> None:
    """Fails when a student that is given noisy counts does not use how far they are apart, or turns classes round: on a
    line that is drowned in noise its direction is nearer to the truth than that of labels. Seeded."""
    drawn = np.random.default_rng(4)
    rows = torch.from_numpy(drawn.normal(size=(3000, 6)) / 3).float()
    truth = torch.tensor([1.0, -0.5, 0.3, 0.0, 0.0, 0.2])
    lean = 20 * (rows @ truth).numpy()
    counts = np.stack([50 - lean, 50 + lean], 1) + drawn.normal(0, 60, (3000, 2))
    asked = np.arange(3000)
    weighed = VoteRegression(1.0).student(rows, asked, counts, 2)
    labelled = SupervisedStudent(Ridge(1.0)).student(rows, asked, counts.argmax(1), 2)
    right = [float((each.labels(rows) == (lean > 0)).mean()) for each in (weighed, labelled)]
    assert right[0] > 0.9
    assert right[0] > right[1]
    with pytest.raises(InvalidInput, match="counts have the shape"):
        VoteRegression().student(rows, asked, counts[:, :1], 2)
    with pytest.raises(InvalidInput, match="hold no numbers"):
        VoteRegression().student(rows, asked, np.where(counts > 90, np.nan, counts), 2)


def test_telling_rows_lower_the_error_of_a_noisy_line() -> None:
    """Fails when rows that say little come first: a line learned from as many telling rows must have half the error of
    one from rows as they come, on average over the rows. Seeded; 40 repetitions."""
    drawn = np.random.default_rng(8)
    rows = torch.from_numpy(drawn.normal(size=(4000, 5)) * drawn.exponential(1, (4000, 1))).float()
    truth = torch.tensor([1.0, 0.5, -1.0, 0.2, 0.3])
    found = most_informative(rows, 200)
    assert len(set(found.tolist())) == 200
    errors = []
    for chosen in (found, np.arange(200)):
        x = rows[torch.from_numpy(chosen)].double().numpy()
        total = 0.0
        for _ in range(40):
            y = x @ truth.double().numpy() + drawn.normal(0, 5, 200)
            line = np.linalg.lstsq(x, y, rcond=None)[0]
            total += float(((rows.double().numpy() @ (line - truth.double().numpy())) ** 2).mean())
        errors.append(total)
    assert errors[0] < errors[1] / 2
    with pytest.raises(InvalidInput, match="count is 5000"):
        most_informative(rows, 5000)
