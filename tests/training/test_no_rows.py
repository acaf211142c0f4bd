"""A data set of which the number of rows is private may have none, and nobody is told."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import privet
from privet.core.random import SeededRng


def _trained(rows: int, users: bool = False) -> tuple[list[int], torch.Tensor]:
    inputs, targets = torch.ones(rows, 3), torch.zeros(rows, dtype=torch.long)
    model = nn.Linear(3, 2)
    with torch.no_grad():
        for weights in model.parameters():
            weights.zero_()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plan = privet.DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=10, steps=4, population=100)
    run = plan.attach(model, optimizer, (inputs, targets), users=np.arange(rows) if users else None, rng=SeededRng(1))
    steps = []
    for x, y in run.batches():
        run.step(F.cross_entropy(model(x), y, reduction="none"))
        steps.append(run.steps)
    run.release()
    return steps, model.weight.detach().clone()


@pytest.mark.parametrize("users", [False, True])
def test_no_rows_are_trained_on_like_one(users: bool) -> None:
    """Catches an error, or another number of steps, that would tell an empty data set from one with a single row."""
    none, one = _trained(0, users), _trained(1, users)
    assert none[0] == one[0] == [1, 2, 3, 4]
    assert float(none[1].abs().sum()) > 0  # noise alone
    assert not torch.equal(none[1], one[1])


def test_no_rows_are_refused_where_they_are_counted() -> None:
    """Catches a plan whose unit says that the number of rows is public, and which hides that there are none."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plan = privet.DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=10, steps=4)
    with pytest.raises(privet.InvalidInput, match="no rows"):
        plan.attach(model, optimizer, (torch.ones(0, 3), torch.zeros(0, dtype=torch.long)))
