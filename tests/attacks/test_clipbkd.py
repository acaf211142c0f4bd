"""ClipBKD as an audit's adversary: a run without noise is caught, and one that keeps its promise is not accused."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import privet
from privet.accounting import epsilon
from privet.attacks import clipbkd, target
from privet.attacks.clipbkd import ClipBKD, for_one_record
from privet.audit import many_runs
from privet.core.errors import InvalidInput
from privet.core.guarantee import Evidence
from privet.core.random import SeededRng
from privet.core.unit import Unit
from privet.ensemble.seeding import generator

RUNS, COPIES, DELTA = 32, 2, 1e-3
PROMISED = privet.DPSGD(noise_multiplier=8.0, delta=DELTA, clip=1.0, batch_size=30, steps=3, sample_rate=0.5)


def made() -> tuple[torch.Tensor, torch.Tensor]:
    """Two classes in six columns that differ in how much they vary; the last hardly does."""
    drawn = generator("clipbkd", "rows")
    labels = torch.randint(0, 2, (60,), generator=drawn)
    inputs = torch.randn(60, 6, generator=drawn) * torch.tensor([2.0, 1.5, 1.2, 1.0, 0.8, 0.01])
    inputs[:, 0] += 2 * labels
    return inputs, labels


def scores(of: ClipBKD, plan: privet.DPSGD, *, present: bool, first: int) -> list[float]:
    """The scores of independent runs; each has a seed of its own, so that a failure can be seen again."""
    found = []
    for seed in range(first, first + RUNS):
        model = nn.Linear(6, 2)
        with torch.no_grad():
            model.weight.zero_()
            model.bias.zero_()
        run = plan.attach(
            model,
            torch.optim.SGD(model.parameters(), lr=1.0),
            of.present if present else of.absent,
            rng=SeededRng(seed),
        )
        for inputs, labels in run.batches():
            run.step(F.cross_entropy(model(inputs), labels, reduction="none"))
        run.close()
        found.append(of.score(target(model, 2)))
    return found


def audited(plan: privet.DPSGD) -> Evidence:
    poison = clipbkd(*made(), classes=2, copies=COPIES)
    present, absent = (scores(poison, plan, present=bit, first=1000 * bit) for bit in (True, False))
    return many_runs(present, absent, delta=DELTA, unit=poison.unit, attack="clipbkd")


def test_the_point_lies_where_rows_hardly_vary() -> None:
    """Fails when the first direction is taken for the last, its length is wrong, or a class that it looks like."""
    inputs, labels = made()
    poison = clipbkd(inputs, labels, classes=2, copies=3)
    assert float(poison.point[5].abs()) > 0.99 * float(poison.point.norm())
    assert float(poison.point.norm()) == pytest.approx(float(inputs.norm(dim=1).mean()), rel=1e-5)
    x, y = poison.present
    assert x.shape == (63, 6)
    assert torch.equal(x[:60], poison.absent[0])
    assert x[60:].eq(poison.point).all()
    assert y[60:].eq(poison.label).all()
    assert poison.unit == Unit(records=3)
    pictures = clipbkd(
        torch.randn(9, 2, 2, generator=generator("p")), torch.arange(9) % 2, classes=2, length=2.0, label=1
    )
    assert pictures.point.shape == (2, 2)
    assert (pictures.label, round(float(pictures.point.norm()), 5)) == (1, 2.0)


def test_a_run_without_noise_is_caught_and_an_honest_one_is_not() -> None:
    """Fails when the score or the unit of an audit is wrong. Both claim the price of the same plan for two records; one
    of them adds no noise. The honest one is accused in 5 % of seeds at most, and these are fixed."""
    claimed = epsilon(PROMISED.event(), DELTA, unit=Unit(records=COPIES))
    assert claimed.epsilon.upper < 1.2
    broken = privet.DPSGD(noise_multiplier=1e-3, delta=DELTA, clip=1.0, batch_size=30, steps=3, sample_rate=0.5)
    caught = audited(broken)
    assert caught.refutes(claimed)
    assert for_one_record(caught).refutes(epsilon(PROMISED.event(), for_one_record(caught).delta))
    assert not audited(PROMISED).refutes(claimed)


def test_one_record_is_told_from_many_without_losing_delta() -> None:
    """Fails when ε is divided and δ kept: the group's δ at ε̂/k must be that of the evidence again (Vadhan 2017)."""
    whole = Evidence(2.4, 1e-2, 0.95, "clipbkd", 100, Unit(records=4))
    one = for_one_record(whole)
    assert one.epsilon == pytest.approx(0.6)
    assert one.delta * sum(torch.e ** (0.6 * step) for step in range(4)) == pytest.approx(1e-2)
    assert for_one_record(Evidence(0.0, 0.0, 0.95, "clipbkd", 100, Unit(records=4))).epsilon == 0


def test_bad_input_is_refused() -> None:
    inputs, labels = made()
    with pytest.raises(InvalidInput, match="finite"):
        clipbkd(inputs / 0, labels, classes=2)
    with pytest.raises(InvalidInput, match="copies"):
        clipbkd(inputs, labels, classes=2, copies=0)
    with pytest.raises(InvalidInput, match="label"):
        clipbkd(inputs, labels, classes=2, label=5)
