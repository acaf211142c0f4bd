"""The benchmark's protocol, small: digits, twenty teachers, one run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from benchmarks.pate.drawn import Chart, Line, svg
from benchmarks.pate.protocol import Set, drawn, run
from benchmarks.pate.settings import MNIST
from privet.data import Images, named
from privet.ensemble import LabelPropagation, NeighborGraph
from privet.training.models import Pixels


def digits() -> Set:
    """Pictures of digits, as plain rows."""
    found = named("digits")
    assert isinstance(found.train, Images)
    assert isinstance(found.test, Images)
    front = Pixels(found.train.x.shape[1:], 16, flat=True)
    rows, public = (front(torch.from_numpy(part.x)) for part in (found.train, found.test))
    return Set(found.train, rows, found.train.y, public, found.test.y, 10)


def test_a_run_from_teachers_to_student() -> None:
    """Fails when labels and rows are mixed up on the way, or prices come out in the wrong order: the student is right
    of most rows that nobody asked about, and the data-dependent ε is below the one for any data."""
    settings = replace(
        MNIST[0],
        teachers=20,
        questions=40,
        sigma=2.0,
        student=LabelPropagation(graph=NeighborGraph(neighbors=5), rounds=2),
    )
    found = run(digits(), settings, seed=0)
    assert found.accuracy > 80
    assert found.answers == 40
    assert found.data_dependent <= found.data_independent
    assert run(digits(), settings, seed=0).data_dependent == found.data_dependent


def test_pool_and_test_share_no_row() -> None:
    """Fails when the student is tested on rows of the pool."""
    data = digits()
    pool, test = drawn(data, 3)
    assert np.array_equal(np.sort(np.concatenate([pool, test])), np.arange(len(data.truth)))


def test_a_chart_has_a_line_for_each_series() -> None:
    """Fails when a series is lost, or a title is not escaped."""
    chart = Chart("a < b", "x", (Line("one", ((1.0, 2.0), (10.0, 3.0))), Line("", ((1.0, 4.0),), dashed=True)))
    drawn_ = svg(chart)
    assert drawn_.count("<polyline") == 2
    assert "a &lt; b" in drawn_
