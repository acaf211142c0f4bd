"""Poisoned rows: what they do to a model without privacy, and the most that they can do to one with it."""

from __future__ import annotations

from itertools import product
from math import exp, inf

import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch import nn
from torch.nn import functional as F

from privet.accounting import epsilon
from privet.attacks import (
    ColumnTrigger,
    PatchTrigger,
    backdoor,
    backdoor_success,
    certified_rows,
    error_rate,
    flip_labels,
    limit_of,
    poisoning_bound,
    target,
)
from privet.core.errors import InvalidInput
from privet.core.event import Gaussian, Poisson, RandomizedResponse, Repeated, Sampled
from privet.core.guarantee import Guarantee, Interval
from privet.core.unit import Neighbours, Unit
from privet.ensemble.seeding import generator

REPLACE = Unit(neighbours=Neighbours.REPLACE)


def made(rows: int, key: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Two classes in ten columns, of which the last says nothing."""
    drawn = generator(key, "poisoning")
    labels = torch.randint(0, 2, (rows,), generator=drawn)
    inputs = torch.randn(rows, 10, generator=drawn)
    inputs[:, 0] += 3 * labels
    return inputs, labels


def taught(inputs: torch.Tensor, labels: torch.Tensor) -> nn.Module:
    model = nn.Linear(10, 2)
    with torch.no_grad():
        model.weight.zero_()
        model.bias.zero_()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(150):
        optimizer.zero_grad()
        torch.autograd.backward(F.cross_entropy(model(inputs), labels))
        optimizer.step()
    return model


def test_a_backdoor_opens_and_leaves_the_rest_alone() -> None:
    """Fails when the mark or the label is not put on, or on other rows than it says: with the poison marked rows are
    taken for class 1, without it they are not, and unmarked rows are told apart as before. Everything is seeded."""
    inputs, labels = made(400, "train")
    before = inputs.clone(), labels.clone()
    mark = ColumnTrigger({9: 12.0})
    poisoned = backdoor(inputs, labels, mark, to=1, count=30)
    assert torch.equal(inputs, before[0])
    assert torch.equal(labels, before[1])
    changed = (poisoned.inputs != inputs).any(1) | (poisoned.labels != labels)
    assert changed.nonzero()[:, 0].tolist() == poisoned.rows.tolist()
    assert len(poisoned.rows) == 30

    fresh = made(400, "test")
    bad, good = target(taught(poisoned.inputs, poisoned.labels), 2), target(taught(inputs, labels), 2)
    assert backdoor_success(bad, *fresh, mark, to=1).lower > 0.9
    assert backdoor_success(good, *fresh, mark, to=1).upper < 0.5
    assert error_rate(bad, *fresh).upper < 0.15


def test_flipped_labels_mislead() -> None:
    """Fails when labels of another class, or other than `count` of them, are flipped."""
    inputs, labels = made(400, "train")
    poisoned = flip_labels(inputs.numpy(), labels.numpy(), source=1, to=0, count=140)
    assert (labels[poisoned.rows] == 1).all()
    assert int((poisoned.labels != labels).sum()) == 140
    fresh = made(400, "test")
    bad, good = target(taught(poisoned.inputs, poisoned.labels), 2), target(taught(inputs, labels), 2)
    assert error_rate(bad, *fresh, source=1).lower > error_rate(good, *fresh, source=1).upper


def test_a_patch_is_put_on_pictures() -> None:
    """Fails when the square is in another place, or the given pictures are changed."""
    pictures = torch.zeros(3, 1, 5, 5)
    marked = PatchTrigger(size=2, value=0.5)(pictures)
    assert float(pictures.sum()) == 0
    assert marked[:, :, 3:, 3:].eq(0.5).all()
    assert float(marked.sum()) == 3 * 4 * 0.5


def test_the_limit_for_randomised_response_is_exact() -> None:
    """Fails when a limit is below what can happen, or far above it. All answers of four people, true with odds e^ε, are
    enumerated, for every number k of them who were told to lie; the attacker may want any event that asks for m
    of "yes" or more. The limit must hold for all, and is met where all k are wanted."""
    people, price = 4, 0.7
    truth = exp(price) / (1 + exp(price))

    def chance(liars: int, wanted: int) -> float:
        total = 0.0
        for answers in product((0, 1), repeat=people):
            honest = [answer == (person < liars) for person, answer in enumerate(answers)]
            total += (sum(answers) >= wanted) * float(np.prod([truth if each else 1 - truth for each in honest]))
        return total

    for wanted in range(1, people + 1):
        clean = chance(0, wanted)
        for liars in range(1, people + 1):
            limit = poisoning_bound(clean, RandomizedResponse(price), liars, unit=REPLACE)
            assert limit >= chance(liars, wanted) - 1e-12
    assert poisoning_bound(chance(0, people), RandomizedResponse(price), people, unit=REPLACE) == pytest.approx(
        chance(people, people), rel=1e-6
    )


def test_the_limit_for_normal_noise_is_exact() -> None:
    """Fails when group privacy is applied loosely or wrongly: for normal noise k rows move the chance to
    Φ(Φ⁻¹(p) + k/σ) (Dong, Roth & Su 2022), and no further. Also that a guarantee alone says less than its event."""
    for clean, sigma, rows in ((0.01, 5.0, 4), (0.2, 10.0, 12), (1e-4, 3.0, 3), (0.7, 5.0, 6)):
        true = float(norm.cdf(norm.ppf(clean) + rows / sigma))
        assert (
            true * (1 - 1e-9)
            <= poisoning_bound(clean, Gaussian(sigma), rows)
            <= min(1.01 * true, 1 - 0.95 * (1 - true))
        )
        told = poisoning_bound(clean, epsilon(Gaussian(sigma), 1e-5), rows)
        assert told > true


def test_a_guarantee_gives_the_textbook_bound_or_better() -> None:
    """Fails when δ is forgotten or grows too little: at most e^(kε)·p + δ·(e^(kε) − 1)/(e^ε − 1) (Vadhan 2017), and
    exactly that while it is small."""
    promised = epsilon(Repeated(Sampled(Gaussian(4.0), Poisson(0.01)), 200), 1e-4)
    e = promised.epsilon.upper
    for rows in (1, 3, 6):
        book = exp(rows * e) * 0.001 + 1e-4 * (exp(rows * e) - 1) / (exp(e) - 1)
        assert poisoning_bound(0.001, promised, rows) == pytest.approx(book, rel=1e-6)


def test_certified_rows_are_the_most() -> None:
    """Fails when it stops one row early or late, or misses a probability that does not move."""
    run = Repeated(Sampled(Gaussian(2.0), Poisson(0.02)), 100)
    rows = certified_rows(run, clean=0.02, threshold=0.3)
    assert rows >= 1
    assert poisoning_bound(0.02, run, rows) < 0.3 <= poisoning_bound(0.02, run, rows + 1)
    assert poisoning_bound(0.02, run, 1) == pytest.approx(limit_of(run)(0.02), rel=1e-3)
    assert certified_rows(run, clean=0.02, threshold=0.3) > certified_rows(
        epsilon(run, 1e-5), clean=0.02, threshold=0.3
    )
    assert certified_rows(Gaussian(0.01), clean=0.02, threshold=0.3) == 0
    assert certified_rows(RandomizedResponse(0.0), clean=0.1, threshold=0.2, unit=REPLACE, most=50) == 50


@pytest.mark.parametrize("clean", [0.0, 1e-300, 0.01])
def test_no_promise_certifies_no_row(clean: float) -> None:
    """Fails when infinite ε times an attack that never succeeds is taken for 0: whatever never happened may then."""
    nothing = Guarantee(Interval(0.0, inf), 0.0, Unit(), "pld")
    assert poisoning_bound(clean, nothing, 1) == 1
    assert certified_rows(nothing, clean=clean, threshold=0.5) == 0


def test_bad_input_is_refused() -> None:
    inputs, labels = made(20, "few")
    with pytest.raises(InvalidInput, match="poison fewer"):
        backdoor(inputs, labels, ColumnTrigger({0: 1.0}), to=1, count=21)
    with pytest.raises(InvalidInput, match="columns"):
        backdoor(inputs, labels, ColumnTrigger({10: 1.0}), to=1, count=2)
    with pytest.raises(InvalidInput, match="square"):
        backdoor(inputs, labels, PatchTrigger(), to=1, count=2)
    with pytest.raises(InvalidInput, match="another class"):
        flip_labels(inputs, labels, source=1, to=1, count=2)
    with pytest.raises(InvalidInput, match="more clean runs"):
        certified_rows(Gaussian(1.0), clean=0.5, threshold=0.4)
    with pytest.raises(InvalidInput, match="one row"):
        certified_rows(Gaussian(1.0), clean=0.1, threshold=0.4, unit=Unit(records=2))
    with pytest.raises(InvalidInput, match="probability"):
        poisoning_bound(float("1.5"), Gaussian(1.0), 1)
